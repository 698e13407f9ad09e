/* cpu_simd, backward on tiles: the steps, then GEMMs over all steps for the gradients of weights
 * and inputs. */
#include <string.h>

#include "impls/cpu_simd/cpu_simd.h"

static const float zeros[16]; /* where sums start */

/* One layer and direction, with the part of the work of one thread. */
struct layer_dir {
    struct lb_cpu_part part;
    const struct lb_backward_io *io;
    struct lb_cpu_range groups; /* of column tiles of back_hh, of this thread */
    struct lb_cpu_range panels; /* of units, those of the groups */
    size_t rows, group_rows;    /* of its team */
    const char *dy;             /* [T, B, D*H], at this direction's first unit */
    char *da[2];                /* operands of the team */
    float *dc;
};

static struct layer_dir open_layer_dir(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_backward_io *io = call->backward;
    const struct lb_cpu_sizes *s = &simd->s;
    const struct lb_cpu_tiles *t = &simd->tiles;
    const struct lb_cpu_part part = lb_cpu_part_of(simd, index, thread, io->c0);
    size_t team = thread / simd->team_size, rows = part.rows.to - part.rows.from;
    struct layer_dir ld = {
        .part = part,
        .io = io,
        .groups = lb_cpu_columns(simd, lb_cpu_cover(s->panels, s->group), thread),
        .rows = rows,
        .group_rows = lb_cpu_group_rows(rows),
        .dy = lb_cpu_at(simd, part.l == s->L - 1 ? io->dy : simd->between, part.d * s->H),
        .da = {t->da + 2 * team * t->da_bytes, t->da + (2 * team + 1) * t->da_bytes},
        .dc = t->state + team * t->state_count,
    };
    ld.panels = (struct lb_cpu_range){ld.groups.from * s->group,
                                      lb_cpu_least(ld.groups.to * s->group, s->panels)};
    return ld;
}

/* Gradients of h: those of the step after, times w_hh. */
static struct lb_tile_gemm step_gemm(const struct layer_dir *ld, const char *da, size_t rows)
{
    const struct lb_cpu_sizes *s = &ld->part.simd->s;
    return (struct lb_tile_gemm){
        .terms = {{0}, {da, ld->part.w.back_hh, s->gates / LB_TILE_DEPTH}},
        .start = zeros,
        .rows = rows,
        .group_rows = ld->group_rows,
        .pairs = s->group / 2,
        .panels_from = ld->groups.from,
        .panels_to = ld->groups.to,
    };
}

/* This thread's part of step t, the number'th that is computed. */
static void step(const struct layer_dir *ld, size_t t, size_t number)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t first = ld->part.rows.from, row = t * s->B + first;
    size_t active = lb_cpu_active_to(simd, ld->part.rows, t) - first;
    struct lb_tile_pass pass = {
        .gemm = step_gemm(ld, ld->da[number % 2], active),
        .cell = {.hidden = s->H,
                 .state = ld->dc,
                 .state_rows = ld->rows,
                 .next_operand = ld->da[1 - number % 2],
                 .operand_tiles = s->gates / LB_TILE_DEPTH,
                 .h = lb_cpu_at(simd, ld->dy, row * s->wide),
                 .h_stride = s->wide,
                 .gates = lb_cpu_gates(simd, ld->part.index, 0, row),
                 .gates_stride = simd->gate_rows * s->width,
                 .cells = (float *)(void *)lb_cpu_sum_at(simd, ld->part.cells, row * s->H),
                 .c_before = ld->part.c_before + first,
                 .dhn = ld->part.dhn + first},
    };
    pass.gemm.backwards = number % 2;
    pass.gemm.prefetch = true;
    if (number == 0)
        pass.gemm.terms[1].tiles = 0;
    lb_cpu_find_states(&ld->part, ld->io, t, first + active);
    if (active > 0)
        simd->kernels->tiles->backward(&pass);
    lb_cpu_close_step(&ld->part, ld->panels, ld->part.rows, t, first + active);
}

