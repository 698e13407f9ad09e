/* cpu_simd, backward: the steps, a group of panels at a time; then GEMMs over all steps for the
 * gradients of weights and inputs. */
#include <string.h>

#include "impls/cpu_simd/cpu_simd.h"

/* One layer and direction, with the part of the work of one thread. */
struct layer_dir {
    struct lb_cpu_part part;
    const struct lb_backward_io *io;
    char *sums;                   /* scratch of this thread */
    struct lb_cpu_range groups;   /* of panels, of this thread in a step */
    struct lb_cpu_range h_groups; /* the same of columns of h */
    const char *cells;            /* [T, B, H] */
    const char *dy;               /* [T, B, D*P], at this direction's first unit */
    const char *dhn, *dcn;        /* [B, P], [B, H] */
    const char *mask;             /* [B, H]; NULL: none */
    char *dh0, *dc0;
    char *dc;                        /* [B, H] of sum_elem bytes */
    const void **c_before, **dhn_of; /* [B] of this thread */
};

static struct layer_dir open_layer_dir(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_backward_io *io = call->backward;
    const struct lb_cpu_sizes *s = &simd->s;
    const struct lb_cpu_part part = lb_cpu_part_of(simd, index, thread, io->c0);
    size_t state = index * s->B * s->H, l = part.l, d = part.d, h_state = index * s->B * s->P;
    size_t columns = s->group * s->simd_width;
    return (struct layer_dir){
        .part = part,
        .io = io,
        .sums = lb_cpu_sum_at(simd, simd->sums, thread * simd->sum_count),
        .groups = lb_cpu_columns(simd, lb_cpu_cover(s->panels, s->group), thread),
        .h_groups = lb_cpu_columns(simd, lb_cpu_cover(s->P, columns), thread),
        .cells = lb_cpu_sum_at(simd, simd->cells, index * s->rows * s->H),
        .dy = lb_cpu_at(simd, l == s->L - 1 ? io->dy : simd->between, d * s->P),
        .mask = simd->h0 ? lb_cpu_at(simd, io->mask, state) : NULL,
        .dhn = lb_cpu_at(simd, io->dhn, h_state),
        .dcn = lb_cpu_at(simd, io->dcn, state),
        .dh0 = lb_cpu_at(simd, io->dh0, h_state),
        .dc0 = lb_cpu_at(simd, io->dc0, state),
        .dc = simd->half ? lb_cpu_sum_at(simd, simd->dc, state) : lb_cpu_at(simd, io->dc0, state),
        .c_before = part.pointers,
        .dhn_of = part.pointers + s->B,
    };
}

/* Rows [count] of k elements in panels of `width` columns, from one row on; a panel has `rows`
 * rows.
 */
static struct lb_cpu_rows panel_rows(const struct lb_cpu_simd *simd, const void *from, size_t rows,
                                     size_t thread, size_t count, size_t k)
{
    size_t width = simd->s.width;
    struct lb_cpu_rows in = {
        .base = from, .stride = width, .segment = width, .segment_stride = rows * width};
    return lb_cpu_operand(simd, thread, in, 0, count, k);
}

/* Rows of gradients of a over all panels. */
static struct lb_cpu_rows gradient_rows(const struct lb_cpu_simd *simd, const void *from,
                                        size_t rows, size_t thread, size_t count)
{
    return panel_rows(simd, from, rows, thread, count, simd->s.gates);
}

/* The arguments that all calls for a group of columns share: of h, which come from gradients of a,
 * or, of the cell projection, of units, which come from those of h. Rows are this thread's up to
 * `to`. */
static struct lb_cpu_backward group_of(const struct layer_dir *ld, size_t group, size_t to,
                                       bool of_h)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t columns = s->group * s->simd_width, first = group * columns, all = of_h ? s->P : s->H;
    size_t k = of_h ? s->gates : lb_cpu_padded(simd, s->P);
    return (struct lb_cpu_backward){
        .gemm = {.rows = to - ld->part.rows.from,
                 .k = of_h ? s->gates : s->P,
                 .columns = all - first < columns ? all - first : columns,
                 .w = lb_cpu_at(simd, of_h ? ld->part.w.back_hh : ld->part.w.back_cell, first * k),
                 .sums = ld->sums,
                 .stride = s->width},
        .first = first,
        .c_stride = s->H,
    };
}

