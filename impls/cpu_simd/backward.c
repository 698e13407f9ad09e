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
    const char *dy;               /* [T, B, D*P], at this direction's first unit */
    const char *mask;             /* [B, H]; NULL: none */
    char *dc;                     /* [B, H] of sum_elem bytes */
};

static struct layer_dir open_layer_dir(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_backward_io *io = call->backward;
    const struct lb_cpu_sizes *s = &simd->s;
    const struct lb_cpu_part part = lb_cpu_part_of(simd, index, thread, io->c0);
    size_t state = index * s->B * s->H, l = part.l, d = part.d;
    size_t columns = s->group * s->simd_width;
    return (struct layer_dir){
        .part = part,
        .io = io,
        .sums = lb_cpu_sum_at(simd, simd->sums, thread * simd->sum_count),
        .groups = lb_cpu_columns(simd, lb_cpu_cover(s->panels, s->group), thread),
        .h_groups = lb_cpu_columns(simd, lb_cpu_cover(s->P, columns), thread),
        .dy = lb_cpu_at(simd, l == s->L - 1 ? io->dy : simd->between, d * s->P),
        .mask = simd->h0 ? lb_cpu_at(simd, io->mask, state) : NULL,
        .dc = simd->half ? lb_cpu_sum_at(simd, simd->dc, state) : lb_cpu_at(simd, io->dc0, state),
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
    return lb_cpu_operand(simd, thread, in, count, k);
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
                 .columns = lb_cpu_least(all - first, columns),
                 .w = lb_cpu_at(simd, of_h ? ld->part.w.back_hh : ld->part.w.back_cell, first * k),
                 .sums = ld->sums,
                 .stride = s->width},
        .first = first,
        .c_stride = s->H,
    };
}

void lb_cpu_find_states(const struct lb_cpu_part *part, const struct lb_backward_io *io, size_t t,
                        size_t to)
{
    const struct lb_cpu_simd *simd = part->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    for (size_t b = part->rows.from; b < to; b++) {
        size_t before = (part->d == 0 ? t - 1 : t + 1) * s->B + b;
        part->c_before[b] = t == lb_cpu_first_step(simd, part->d, b)
                                ? lb_cpu_sum_at(simd, part->c0, b * s->H)
                                : lb_cpu_sum_at(simd, part->cells, before * s->H);
        part->dhn[b] = t == lb_cpu_last_step(simd, part->d, b)
                           ? lb_cpu_at(simd, io->dhn, (part->index * s->B + b) * s->P)
                           : NULL;
    }
}