/* Rows of gradients of a over all panels, whose rows are `panel_rows` in a panel. */
static struct lb_tile_rows gradient_rows(const struct lb_cpu_simd *simd, const char *from,
                                         size_t panel_rows, size_t count, char *operand)
{
    size_t width = simd->s.width;
    return (struct lb_tile_rows){.from = from,
                                 .count = count,
                                 .k = simd->s.gates,
                                 .stride = width,
                                 .segment = width,
                                 .segment_stride = panel_rows * width,
                                 .group_rows = LB_TILE_ROWS,
                                 .operand = operand};
}

/* All steps of a layer_dir in reverse, down to dh0 and dc0. The gradients of the step after the
 * last one are zero: a ragged row of the first direction begins later, and nothing writes its
 * operand until then. */
static void steps(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct layer_dir opened = open_layer_dir(call, index, thread), *ld = &opened;
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t first = ld->part.rows.from, state = (index * s->B + first) * s->H;
    struct lb_cpu_range share = lb_cpu_columns(simd, simd->tiles.da_bytes, thread);
    for (size_t buffer = 0; buffer < 2; buffer++)
        memset(ld->da[buffer] + share.from, 0, share.to - share.from);
    lb_cpu_state_to_sums(simd, lb_cpu_at(simd, ld->io->c0, index * s->B * s->H),
                         lb_cpu_sum_at(simd, ld->part.c0, 0), ld->part.rows,
                         lb_cpu_units(simd, ld->panels));
    lb_cpu_tile_load_state(simd, lb_cpu_at(simd, ld->io->dcn, state), ld->rows, ld->panels, ld->dc);
    lb_cpu_end_step(simd);
    for (size_t i = 0; i < s->T; i++) {
        step(ld, ld->part.d == 0 ? s->T - 1 - i : i, i);
        lb_cpu_end_step(simd);
    }
    struct lb_tile_rows rows = gradient_rows(simd, lb_cpu_at(simd, simd->first, first * s->width),
                                             s->B, ld->rows, ld->da[0]);
    rows.group_rows = ld->group_rows;
    lb_cpu_tile_pack_share(simd, thread, &rows);
    lb_cpu_end_step(simd);
    if (ld->rows > 0)
        simd->kernels->tiles->product(&(struct lb_tile_pass){
            .gemm = step_gemm(ld, ld->da[0], ld->rows),
            .cell = {.hidden = s->H, .h = lb_cpu_at(simd, ld->io->dh0, state), .h_stride = s->H},
        });
    lb_cpu_tile_store_state(simd, lb_cpu_at(simd, ld->io->dc0, state), ld->rows, ld->panels,
                            ld->dc);
}

/* GEMM over steps: dw [panels, columns, width] = in [rows, columns] transposed, times the gradients
 * of a. Rows that `in` does not have are zero. */
struct factor {
    const char *in; /* its row 0 belongs to row `skip` of the gradients */
    size_t skip, rows, stride;
    struct lb_cpu_range columns; /* of this thread */
    char *dw;
    size_t dw_columns; /* of all threads */
    char *operand;
};

/* The thread's columns of rows [from, from + count) of the gradients as an operand. */
static void transpose(const struct lb_cpu_simd *simd, const struct factor *f, size_t from,
                      size_t count)
{
    size_t skip = from < f->skip ? f->skip - from : 0, end = f->skip + f->rows;
    size_t begin = from < f->skip ? 0 : from - f->skip, left = end > from ? end - from : 0;
    struct lb_cpu_outer o = {
        .rows = lb_cpu_least(left, count),
        .skip = skip,
        .columns = f->columns.to - f->columns.from,
        .in = lb_cpu_at(simd, f->in, begin * f->stride + f->columns.from),
        .stride = f->stride,
    };
    simd->kernels->tiles->transpose(&o, count, f->operand);
}

static void multiply(const struct lb_cpu_simd *simd, const struct factor *f, size_t panel,
                     const char *weights, size_t tiles, bool add)
{
    const struct lb_cpu_sizes *s = &simd->s;
    size_t row = panel * lb_cpu_gradient_columns(simd, f->dw_columns) + f->columns.from;
    float *dw = (float *)(void *)lb_cpu_sum_at(simd, f->dw, row * s->width);
    simd->kernels->tiles->gemm(&(struct lb_tile_gemm){
        .terms = {{.a = f->operand, .w = weights, .tiles = tiles}},
        .start = add ? dw : zeros,
        .start_column = add ? s->simd_width : 0,
        .start_row = add ? s->width : 0,
        .rows = f->columns.to - f->columns.from,
        .pairs = 2,
        .panels_to = 1,
        .sums = dw,
        .sums_column = s->simd_width,
        .sums_row = s->width,
    });
}