/* Finds the cell states before step t of this thread's rows up to `to`, and the gradients dhn of
 * rows whose last step it is. */
static void find_states(const struct layer_dir *ld, size_t t, size_t to)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    for (size_t b = ld->part.rows.from; b < to; b++) {
        size_t before = (ld->part.d == 0 ? t - 1 : t + 1) * s->B + b;
        ld->c_before[b] = t == lb_cpu_first_step(simd, ld->part.d, b)
                              ? lb_cpu_sum_at(simd, ld->part.c0, b * s->H)
                              : lb_cpu_sum_at(simd, ld->cells, before * s->H);
        ld->dhn_of[b] =
            t == lb_cpu_last_step(simd, ld->part.d, b) ? lb_cpu_at(simd, ld->dhn, b * s->P) : NULL;
    }
}

/* In these panels and rows: zeroes gradients of a at step t in rows from `to` on, which have no
 * such step, and copies those of rows whose first step it is to `first`. */
static void close_step(const struct layer_dir *ld, struct lb_cpu_range panels,
                       struct lb_cpu_range rows, size_t t, size_t to)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t bytes = s->width * simd->elem;
    for (size_t p = panels.from; p < panels.to && p < s->panels; p++)
        for (size_t b = rows.from; b < rows.to; b++) {
            char *row = lb_cpu_gates(simd, ld->part.index, p, t * s->B + b);
            if (b >= to)
                memset(row, 0, bytes);
            else if (t == lb_cpu_first_step(simd, ld->part.d, b))
                memcpy(lb_cpu_at(simd, simd->first, (p * s->B + b) * s->width), row, bytes);
        }
}

/* The cells of one group of panels at step t: f has the GEMM of their gradients of h. */
static void cells(const struct layer_dir *ld, struct lb_cpu_backward *f, size_t group, size_t t,
                  size_t to)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t from = ld->part.rows.from, row = t * s->B + from;
    bool peephole = simd->problem.cell == LB_CELL_PEEPHOLE;
    f->gates = lb_cpu_gates(simd, ld->part.index, s->group * group, row);
    f->panel_stride = simd->gate_rows * s->width;
    f->c = lb_cpu_sum_at(simd, ld->cells, row * s->H);
    f->c_before = ld->c_before + from;
    f->dc = lb_cpu_sum_at(simd, ld->dc, from * s->H);
    f->peepholes = peephole ? ld->part.w.cell : NULL;
    f->padded_units = s->units;
    f->cell_sums = lb_cpu_sum_at(simd, simd->cell_sums, from * 3 * s->units);
    if (to > from)
        simd->kernels->backward(f);
    close_step(ld, (struct lb_cpu_range){s->group * group, s->group * (group + 1)}, ld->part.rows,
               t, to);
}

/* The cells of the cell layernorm at step t, in this thread's share of its team's rows, from the
 * gradients of h. */
static void normalised_cells(const struct layer_dir *ld, size_t t, size_t to)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t first = ld->part.rows.from;
    struct lb_cpu_range own = lb_cpu_columns(simd, ld->part.rows.to - first, ld->part.thread);
    struct lb_cpu_range rows = {first + own.from, first + own.to};
    size_t row = t * s->B + rows.from, kept = ld->part.index * s->rows + row;
    simd->kernels->layernorm_backward(&(struct lb_cpu_layernorm){
        .rows = to < rows.from ? 0 : (to < rows.to ? to : rows.to) - rows.from,
        .units = s->H,
        .padded_units = s->units,
        .weights = ld->part.w.cell,
        .gates = lb_cpu_gates(simd, ld->part.index, 0, row),
        .gates_stride = simd->gate_rows * s->width,
        .c_before = ld->c_before + rows.from,
        .c = lb_cpu_sum_at(simd, ld->cells, row * s->H),
        .c_stride = s->H,
        .norm = lb_cpu_sum_at(simd, simd->norm, kept * simd->norm_count),
        .dh = lb_cpu_at(simd, simd->dh, rows.from * s->H),
        .dhn = ld->dhn_of + rows.from,
        .dc = lb_cpu_sum_at(simd, ld->dc, rows.from * s->H),
        .cell_sums = lb_cpu_sum_at(simd, simd->cell_sums, rows.from * 10 * s->units),
        .scratch = lb_cpu_sum_at(simd, simd->scratch, ld->part.thread * 5 * s->units),
    });
    close_step(ld, (struct lb_cpu_range){0, s->panels}, rows, t, to);
}

