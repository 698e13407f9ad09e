/* cpu_simd on tiles: how steps are computed, the arrays that this takes, forward and backward. */
#include <string.h>

#include "api/int8.h"
#include "impls/cpu_simd/cpu_simd.h"

enum {
    FUSED_WEIGHTS = 1536 << 10, /* bytes that stay in an L2 cache of 2 MiB beside the operand */
    FUSED_ROWS = 128,           /* rows of x that are packed at a time */
    CHUNK_ROWS = 512,           /* rows of an input GEMM */
    DX_ROWS = 128               /* rows of input gradients that are computed at a time */
};

static size_t most_rows(const struct lb_cpu_simd *s)
{
    return lb_cpu_cover(s->B, s->teams);
}

struct lb_cpu_step_plan lb_cpu_tiles_plan(const struct lb_cpu_simd *s, size_t input)
{
    size_t rows = most_rows(s), panels = lb_cpu_cover(s->panels, s->team_size);
    struct lb_cpu_step_plan plan = {.x_tiles = lb_cpu_cover(input, s->kernels->k_multiple),
                                    .h_tiles = lb_cpu_cover(s->H, s->kernels->k_multiple)};
    size_t weights = panels * (plan.x_tiles + plan.h_tiles) * 4 * LB_TILE_BYTES;
    plan.fused = rows >= LB_TILE_ROWS && weights <= FUSED_WEIGHTS;
    size_t chunks = lb_cpu_cover(s->T * rows, plan.fused ? FUSED_ROWS : CHUNK_ROWS);
    plan.chunk = lb_cpu_cover(s->T, chunks);
    return plan;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

void lb_cpu_tiles_lay_out(struct lb_cpu_simd *s, struct lb_arena *scratch)
{
    struct lb_cpu_tiles *t = &s->tiles;
    size_t rows = most_rows(s), groups = lb_cpu_cover(rows, LB_TILE_ROWS);
    size_t input = (size_t)s->problem.input, inputs[] = {input, s->L > 1 ? s->wide : input};
    t->x_bytes = t->pre_count = 0;
    for (size_t i = 0; i < 2; i++) {
        struct lb_cpu_step_plan plan = lb_cpu_tiles_plan(s, inputs[i]);
        size_t in_chunk =
            plan.fused ? plan.chunk * groups : lb_cpu_cover(plan.chunk * rows, LB_TILE_ROWS);
        t->x_bytes = larger(t->x_bytes, in_chunk * plan.x_tiles * LB_TILE_BYTES);
        if (!plan.fused)
            t->pre_count = larger(t->pre_count, s->gates * in_chunk * LB_TILE_ROWS);
    }
    t->h_bytes = groups * lb_cpu_cover(s->H, s->kernels->k_multiple) * LB_TILE_BYTES;
    t->state_count = s->panels * rows * s->simd_width;
    t->x = lb_arena_take(scratch, s->teams * t->x_bytes);
    t->h = lb_arena_take(scratch, s->teams * 2 * t->h_bytes);
    t->pre = lb_arena_take(scratch, s->teams * t->pre_count * sizeof(float));
    t->state = lb_arena_take(scratch, s->teams * t->state_count * sizeof(float));
    if (!lb_has_backward(&s->problem))
        return;
    t->da_bytes = groups * s->gates / LB_TILE_DEPTH * LB_TILE_BYTES;
    t->dx_bytes = s->D * DX_ROWS * s->gates * s->elem;
    t->da = lb_arena_take(scratch, s->teams * 2 * t->da_bytes);
    t->dx = lb_arena_take(scratch, s->threads * t->dx_bytes);
}

/* A team's rows of a state [L*D, B, H] become this thread's panels of that on tiles [panels, rows,
 * 16]. */
static void load_state(const struct lb_cpu_layer_dir *ld, const void *tensor)
{
    const struct lb_cpu_simd *s = ld->s;
    for (size_t p = ld->panels.from; p < ld->panels.to; p++)
        for (size_t r = 0; r < ld->row_count; r++) {
            struct lb_cpu_range units = lb_cpu_panel_units(s, p);
            size_t from = ld->c_at + (ld->rows.from + r) * s->H + units.from;
            float *to = ld->tile_state + (p * ld->row_count + r) * s->simd_width;
            memset(to, 0, s->simd_width * sizeof(*to));
            lb_cpu_to_sums(s, lb_cpu_at(s, tensor, from), to, units.to - units.from);
        }
}

void lb_cpu_tiles_store_state(const struct lb_cpu_layer_dir *ld, void *tensor)
{
    const struct lb_cpu_simd *s = ld->s;
    for (size_t p = ld->panels.from; p < ld->panels.to; p++)
        for (size_t r = 0; r < ld->row_count; r++) {
            struct lb_cpu_range units = lb_cpu_panel_units(s, p);
            size_t to = ld->c_at + (ld->rows.from + r) * s->H + units.from;
            lb_cpu_from_sums(s, ld->tile_state + (p * ld->row_count + r) * s->simd_width,
                             lb_cpu_at(s, tensor, to), units.to - units.from);
        }
}

/* The thread's share of packing these rows. */
static void pack_share(const struct lb_cpu_layer_dir *ld, struct lb_tile_rows rows)
{
    struct lb_cpu_range share = lb_cpu_columns(ld->s, rows.count, ld->thread);
    ld->s->kernels->tiles->pack(&rows, share.from, share.to);
}

/* h0 becomes the operand of the first step. Both buffers get it: a row of a reversed direction
 * begins at a later step, and until then nothing writes its h. c0 becomes the state. */
void lb_cpu_tiles_start(const struct lb_cpu_layer_dir *ld)
{
    const struct lb_cpu_simd *s = ld->s;
    for (size_t buffer = 0; buffer < 2; buffer++)
        pack_share(ld, (struct lb_tile_rows){.from = lb_cpu_at(s, ld->h0, ld->rows.from * s->H),
                                             .count = ld->row_count,
                                             .k = s->H,
                                             .stride = s->H,
                                             .group_rows = ld->group_rows,
                                             .factor = 127,
                                             .operand = ld->operand[buffer]});
    load_state(ld, ld->io->c0);
}

/* x of the `at`'th step of a chunk, where the step multiplies it. */
static char *step_input(const struct lb_cpu_layer_dir *ld, size_t at)
{
    size_t groups = lb_cpu_cover(ld->row_count, ld->group_rows);
    return ld->tile_x + at * groups * ld->plan.x_tiles * ld->group_rows * 64;
}

/* Rows of a gate in `pre`. */
static size_t tile_pre_rows(const struct lb_cpu_layer_dir *ld)
{
    return lb_cpu_cover(ld->plan.chunk * ld->row_count, LB_TILE_ROWS) * LB_TILE_ROWS;
}

/* The sums of all gates of this thread's panels, which start from the bias. */
static struct lb_tile_gemm gemm_of(const struct lb_cpu_layer_dir *ld)
{
    const struct lb_cpu_simd *s = ld->s;
    return (struct lb_tile_gemm){
        .start = s->problem.dtype == LB_INT8 ? ld->w.start : ld->w.bias,
        .start_panel = s->width,
        .start_column = s->simd_width,
        .pairs = 2,
        .panels_from = ld->panels.from,
        .panels_to = ld->panels.to,
    };
}

/* This thread's share of x. A fused step has row groups of its own; those of an input GEMM take
 * their rows from consecutive steps. */
void lb_cpu_tiles_input(const struct lb_cpu_layer_dir *ld, size_t t, size_t steps)
{
    const struct lb_cpu_simd *s = ld->s;
    bool fused = ld->plan.fused, at_once = !fused && s->teams == 1;
    for (size_t i = 0; i < (at_once ? 1 : steps); i++) {
        size_t row = (t + i) * s->B + ld->rows.from;
        pack_share(
            ld, (struct lb_tile_rows){.from = lb_cpu_at(s, ld->in, row * ld->input),
                                      .count = at_once ? steps * ld->row_count : ld->row_count,
                                      .k = ld->input,
                                      .stride = ld->input,
                                      .group_rows = fused ? ld->group_rows : LB_TILE_ROWS,
                                      .first = fused ? 0 : i * ld->row_count,
                                      .factor = lb_int8_factor(ld->l == 0 ? s->buffers.x_max : 1),
                                      .operand = fused ? step_input(ld, i) : ld->tile_x});
    }
    lb_cpu_end_step(s);
    if (fused || ld->row_count == 0)
        return;
    struct lb_tile_gemm gemm = gemm_of(ld);
    gemm.terms[0] = (struct lb_tile_terms){ld->tile_x, ld->w.w_ih, ld->plan.x_tiles, ld->input};
    gemm.rows = steps * ld->row_count;
    gemm.sums = ld->tile_pre;
    gemm.sums_panel = tile_pre_rows(ld) * s->width;
    gemm.sums_column = tile_pre_rows(ld) * s->simd_width;
    gemm.sums_row = s->simd_width;
    s->kernels->tiles->gemm(&gemm);
}

void lb_cpu_tiles_step(const struct lb_cpu_layer_dir *ld, size_t t, size_t at, size_t number)
{
    const struct lb_cpu_simd *s = ld->s;
    struct lb_cpu_range units = lb_cpu_units(s, ld->panels);
    bool int8 = s->problem.dtype == LB_INT8;
    size_t first = ld->rows.from, row = t * s->B + first;
    size_t to = lb_cpu_active_to(s, ld->rows, t);
    struct lb_tile_pass pass = {
        .gemm = gemm_of(ld),
        .cell = {.hidden = s->H,
                 .state = ld->tile_state,
                 .state_rows = ld->row_count,
                 .next_operand = ld->operand[1 - number % 2],
                 .operand_tiles = ld->plan.h_tiles,
                 .h = lb_cpu_at(s, ld->y, row * s->wide),
                 .h_stride = s->wide,
                 .scale = int8 ? (const float *)(const void *)ld->w.scale : NULL,
                 .bias = int8 ? (const float *)(const void *)ld->w.bias : NULL},
    };
    pass.gemm.terms[1] =
        (struct lb_tile_terms){ld->operand[number % 2], ld->w.w_hh, ld->plan.h_tiles, s->H};
    pass.gemm.rows = to - first;
    pass.gemm.group_rows = ld->group_rows;
    pass.gemm.backwards = number % 2; /* begins with the weights that were read last */
    if (ld->plan.fused) {
        pass.gemm.terms[0] =
            (struct lb_tile_terms){step_input(ld, at), ld->w.w_ih, ld->plan.x_tiles, ld->input};
    } else {
        pass.gemm.prefetch = true;
        pass.gemm.start = ld->tile_pre + at * ld->row_count * s->simd_width;
        pass.gemm.start_panel = tile_pre_rows(ld) * s->width;
        pass.gemm.start_column = tile_pre_rows(ld) * s->simd_width;
        pass.gemm.start_row = s->simd_width;
    }
    if (s->kept_gates) {
        pass.cell.gates = lb_cpu_gates(s, ld->index, 0, row);
        pass.cell.gates_stride = s->rows * s->width;
        pass.cell.cells = (float *)(void *)lb_cpu_sum_at(s, ld->c, row * s->H);
    }
    if (to > first)
        s->kernels->tiles->forward(&pass);
    lb_cpu_clear_ended(ld, to, lb_cpu_at(s, ld->y, t * s->B * s->wide + units.from), s->wide,
                       units.to - units.from);
}

/* Gradients of h: those of the step after, times w_hh. */
static struct lb_tile_gemm gradient_gemm(const struct lb_cpu_layer_dir *ld, const char *da,
                                         size_t rows)
{
    const struct lb_cpu_simd *s = ld->s;
    return (struct lb_tile_gemm){
        .terms = {{0}, {da, ld->w.back_hh, s->gates / LB_TILE_DEPTH}},
        .start = lb_cpu_zeros(),
        .rows = rows,
        .group_rows = ld->group_rows,
        .pairs = s->group / 2,
        .panels_from = ld->groups.from,
        .panels_to = ld->groups.to,
    };
}

/* This thread's part of step t, the number'th that is computed. */
static void backward_step(const struct lb_cpu_layer_dir *ld, size_t t, size_t number)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t first = ld->rows.from, row = t * s->B + first, to = lb_cpu_active_to(s, ld->rows, t);
    struct lb_tile_pass pass = {
        .gemm = gradient_gemm(ld, ld->operand[number % 2], to - first),
        .cell = {.hidden = s->H,
                 .state = ld->tile_state,
                 .state_rows = ld->row_count,
                 .next_operand = ld->operand[1 - number % 2],
                 .operand_tiles = s->gates / LB_TILE_DEPTH,
                 .h = lb_cpu_at(s, ld->dy, row * s->wide),
                 .h_stride = s->wide,
                 .gates = lb_cpu_gates(s, ld->index, 0, row),
                 .gates_stride = s->rows * s->width,
                 .cells = (float *)(void *)lb_cpu_sum_at(s, ld->c, row * s->H),
                 .c_before = ld->c_before + first,
                 .dhn = ld->dhn + first},
    };
    pass.gemm.backwards = number % 2;
    pass.gemm.prefetch = true;
    if (number == 0)
        pass.gemm.terms[1].tiles = 0;
    lb_cpu_find_states(ld, t, to);
    if (to > first)
        s->kernels->tiles->backward(&pass);
    lb_cpu_close_step(ld, ld->panels, ld->rows, t, to);
}