void lb_cpu_close_step(const struct lb_cpu_part *part, struct lb_cpu_range panels,
                       struct lb_cpu_range rows, size_t t, size_t to)
{
    const struct lb_cpu_simd *simd = part->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t bytes = s->width * simd->elem;
    for (size_t p = panels.from; p < panels.to && p < s->panels; p++)
        for (size_t b = rows.from; b < rows.to; b++) {
            char *row = lb_cpu_gates(simd, part->index, p, t * s->B + b);
            if (b >= to)
                memset(row, 0, bytes);
            else if (t == lb_cpu_first_step(simd, part->d, b))
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
    f->c = lb_cpu_sum_at(simd, ld->part.cells, row * s->H);
    f->c_before = ld->part.c_before + from;
    f->dc = lb_cpu_sum_at(simd, ld->dc, from * s->H);
    f->peepholes = peephole ? ld->part.w.cell : NULL;
    f->padded_units = s->units;
    f->cell_sums = lb_cpu_sum_at(simd, simd->cell_sums, from * 3 * s->units);
    if (to > from)
        simd->kernels->backward(f);
    lb_cpu_close_step(&ld->part, (struct lb_cpu_range){s->group * group, s->group * (group + 1)},
                      ld->part.rows, t, to);
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
        .rows = lb_cpu_active_to(simd, rows, t) - rows.from,
        .units = s->H,
        .padded_units = s->units,
        .weights = ld->part.w.cell,
        .gates = lb_cpu_gates(simd, ld->part.index, 0, row),
        .gates_stride = simd->gate_rows * s->width,
        .c_before = ld->part.c_before + rows.from,
        .c = lb_cpu_sum_at(simd, ld->part.cells, row * s->H),
        .c_stride = s->H,
        .norm = lb_cpu_sum_at(simd, simd->norm, kept * simd->norm_count),
        .dh = lb_cpu_at(simd, simd->dh, rows.from * s->H),
        .dhn = ld->part.dhn + rows.from,
        .dc = lb_cpu_sum_at(simd, ld->dc, rows.from * s->H),
        .cell_sums = lb_cpu_sum_at(simd, simd->cell_sums, rows.from * 10 * s->units),
        .scratch = lb_cpu_sum_at(simd, simd->scratch, ld->part.thread * 5 * s->units),
    });
    lb_cpu_close_step(&ld->part, (struct lb_cpu_range){0, s->panels}, rows, t, to);
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
        f.dhn = ld->part.dhn + from;
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
    lb_cpu_find_states(&ld->part, ld->io, t, to);
    if (later)
        da = panel_rows(
            simd, lb_cpu_gates(simd, ld->part.index, 0, ld->part.d == 0 ? row + s->B : row - s->B),
            simd->gate_rows, ld->part.thread, to - from, s->gates);
    for (size_t i = 0; i < ld->h_groups.to - ld->h_groups.from; i++) {
        size_t group =
            lb_cpu_backwards(t, to - from) ? ld->h_groups.to - 1 - i : ld->h_groups.from + i;
        struct lb_cpu_backward f = group_of(ld, group, to, true);
        f.gemm.a = da;
        f.gemm.k = later ? s->gates : 0;
        f.dhn = ld->part.dhn + from;
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

/* All steps of a layer_dir in reverse, down to dh0 and dc0. dc begins as dcn. */
static void steps(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct layer_dir opened = open_layer_dir(call, index, thread), *ld = &opened;
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    const struct lb_cpu_range own = ld->part.rows;
    const struct lb_cpu_range panels = {ld->groups.from * s->group, ld->groups.to * s->group};
    const struct lb_cpu_range units = lb_cpu_units(simd, panels);
    size_t state = index * s->B * s->H;
    lb_cpu_state_to_sums(simd, lb_cpu_at(simd, ld->io->dcn, state), ld->dc, own, units);
    if (simd->half)
        lb_cpu_state_to_sums(simd, lb_cpu_at(simd, ld->io->c0, state),
                             lb_cpu_sum_at(simd, ld->part.c0, 0), own, units);
    for (size_t i = 0; i < s->T; i++) {
        step(ld, ld->part.d == 0 ? s->T - 1 - i : i, i > 0);
        lb_cpu_end_step(simd);
    }
    struct lb_cpu_rows da = panel_rows(simd, lb_cpu_at(simd, simd->first, own.from * s->width),
                                       s->B, thread, own.to - own.from, s->gates);
    for (size_t group = ld->h_groups.from; group < ld->h_groups.to && own.to > own.from; group++) {
        struct lb_cpu_backward f = group_of(ld, group, own.to, true);
        f.gemm.a = da;
        f.mask = ld->mask ? lb_cpu_at(simd, ld->mask, own.from * s->H) : NULL;
        f.dh = lb_cpu_at(simd, ld->io->dh0, (index * s->B + own.from) * s->P + f.first);
        f.dh_stride = s->P;
        simd->kernels->backward(&f);
    }
    for (size_t b = own.from; b < own.to && simd->half; b++) /* else dc is dc0 */
        lb_cpu_from_sums(simd, lb_cpu_sum_at(simd, ld->dc, b * s->H + units.from),
                         lb_cpu_at(simd, ld->io->dc0, state + b * s->H + units.from),
                         units.to - units.from);
}

/* Number of rows per partial sum of weight gradients, and the bytes of these rows above which they
 * are packed first. */
enum { DEPTH = 512, MAX_UNPACKED_BYTES = 768 << 10 };

size_t lb_cpu_packed_bytes(const struct lb_cpu_simd *simd)
{
    const struct lb_cpu_sizes *s = &simd->s;
    size_t input = lb_cpu_widest_input(simd), rows = lb_cpu_least(s->rows, DEPTH);
    size_t widest = input > s->H ? input : s->H, stride = s->wide > widest ? s->wide : widest;
    size_t group = simd->kernels->group, block = lb_cpu_column_block(simd);
    size_t parts = simd->column_parts;
    size_t own = parts > 1 ? lb_cpu_cover(lb_cpu_cover(widest, block), parts) * block
                           : lb_cpu_cover(widest, group) * group;
    if (simd->half)
        return lb_cpu_cover(lb_cpu_padded(simd, rows) * own * simd->kernels->operand_size, 64) * 64;
    return rows * stride * simd->elem > MAX_UNPACKED_BYTES ? rows * own * simd->elem : 0;
}

struct lb_cpu_range lb_cpu_own_columns(const struct lb_cpu_simd *simd, size_t thread,
                                       size_t columns)
{
    size_t parts = simd->column_parts, block = lb_cpu_column_block(simd);
    struct lb_cpu_range blocks = lb_cpu_share(lb_cpu_cover(columns, block), parts, thread % parts);
    size_t from = blocks.from * block, to = blocks.to * block;
    return (struct lb_cpu_range){from, lb_cpu_least(to, columns)};
}

/* GEMM over steps: o->dw [panels, columns, width] = in [rows, columns] transposed, times da, whose
 * panels have da_rows rows. This computes the thread's tile, DEPTH rows at a time. Where these rows
 * of its columns of `in` don't fit the L2 cache, they are first packed into the order in which each
 * panel reads them. */
static void multiply(const struct lb_cpu_simd *simd, size_t thread, size_t all_panels,
                     size_t da_rows, const struct lb_cpu_outer *o)
{
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_range columns = lb_cpu_own_columns(simd, thread, o->columns);
    struct lb_cpu_range panels = lb_cpu_own_panels(simd, thread, all_panels);
    void *packed = simd->packed + thread * simd->packed_bytes;
    for (size_t from = 0; from < o->rows && panels.from < panels.to && columns.from < columns.to;
         from += DEPTH) {
        struct lb_cpu_outer part = *o;
        part.rows = lb_cpu_least(o->rows - from, DEPTH);
        part.columns = columns.to - columns.from;
        part.in = lb_cpu_at(simd, o->in, from * o->stride + columns.from);
        part.add = o->add || from > 0;
        if (simd->half || part.rows * o->stride * simd->elem > MAX_UNPACKED_BYTES) {
            simd->kernels->pack(&part, packed);
            part.in = packed;
            part.packed = true;
        }
        for (size_t p = panels.from; p < panels.to; p++) {
            part.da = lb_cpu_at(simd, o->da, (p * da_rows + from) * s->width);
            part.dw = lb_cpu_sum_at(simd, o->dw, (p * o->columns + columns.from) * s->width);
            part.db = o->db && columns.from == 0 ? lb_cpu_sum_at(simd, o->db, p * s->width) : NULL;
            simd->kernels->outer(&part);
        }
    }
}

/* This thread's part of w_cell's gradient. */
static void cell_gradients(const struct lb_cpu_simd *simd, size_t layer_dir, size_t thread,
                           char *dw)
{
    const struct lb_cpu_sizes *s = &simd->s;
    if (simd->problem.cell == LB_CELL_PROJECTION) {
        multiply(
            simd, thread, s->h_panels, s->rows,
            &(struct lb_cpu_outer){.rows = s->rows,
                                   .in = lb_cpu_at(simd, simd->hidden, layer_dir * s->rows * s->H),
                                   .columns = s->H,
                                   .stride = s->H,
                                   .da = simd->dh,
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
static void weight_gradients(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_backward_io *io = call->backward;
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_gradients g = lb_cpu_gradients_of(simd, index);
    size_t l = index / s->D, d = index % s->D, input = lb_cpu_input(simd, index);
    const char *h = lb_cpu_at(simd, lb_cpu_states(simd, io->y, l), d * s->P);
    const void *h0 = simd->h0 ? simd->h0 : io->h0;
    multiply(simd, thread, s->panels, simd->gate_rows,
             &(struct lb_cpu_outer){.rows = s->rows,
                                    .in = l == 0 ? io->x : lb_cpu_output(simd, io->y, l - 1),
                                    .columns = input,
                                    .stride = input,
                                    .da = lb_cpu_gates(simd, index, 0, 0),
                                    .dw = g.dw_ih,
                                    .db = g.db});
    multiply(simd, thread, s->panels, s->B,
             &(struct lb_cpu_outer){.rows = s->B,
                                    .in = lb_cpu_at(simd, h0, index * s->B * s->P),
                                    .columns = s->P,
                                    .stride = s->P,
                                    .da = simd->first,
                                    .dw = g.dw_hh});
    multiply(simd, thread, s->panels, simd->gate_rows,
             &(struct lb_cpu_outer){.rows = s->rows - s->B,
                                    .in = lb_cpu_at(simd, h, d == 0 ? 0 : s->B * s->wide),
                                    .columns = s->P,
                                    .stride = s->wide,
                                    .da = lb_cpu_gates(simd, index, 0, d == 0 ? s->B : 0),
                                    .dw = g.dw_hh,
                                    .add = true});
    if (simd->cell_rows > 0)
        cell_gradients(simd, index, thread, g.dw_cell);
}

/* The part of the input gradients of `count` rows that comes from a layer_dir; adds: to sums. */
static void add_input_gradients(const struct lb_cpu_simd *simd, size_t layer_dir, size_t thread,
                                size_t row, size_t count, bool adds, char *sums, size_t stride)
{
    const struct lb_cpu_sizes *s = &simd->s;
    const char *weights = lb_cpu_weights_of(simd, simd->copy_of[thread], layer_dir).back_ih;
    size_t input = lb_cpu_input(simd, layer_dir);
    struct lb_cpu_rows da = panel_rows(simd, lb_cpu_gates(simd, layer_dir, 0, row), simd->gate_rows,
                                       thread, count, s->gates);
    for (size_t first = 0; first < input; first += s->width)
        simd->kernels->accumulate(&(struct lb_cpu_gemm){
            .rows = count,
            .k = s->gates,
            .columns = lb_cpu_least(input - first, s->width),
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
    else if (from != sums)
        lb_cpu_to_sums(simd, from, sums, s->wide);
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
        count = lb_cpu_least(rows.to - row, most);
        for (size_t r = 0; r < count && adds; r++)
            start_from_output(simd, dy, row + r, lb_cpu_sum_at(simd, sums, r * stride));
        for (size_t d = 0; d < s->D; d++)
            add_input_gradients(simd, l * s->D + d, thread, row, count, adds || d > 0, sums,
                                stride);
        for (size_t r = 0; r < count && simd->half; r++)
            lb_cpu_from_sums(simd, lb_cpu_sum_at(simd, sums, r * stride),
                             lb_cpu_at(simd, out, r * input), input);
    }
}

static const struct lb_cpu_backward_parts without_tiles = {steps, weight_gradients,
                                                           input_gradients};

void lb_cpu_backward_work(void *arg, size_t thread)
{
    const struct lb_cpu_call *call = arg;
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    const struct lb_tile_kernels *tiles = simd->kernels->tiles;
    const struct lb_cpu_backward_parts *parts = tiles ? &lb_cpu_tiles_backward : &without_tiles;
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
    if (tiles)
        tiles->release();
}