/* From the gradients dh of the cell projection to those of its units, and their cells. */
static void projected_cells(const struct layer_dir *ld, size_t t, size_t to)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t from = ld->part.rows.from;
    const char *dh = lb_cpu_at(simd, simd->dh, (t * s->B + from) * s->width);
    struct lb_cpu_rows rows = panel_rows(simd, dh, s->rows, ld->part.thread, to - from, s->P);
    for (size_t group = ld->groups.from; group < ld->groups.to; group++) {
        struct lb_cpu_backward f = group_of(ld, group, to, false);
        f.gemm.a = rows;
        f.dhn = ld->dhn_of + from;
        cells(ld, &f, group, t, to);
    }
}

/* Where the gradients of these columns of h go at step t, from the team's first row on; sets the
 * stride of rows. */
static char *dh_at(const struct layer_dir *ld, size_t first, size_t t, size_t *stride)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t from = ld->part.rows.from, panel = first / s->width;
    *stride = s->H;
    if (simd->problem.cell == LB_CELL_LAYERNORM)
        return lb_cpu_at(simd, simd->dh, from * s->H + first);
    *stride = s->width;
    size_t row = panel * s->rows + t * s->B + from;
    return simd->dh ? lb_cpu_at(simd, simd->dh, row * s->width + first % s->width) : NULL;
}

/* This thread's part of step t; later: whether a step after it was done. */
static void step(const struct layer_dir *ld, size_t t, bool later)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t from = ld->part.rows.from, to = lb_cpu_active_to(simd, ld->part.rows, t),
           row = t * s->B + from;
    struct lb_cpu_rows da = {0};
    find_states(ld, t, to);
    if (later)
        da = gradient_rows(
            simd, lb_cpu_gates(simd, ld->part.index, 0, ld->part.d == 0 ? row + s->B : row - s->B),
            simd->gate_rows, ld->part.thread, to - from);
    for (size_t group = ld->h_groups.from; group < ld->h_groups.to; group++) {
        struct lb_cpu_backward f = group_of(ld, group, to, true);
        f.gemm.a = da;
        f.gemm.k = later ? s->gates : 0;
        f.dhn = ld->dhn_of + from;
        f.dy = lb_cpu_at(simd, ld->dy, row * s->wide + f.first);
        f.dy_stride = s->wide;
        f.mask = ld->mask ? lb_cpu_at(simd, ld->mask, from * s->H) : NULL;
        f.dh = dh_at(ld, f.first, t, &f.dh_stride);
        if (!f.dh)
            cells(ld, &f, group, t, to);
        else if (to > from)
            simd->kernels->backward(&f);
        if (simd->problem.cell == LB_CELL_PROJECTION)
            for (size_t b = to; b < ld->part.rows.to; b++)
                memset(lb_cpu_at(simd, f.dh, (b - from) * f.dh_stride), 0,
                       f.gemm.columns * simd->elem);
    }
    if (simd->dh)
        lb_cpu_end_step(simd);
    if (simd->problem.cell == LB_CELL_LAYERNORM)
        normalised_cells(ld, t, to);
    if (simd->problem.cell == LB_CELL_PROJECTION)
        projected_cells(ld, t, to);
}

/* This thread's hidden units, and those of its rows. */
static struct lb_cpu_range units_of(const struct layer_dir *ld)
{
    const struct lb_cpu_sizes *s = &ld->part.simd->s;
    size_t columns = s->group * s->simd_width;
    size_t from = ld->groups.from * columns, to = ld->groups.to * columns;
    return (struct lb_cpu_range){from, to > s->H ? s->H : to};
}

/* This thread's part of dcn becomes dc; where the dtype is not that of sums, c0 is converted too.
 */
static void start_steps(const struct layer_dir *ld)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_range units = units_of(ld);
    if (simd->half) {
        const char *c0 = lb_cpu_at(simd, ld->io->c0, ld->part.index * s->B * s->H);
        lb_cpu_state_to_f32(simd, ld->dcn, ld->dc, ld->part.rows, units);
        lb_cpu_state_to_f32(simd, c0, lb_cpu_sum_at(simd, ld->part.c0, 0), ld->part.rows, units);
        return;
    }
    for (size_t b = ld->part.rows.from; b < ld->part.rows.to && units.from < units.to; b++)
        memcpy(lb_cpu_at(simd, ld->dc, b * s->H + units.from),
               lb_cpu_at(simd, ld->dcn, b * s->H + units.from),
               (units.to - units.from) * simd->elem);
}