/* The rows whose products are summed at a time, and the columns of each factor: operands of both
 * factors stay in the L2 cache. All columns where that leaves many rows, because each further block
 * of columns pairs the gradients of a again; else many rows, because each further block of rows
 * reads and writes the sums again. */
struct slab {
    size_t rows, columns;
};

static struct slab slab_of(const struct lb_cpu_simd *simd)
{
    enum { BYTES = 1 << 20, MANY_ROWS = 512, MOST_ROWS = 1024 };
    size_t widest = lb_cpu_widest_input(simd), all = widest + simd->s.H;
    size_t rows = BYTES / simd->elem / all / LB_TILE_DEPTH * LB_TILE_DEPTH;
    size_t most = lb_cpu_least(simd->s.rows, MOST_ROWS);
    if (rows >= MANY_ROWS || rows >= simd->s.rows)
        return (struct slab){lb_cpu_least(rows, most), widest > simd->s.H ? widest : simd->s.H};
    return (struct slab){most, BYTES / simd->elem / 2 / most / LB_TILE_DEPTH * LB_TILE_DEPTH};
}

/* Bytes of an operand of so many columns, or of a panel's gradients as weights. */
static size_t operand_bytes(const struct lb_cpu_simd *simd, size_t columns)
{
    return lb_cpu_cover(columns, LB_TILE_ROWS) * LB_TILE_ROWS *
           lb_cpu_cover(slab_of(simd).rows, LB_TILE_DEPTH) * LB_TILE_DEPTH * simd->elem;
}

size_t lb_cpu_tiles_packed_bytes(const struct lb_cpu_simd *simd)
{
    return 2 * operand_bytes(simd, slab_of(simd).columns) + operand_bytes(simd, simd->s.width);
}

/* The gradients of a of some panels, of `rows` rows each. */
struct gradients {
    struct lb_cpu_range panels;
    const char *da;
    size_t rows;
    char *db; /* NULL: no sum over rows */
};

/* The products of rows [from, from + count) of gradients with some columns of the factors. */
static void slab_products(const struct lb_cpu_simd *simd, const struct gradients *g,
                          const struct factor *factors, size_t factor_count, size_t from,
                          size_t count, bool add)
{
    const struct lb_cpu_sizes *s = &simd->s;
    char *weights = factors[0].operand + 2 * operand_bytes(simd, slab_of(simd).columns);
    for (size_t i = 0; i < factor_count; i++)
        transpose(simd, &factors[i], from, count);
    for (size_t p = g->panels.from; p < g->panels.to; p++) {
        struct lb_cpu_outer o = {
            .rows = count,
            .da = lb_cpu_at(simd, g->da, (p * g->rows + from) * s->width),
            .db = g->db ? lb_cpu_sum_at(simd, g->db, p * s->width) : NULL,
            .add = add,
        };
        simd->kernels->tiles->pair(&o, weights);
        if (o.db)
            simd->kernels->tiles->sum_rows(&o);
        for (size_t i = 0; i < factor_count; i++)
            multiply(simd, &factors[i], p, weights, lb_cpu_cover(count, LB_TILE_DEPTH), add);
    }
}

/* This thread's part of the products of all rows of gradients with up to two factors. */
static void products(const struct lb_cpu_simd *simd, size_t thread, struct gradients g,
                     const struct factor *factors, size_t factor_count, bool add)
{
    struct slab slab = slab_of(simd);
    size_t most = 0;
    struct lb_cpu_range columns[2];
    for (size_t i = 0; i < factor_count; i++) {
        columns[i] = lb_cpu_own_columns(simd, thread, factors[i].dw_columns);
        size_t width = columns[i].to - columns[i].from;
        most = width > most ? width : most;
    }
    g.panels = lb_cpu_own_panels(simd, thread, simd->s.panels);
    if (g.panels.from == g.panels.to)
        return;
    for (size_t from = 0, rows; from < g.rows; from += rows) {
        rows = lb_cpu_least(g.rows - from, slab.rows);
        for (size_t begin = 0; begin == 0 || begin < most; begin += slab.columns) {
            struct factor parts_of[2];
            struct gradients own = g;
            for (size_t i = 0; i < factor_count; i++) {
                size_t first = columns[i].from + begin, end = first + slab.columns;
                parts_of[i] = factors[i];
                parts_of[i].operand = simd->packed + thread * simd->packed_bytes +
                                      i * operand_bytes(simd, slab.columns);
                parts_of[i].columns = (struct lb_cpu_range){lb_cpu_least(first, columns[i].to),
                                                            lb_cpu_least(end, columns[i].to)};
            }
            if (begin > 0 || thread % simd->column_parts > 0)
                own.db = NULL;
            slab_products(simd, &own, parts_of, factor_count, from, rows, add || from > 0);
        }
    }
}