/* Rows of gradients of a over all panels, whose rows are `panel_rows` in a panel. */
static struct lb_tile_rows gradient_rows(const struct lb_cpu_simd *s, const char *from,
                                         size_t panel_rows, size_t count, char *operand)
{
    return (struct lb_tile_rows){.from = from,
                                 .count = count,
                                 .k = s->gates,
                                 .stride = s->width,
                                 .segment = s->width,
                                 .segment_stride = panel_rows * s->width,
                                 .group_rows = LB_TILE_ROWS,
                                 .operand = operand};
}

/* All steps in reverse, down to dh0 and dc0. The gradients of the step after the last one are zero:
 * a ragged row of the first direction begins later, and nothing writes its operand until then. */
void lb_cpu_tiles_backward(const struct lb_cpu_layer_dir *ld)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t first = ld->rows.from;
    struct lb_cpu_range share = lb_cpu_columns(s, s->tiles.da_bytes, ld->thread);
    for (size_t buffer = 0; buffer < 2; buffer++)
        memset(ld->operand[buffer] + share.from, 0, share.to - share.from);
    lb_cpu_convert_c0(ld);
    load_state(ld, ld->back->dcn);
    lb_cpu_end_step(s);
    for (size_t i = 0; i < s->T; i++) {
        backward_step(ld, ld->d == 0 ? s->T - 1 - i : i, i);
        lb_cpu_end_step(s);
    }
    struct lb_tile_rows rows = gradient_rows(s, lb_cpu_at(s, s->first, first * s->width), s->B,
                                             ld->row_count, ld->operand[0]);
    rows.group_rows = ld->group_rows;
    pack_share(ld, rows);
    lb_cpu_end_step(s);
    if (ld->row_count > 0)
        s->kernels->tiles->product(&(struct lb_tile_pass){
            .gemm = gradient_gemm(ld, ld->operand[0], ld->row_count),
            .cell = {.hidden = s->H,
                     .h = lb_cpu_at(s, ld->back->dh0, ld->h_at + first * s->H),
                     .h_stride = s->H},
        });
    lb_cpu_tiles_store_state(ld, ld->back->dc0);
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
static void transpose(const struct lb_cpu_simd *s, const struct factor *f, size_t from,
                      size_t count)
{
    size_t skip = from < f->skip ? f->skip - from : 0, end = f->skip + f->rows;
    size_t begin = from < f->skip ? 0 : from - f->skip, left = end > from ? end - from : 0;
    struct lb_cpu_outer o = {
        .rows = lb_cpu_least(left, count),
        .skip = skip,
        .columns = f->columns.to - f->columns.from,
        .in = lb_cpu_at(s, f->in, begin * f->stride + f->columns.from),
        .stride = f->stride,
    };
    s->kernels->tiles->transpose(&o, count, f->operand);
}