/* All steps of a layer_dir in reverse, down to dh0 and dc0. */
static void steps(const struct layer_dir *ld)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t rows = ld->part.rows.to - ld->part.rows.from;
    start_steps(ld);
    for (size_t i = 0; i < s->T; i++) {
        step(ld, ld->part.d == 0 ? s->T - 1 - i : i, i > 0);
        lb_cpu_end_step(simd);
    }
    struct lb_cpu_rows da =
        gradient_rows(simd, lb_cpu_at(simd, simd->first, ld->part.rows.from * s->width), s->B,
                      ld->part.thread, rows);
    for (size_t group = ld->h_groups.from; group < ld->h_groups.to && rows > 0; group++) {
        struct lb_cpu_backward f = group_of(ld, group, ld->part.rows.to, true);
        f.gemm.a = da;
        f.mask = ld->mask ? lb_cpu_at(simd, ld->mask, ld->part.rows.from * s->H) : NULL;
        f.dh = lb_cpu_at(simd, ld->dh0, ld->part.rows.from * s->P + f.first);
        f.dh_stride = s->P;
        simd->kernels->backward(&f);
    }
    if (simd->half)
        lb_cpu_state_from_f32(simd, ld->dc, ld->dc0, ld->part.rows, units_of(ld));
}

/* Number of rows per partial sum of weight gradients, and the bytes of these rows above which they
 * are packed first. */
enum { DEPTH = 512, MAX_UNPACKED_BYTES = 768 << 10 };

size_t lb_cpu_packed_bytes(const struct lb_cpu_simd *simd)
{
    const struct lb_cpu_sizes *s = &simd->s;
    size_t input = lb_cpu_widest_input(simd), rows = s->rows < DEPTH ? s->rows : DEPTH;
    size_t widest = input > s->H ? input : s->H, stride = s->wide > widest ? s->wide : widest;
    size_t group = simd->kernels->group, block = lb_cpu_column_block(simd);
    size_t parts = (size_t)simd->tiling.column_parts;
    size_t own = parts > 1 ? lb_cpu_cover(lb_cpu_cover(widest, block), parts) * block
                           : lb_cpu_cover(widest, group) * group;
    if (simd->half)
        return (lb_cpu_padded(simd, rows) * own * simd->kernels->operand_size + 63) / 64 * 64;
    return rows * stride * simd->elem > MAX_UNPACKED_BYTES ? rows * own * simd->elem : 0;
}

/* GEMM over steps: dw [panels, columns, width] = in [rows, columns] transposed, times da. */
struct outer {
    size_t rows, panels;
    const char *in;
    size_t columns, stride; /* of in */
    const char *da;         /* the first row of the first panel */
    size_t da_rows;         /* number of rows per panel */
    char *dw, *db;          /* db may be NULL */
    bool add;               /* add to dw and db instead of overwriting them */
};

struct lb_cpu_range lb_cpu_own_columns(const struct lb_cpu_simd *simd, size_t thread,
                                       size_t columns)
{
    size_t parts = (size_t)simd->tiling.column_parts, block = lb_cpu_column_block(simd);
    struct lb_cpu_range blocks = lb_cpu_share(lb_cpu_cover(columns, block), parts, thread % parts);
    size_t from = blocks.from * block, to = blocks.to * block;
    return (struct lb_cpu_range){from, to < columns ? to : columns};
}

/* This thread's tile of that GEMM, DEPTH rows at a time. Where these rows of its columns of `in`
 * don't fit the L2 cache, they are first packed into the order in which each panel reads them. */