/* This thread's part of the weight gradients of a layer_dir. Gradients of a, and y, are zero where
 * a row has no step. So one GEMM covers all steps, with y of the step before as the state h before
 * each step; another covers h0 at each row's first step. */
static void weight_gradients(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_backward_io *io = call->backward;
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_gradients g = lb_cpu_gradients_of(simd, index);
    size_t l = index / s->D, d = index % s->D, input = lb_cpu_input(simd, index);
    const char *y = lb_cpu_at(simd, lb_cpu_output(simd, io->y, l), d * s->H);
    bool reversed = d == 1;
    struct factor factors[] = {
        {.in = l == 0 ? io->x : lb_cpu_output(simd, io->y, l - 1),
         .rows = s->rows,
         .stride = input,
         .dw = g.dw_ih,
         .dw_columns = input},
        {.in = lb_cpu_at(simd, y, reversed ? s->B * s->wide : 0),
         .skip = reversed ? 0 : s->B,
         .rows = s->rows - s->B,
         .stride = s->wide,
         .dw = g.dw_hh,
         .dw_columns = s->H},
    };
    struct factor start = {.in = lb_cpu_at(simd, io->h0, index * s->B * s->H),
                           .rows = s->B,
                           .stride = s->H,
                           .dw = g.dw_hh,
                           .dw_columns = s->H};
    products(simd, thread,
             (struct gradients){.da = lb_cpu_gates(simd, index, 0, 0), .rows = s->rows, .db = g.db},
             factors, 2, false);
    products(simd, thread, (struct gradients){.da = simd->first, .rows = s->B}, &start, 1, true);
}

/* This thread's rows of the gradient of a layer's input [T, B, I_l]: the sum over directions of
 * gradients of a times w_ih. */
static void input_gradients(const struct lb_cpu_call *call, size_t l, size_t thread, char *dinput)
{
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_range rows = lb_cpu_share(s->rows, simd->threads, thread);
    size_t input = lb_cpu_input(simd, l * s->D), count;
    char *operand = simd->tiles.dx + thread * simd->tiles.dx_bytes;
    for (size_t row = rows.from; row < rows.to; row += count) {
        struct lb_tile_pass pass = {
            .gemm = {.start = zeros,
                     .group_rows = LB_TILE_ROWS,
                     .pairs = 2,
                     .panels_to = lb_cpu_cover(input, s->width)},
            .cell = {.hidden = input, .h = lb_cpu_at(simd, dinput, row * input), .h_stride = input},
        };
        count = lb_cpu_least(rows.to - row, LB_TILE_DX_ROWS);
        pass.gemm.rows = count;
        for (size_t d = 0; d < s->D; d++) {
            size_t index = l * s->D + d;
            char *a = operand + d * simd->tiles.dx_bytes / s->D;
            struct lb_tile_rows da =
                gradient_rows(simd, lb_cpu_gates(simd, index, 0, row), simd->gate_rows, count, a);
            simd->kernels->tiles->pack(&da, 0, count);
            pass.gemm.terms[1 - d] = (struct lb_tile_terms){
                .a = a,
                .w = lb_cpu_weights_of(simd, simd->copy_of[thread], index).back_ih,
                .tiles = s->gates / LB_TILE_DEPTH};
        }
        simd->kernels->tiles->product(&pass);
    }
}

const struct lb_cpu_backward_parts lb_cpu_tiles_backward = {steps, weight_gradients,
                                                            input_gradients};