static void multiply(const struct lb_cpu_simd *s, const struct factor *f, size_t panel,
                     const char *weights, size_t tiles, bool add)
{
    size_t row = panel * lb_cpu_gradient_columns(s, f->dw_columns) + f->columns.from;
    float *dw = (float *)(void *)lb_cpu_sum_at(s, f->dw, row * s->width);
    s->kernels->tiles->gemm(&(struct lb_tile_gemm){
        .terms = {{.a = f->operand, .w = weights, .tiles = tiles}},
        .start = add ? dw : lb_cpu_zeros(),
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

static struct slab slab_of(const struct lb_cpu_simd *s)
{
    enum { BYTES = 1 << 20, MANY_ROWS = 512, MOST_ROWS = 1024 };
    size_t widest = lb_cpu_widest_input(s), all = widest + s->H;
    size_t rows = BYTES / s->elem / all / LB_TILE_DEPTH * LB_TILE_DEPTH;
    size_t most = lb_cpu_least(s->rows, MOST_ROWS);
    if (rows >= MANY_ROWS || rows >= s->rows)
        return (struct slab){lb_cpu_least(rows, most), widest > s->H ? widest : s->H};
    return (struct slab){most, BYTES / s->elem / 2 / most / LB_TILE_DEPTH * LB_TILE_DEPTH};
}

/* Bytes of an operand of so many columns, or of a panel's gradients as weights. */
static size_t operand_bytes(const struct lb_cpu_simd *s, size_t columns)
{
    return lb_cpu_cover(columns, LB_TILE_ROWS) * LB_TILE_ROWS *
           lb_cpu_cover(slab_of(s).rows, LB_TILE_DEPTH) * LB_TILE_DEPTH * s->elem;
}

size_t lb_cpu_tiles_packed_bytes(const struct lb_cpu_simd *s)
{
    return 2 * operand_bytes(s, slab_of(s).columns) + operand_bytes(s, s->width);
}

/* This thread's part of the products of gradients da [panels, rows, width] with up to two factors.
 * db: NULL, or receives the sums over rows. */
static void products(const struct lb_cpu_layer_dir *ld, const char *da, size_t rows, char *db,
                     const struct factor *factors, size_t factor_count, bool add)
{
    const struct lb_cpu_simd *s = ld->s;
    struct slab slab = slab_of(s);
    struct lb_cpu_range own[2], panels = lb_cpu_own_panels(s, ld->thread, s->panels);
    size_t most = 0, operand = operand_bytes(s, slab.columns);
    for (size_t i = 0; i < factor_count; i++) {
        own[i] = lb_cpu_own_columns(s, ld->thread, factors[i].dw_columns);
        most = larger(most, own[i].to - own[i].from);
    }
    for (size_t from = 0, count; from < rows && panels.from < panels.to; from += count) {
        count = lb_cpu_least(rows - from, slab.rows);
        for (size_t begin = 0; begin == 0 || begin < most; begin += slab.columns) {
            struct factor parts[2];
            for (size_t i = 0; i < factor_count; i++) {
                size_t first = own[i].from + begin, end = first + slab.columns;
                parts[i] = factors[i];
                parts[i].operand = s->packed + ld->thread * s->packed_bytes + i * operand;
                parts[i].columns = (struct lb_cpu_range){lb_cpu_least(first, own[i].to),
                                                         lb_cpu_least(end, own[i].to)};
                transpose(s, &parts[i], from, count);
            }
            char *weights = parts[0].operand + 2 * operand;
            bool sums = db && begin == 0 && ld->thread % s->column_parts == 0;
            for (size_t p = panels.from; p < panels.to; p++) {
                struct lb_cpu_outer o = {
                    .rows = count,
                    .da = lb_cpu_at(s, da, (p * rows + from) * s->width),
                    .db = sums ? lb_cpu_sum_at(s, db, p * s->width) : NULL,
                    .add = add || from > 0,
                };
                s->kernels->tiles->pair(&o, weights);
                if (sums)
                    s->kernels->tiles->sum_rows(&o);
                for (size_t i = 0; i < factor_count; i++)
                    multiply(s, &parts[i], p, weights, lb_cpu_cover(count, LB_TILE_DEPTH), o.add);
            }
        }
    }
}

/* Gradients of a, and y, are zero where a row has no step. So one GEMM covers all steps, with y of
 * the step before as the state h before each step; another covers h0 at each row's first step. */
void lb_cpu_tiles_weights(const struct lb_cpu_layer_dir *ld)
{
    const struct lb_cpu_simd *s = ld->s;
    struct lb_cpu_gradients g = lb_cpu_gradients_of(s, ld->index);
    size_t second = ld->d == 0 ? s->B : 0; /* row of the second step */
    struct factor factors[] = {
        {.in = ld->in,
         .rows = s->rows,
         .stride = ld->input,
         .dw = g.dw_ih,
         .dw_columns = ld->input},
        {.in = lb_cpu_at(s, ld->y, (s->B - second) * s->wide),
         .skip = second,
         .rows = s->rows - s->B,
         .stride = s->wide,
         .dw = g.dw_hh,
         .dw_columns = s->H},
    };
    struct factor start = {
        .in = ld->h0, .rows = s->B, .stride = s->H, .dw = g.dw_hh, .dw_columns = s->H};
    products(ld, lb_cpu_gates(s, ld->index, 0, 0), s->rows, g.db, factors, 2, false);
    products(ld, s->first, s->B, NULL, &start, 1, true);
}

/* The sum over directions of gradients of a times w_ih. */
void lb_cpu_tiles_inputs(const struct lb_cpu_call *call, size_t l, size_t thread, char *dinput)
{
    const struct lb_cpu_simd *s = call->s;
    struct lb_cpu_range rows = lb_cpu_share(s->rows, s->threads, thread);
    size_t input = lb_cpu_input(s, l * s->D), count;
    for (size_t row = rows.from; row < rows.to; row += count) {
        struct lb_tile_pass pass = {
            .gemm = {.start = lb_cpu_zeros(),
                     .group_rows = LB_TILE_ROWS,
                     .pairs = 2,
                     .panels_to = lb_cpu_cover(input, s->width)},
            .cell = {.hidden = input, .h = lb_cpu_at(s, dinput, row * input), .h_stride = input},
        };
        count = lb_cpu_least(rows.to - row, DX_ROWS);
        pass.gemm.rows = count;
        for (size_t d = 0; d < s->D; d++) {
            size_t index = l * s->D + d;
            char *a = s->tiles.dx + thread * s->tiles.dx_bytes + d * s->tiles.dx_bytes / s->D;
            struct lb_tile_rows da =
                gradient_rows(s, lb_cpu_gates(s, index, 0, row), s->rows, count, a);
            s->kernels->tiles->pack(&da, 0, count);
            pass.gemm.terms[1 - d] =
                (struct lb_tile_terms){.a = a,
                                       .w = lb_cpu_weights_of(s, s->copy_of[thread], index).back_ih,
                                       .tiles = s->gates / LB_TILE_DEPTH};
        }
        s->kernels->tiles->product(&pass);
    }
}