static void multiply(const struct lb_cpu_simd *simd, size_t thread, const struct outer *o)
{
    const struct lb_cpu_sizes *s = &simd->s;
    size_t parts = (size_t)simd->tiling.panel_parts,
           column_parts = (size_t)simd->tiling.column_parts;
    struct lb_cpu_range columns = lb_cpu_own_columns(simd, thread, o->columns);
    struct lb_cpu_range panels = {0, 0};
    if (thread < parts * column_parts && columns.from < columns.to)
        panels = lb_cpu_share(o->panels, parts, thread / column_parts);
    void *packed = simd->packed + thread * simd->packed_bytes;
    for (size_t from = 0; from < o->rows && panels.from < panels.to; from += DEPTH) {
        struct lb_cpu_outer part = {
            .rows = o->rows - from < DEPTH ? o->rows - from : DEPTH,
            .columns = columns.to - columns.from,
            .in = lb_cpu_at(simd, o->in, from * o->stride + columns.from),
            .stride = o->stride,
            .add = o->add || from > 0,
        };
        if (simd->half || part.rows * o->stride * simd->elem > MAX_UNPACKED_BYTES) {
            simd->kernels->pack(&part, packed);
            part.in = packed;
            part.packed = true;
        }
        for (size_t p = panels.from; p < panels.to; p++) {
            part.da = lb_cpu_at(simd, o->da, (p * o->da_rows + from) * s->width);
            part.dw = lb_cpu_sum_at(simd, o->dw, (p * o->columns + columns.from) * s->width);
            part.db = o->db && columns.from == 0 ? lb_cpu_sum_at(simd, o->db, p * s->width) : NULL;
            simd->kernels->outer(&part);
        }
    }
}

/* This thread's part of w_cell's gradient. */
static void cell_gradients(const struct layer_dir *ld, size_t thread, char *dw)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    if (simd->problem.cell == LB_CELL_PROJECTION) {
        multiply(
            simd, thread,
            &(struct outer){.rows = s->rows,
                            .panels = s->h_panels,
                            .in = lb_cpu_at(simd, simd->hidden, ld->part.index * s->rows * s->H),
                            .columns = s->H,
                            .stride = s->H,
                            .da = simd->dh,
                            .da_rows = s->rows,
                            .dw = dw});
        return;
    }
    struct lb_cpu_range own = lb_cpu_share(simd->cell_rows * s->panels, simd->threads, thread);
    size_t first = own.from * s->simd_width;
    simd->kernels->sum(lb_cpu_sum_at(simd, simd->cell_sums, first), s->B,
                       (own.to - own.from) * s->simd_width, simd->cell_rows * s->units,
                       lb_cpu_sum_at(simd, dw, first));
}

/* This thread's tiles of the weight gradients of a layer_dir. Gradients of a, and h, are zero
 * where a row has no step. So one GEMM covers all steps, with h of the step before as the state
 * before each step; another covers h0 at each row's first step. */
static void weight_gradients(const struct layer_dir *ld, size_t thread)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_gradients g = lb_cpu_gradients_of(simd, ld->part.index);
    const char *in = ld->part.l == 0 ? ld->io->x : lb_cpu_output(simd, ld->io->y, ld->part.l - 1);
    const char *h = lb_cpu_at(simd, lb_cpu_states(simd, ld->io->y, ld->part.l), ld->part.d * s->P);
    const void *h0 = simd->h0 ? simd->h0 : ld->io->h0;
    multiply(simd, thread,
             &(struct outer){.rows = s->rows,
                             .panels = s->panels,
                             .in = in,
                             .columns = ld->part.input,
                             .stride = ld->part.input,
                             .da = lb_cpu_gates(simd, ld->part.index, 0, 0),
                             .da_rows = simd->gate_rows,
                             .dw = g.dw_ih,
                             .db = g.db});
    multiply(simd, thread,
             &(struct outer){.rows = s->B,
                             .panels = s->panels,
                             .in = lb_cpu_at(simd, h0, ld->part.index * s->B * s->P),
                             .columns = s->P,
                             .stride = s->P,
                             .da = simd->first,
                             .da_rows = s->B,
                             .dw = g.dw_hh});
    multiply(
        simd, thread,
        &(struct outer){.rows = s->rows - s->B,
                        .panels = s->panels,
                        .in = lb_cpu_at(simd, h, ld->part.d == 0 ? 0 : s->B * s->wide),
                        .columns = s->P,
                        .stride = s->wide,
                        .da = lb_cpu_gates(simd, ld->part.index, 0, ld->part.d == 0 ? s->B : 0),
                        .da_rows = simd->gate_rows,
                        .dw = g.dw_hh,
                        .add = true});
    if (simd->cell_rows > 0)
        cell_gradients(ld, thread, g.dw_cell);
}

/* The part of the input gradients of `count` rows that comes from a layer_dir; adds: to sums. */
static void add_input_gradients(const struct lb_cpu_simd *simd, size_t layer_dir, size_t thread,
                                size_t row, size_t count, bool adds, char *sums, size_t stride)
{
    const struct lb_cpu_sizes *s = &simd->s;
    const char *weights = lb_cpu_weights_of(simd, simd->copy_of[thread], layer_dir).back_ih;
    size_t input = lb_cpu_input(simd, layer_dir);
    struct lb_cpu_rows da =
        gradient_rows(simd, lb_cpu_gates(simd, layer_dir, 0, row), simd->gate_rows, thread, count);
    for (size_t first = 0; first < input; first += s->width)
        simd->kernels->accumulate(&(struct lb_cpu_gemm){
            .rows = count,
            .k = s->gates,
            .columns = input - first < s->width ? input - first : s->width,
            .a = da,
            .w = lb_cpu_at(simd, weights, first * s->gates),
            .bias = adds ? NULL : lb_cpu_zeros(),
            .sums = lb_cpu_sum_at(simd, sums, first),
            .stride = stride,
        });
}

/* A row of the gradient of the input of a layer that adds it to its output: it starts from that of
 * the output, and may be in the same place. Rows that have ended stay zero. */
static void start_from_output(const struct lb_cpu_simd *simd, const void *dy, size_t row,
                              char *sums)
{
    const struct lb_cpu_sizes *s = &simd->s;
    const char *from = lb_cpu_at(simd, dy, row * s->wide);
    if (row / s->B >= lb_cpu_length(simd, row % s->B))
        memset(sums, 0, s->wide * simd->sum_elem);
    else if (simd->half)
        simd->kernels->to_f32(from, (float *)(void *)sums, s->wide);
    else if (from != sums)
        memcpy(sums, from, s->wide * simd->elem);
}

/* This thread's rows of the gradient of a layer's input [T, B, I_l], in chunks, so that gradients
 * of a stay in the cache while all columns are computed. */
static void input_gradients(const struct lb_cpu_call *call, size_t l, size_t thread, char *dinput)
{
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    const void *dy = l == s->L - 1 ? call->backward->dy : simd->between;
    bool adds = lb_cpu_adds_input(simd, l);
    struct lb_cpu_range rows = lb_cpu_share(s->rows, simd->threads, thread);
    size_t input = lb_cpu_input(simd, l * s->D), count;
    size_t most = lb_cpu_gradient_rows(simd, input);
    size_t stride = simd->half ? lb_cpu_cover(input, s->simd_width) * s->simd_width : input;
    char *scratch = lb_cpu_sum_at(simd, simd->sums, thread * simd->sum_count);
    for (size_t row = rows.from; row < rows.to; row += count) {
        char *out = lb_cpu_at(simd, dinput, row * input), *sums = simd->half ? scratch : out;
        count = rows.to - row < most ? rows.to - row : most;
        for (size_t r = 0; r < count && adds; r++)
            start_from_output(simd, dy, row + r, lb_cpu_sum_at(simd, sums, r * stride));
        for (size_t d = 0; d < s->D; d++)
            add_input_gradients(simd, l * s->D + d, thread, row, count, adds || d > 0, sums,
                                stride);
        for (size_t r = 0; r < count && simd->half; r++)
            simd->kernels->from_f32((const float *)(const void *)sums + r * stride,
                                    lb_cpu_at(simd, out, r * input), input);
    }
}

static void layer_dir_steps(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    struct layer_dir ld = open_layer_dir(call, index, thread);
    steps(&ld);
}

static void layer_dir_weights(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    struct layer_dir ld = open_layer_dir(call, index, thread);
    weight_gradients(&ld, thread);
}

void lb_cpu_backward_layers(const struct lb_cpu_call *call, size_t thread,
                            const struct lb_cpu_backward_parts *parts)
{
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    for (size_t l = s->L; l-- > 0;) {
        for (size_t index = l * s->D; index < (l + 1) * s->D; index++) {
            parts->steps(call, index, thread);
            lb_pinned_threads_barrier(simd->pinned_threads); /* all gradients of a are written */
            parts->weights(call, index, thread);
            lb_pinned_threads_barrier(simd->pinned_threads); /* all threads have read `first` */
        }
        parts->inputs(call, l, thread, l == 0 ? call->backward->dx : simd->between);
        lb_pinned_threads_barrier(simd->pinned_threads);
    }
}

void lb_cpu_backward_work(void *arg, size_t thread)
{
    lb_cpu_backward_layers(
        arg, thread,
        &(struct lb_cpu_backward_parts){layer_dir_steps, layer_dir_weights, input_gradients});
}
