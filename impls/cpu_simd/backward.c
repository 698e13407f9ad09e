/* cpu_simd, backward: the steps, a group of panels at a time; then GEMMs over all steps for the
 * gradients of weights and inputs. */
#include <string.h>
#include <unistd.h>

#include "impls/cpu_simd/cpu_simd.h"

/* Rows [count] of k elements in panels of `width` columns, from one row on; a panel has `rows`
 * rows. */
static struct lb_cpu_rows panel_rows(const struct lb_cpu_layer_dir *ld, const void *from,
                                     size_t rows, size_t count, size_t k)
{
    size_t width = ld->s->width;
    struct lb_cpu_rows in = {
        .base = from, .stride = width, .segment = width, .segment_stride = rows * width};
    return lb_cpu_operand(ld, in, count, k);
}

/* The arguments that all calls for a group of columns share: of h, which come from gradients of a,
 * or, of the cell projection, of units, which come from those of h. Rows are this thread's up to
 * `to`. */
static struct lb_cpu_backward group_of(const struct lb_cpu_layer_dir *ld, size_t group, size_t to,
                                       bool of_h, struct lb_cpu_rows a)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t columns = s->group * s->simd_width, first = group * columns, from = ld->rows.from;
    size_t k = of_h ? s->gates : lb_cpu_padded(s, s->P);
    return (struct lb_cpu_backward){
        .gemm = {.rows = to - from,
                 .k = of_h ? s->gates : s->P,
                 .columns = lb_cpu_least((of_h ? s->P : s->H) - first, columns),
                 .a = a,
                 .w = lb_cpu_at(s, of_h ? ld->w.back_hh : ld->w.back_cell, first * k),
                 .sums = ld->sums,
                 .stride = s->width},
        .first = first,
        .dhn = ld->dhn + from,
        .mask = ld->mask ? lb_cpu_at(s, ld->mask, from * s->H) : NULL,
        .c_stride = s->H,
    };
}

void lb_cpu_find_states(const struct lb_cpu_layer_dir *ld, size_t t, size_t to)
{
    const struct lb_cpu_simd *s = ld->s;
    for (size_t b = ld->rows.from; b < to; b++) {
        size_t before = (ld->d == 0 ? t - 1 : t + 1) * s->B + b;
        bool first = t == lb_cpu_first_step(s, ld->d, b);
        ld->c_before[b] = first ? lb_cpu_sum_at(s, ld->c0, b * s->H)
                                : lb_cpu_sum_at(s, ld->c, (s->cells ? before : b) * s->H);
        if (!ld->back)
            ld->h_before[b] =
                first ? lb_cpu_at(s, ld->h0, b * s->P) : lb_cpu_at(s, ld->states, before * s->wide);
        else
            ld->dhn[b] = t == lb_cpu_first_step(s, 1 - ld->d, b)
                             ? lb_cpu_at(s, ld->back->dhn, ld->h_at + b * s->P)
                             : NULL;
    }
}

void lb_cpu_close_step(const struct lb_cpu_layer_dir *ld, struct lb_cpu_range panels,
                       struct lb_cpu_range rows, size_t t, size_t to)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t bytes = s->width * s->elem;
    for (size_t p = panels.from; p < panels.to && p < s->panels; p++)
        for (size_t b = rows.from; b < rows.to; b++) {
            char *row = lb_cpu_gates(s, ld->index, p, t * s->B + b);
            if (b >= to)
                memset(row, 0, bytes);
            else if (t == lb_cpu_first_step(s, ld->d, b))
                memcpy(lb_cpu_at(s, s->first, (p * s->B + b) * s->width), row, bytes);
        }
}

/* The cells of one group of panels at step t: f has the GEMM of their gradients of h. */
static void cells(const struct lb_cpu_layer_dir *ld, struct lb_cpu_backward f, size_t group,
                  size_t t, size_t to)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t from = ld->rows.from, row = t * s->B + from;
    f.gates = lb_cpu_gates(s, ld->index, s->group * group, row);
    f.panel_stride = s->rows * s->width;
    f.c = lb_cpu_sum_at(s, ld->c, row * s->H);
    f.c_before = ld->c_before + from;
    f.dc = lb_cpu_sum_at(s, ld->dc, from * s->H);
    f.peepholes = s->problem.cell == LB_CELL_PEEPHOLE ? ld->w.cell : NULL;
    f.padded_units = s->units;
    f.cell_sums = lb_cpu_sum_at(s, s->cell_sums, from * 3 * s->units);
    if (to > from)
        s->kernels->backward(&f);
    lb_cpu_close_step(ld, (struct lb_cpu_range){s->group * group, s->group * (group + 1)}, ld->rows,
                      t, to);
}

/* The cells of the cell layernorm at step t, in this thread's share of its team's rows, from the
 * gradients of h. */
static void normalised_cells(const struct lb_cpu_layer_dir *ld, size_t t)
{
    const struct lb_cpu_simd *s = ld->s;
    struct lb_cpu_range rows = lb_cpu_own_rows(ld, ld->rows.to), active = rows;
    active.to = lb_cpu_active_to(s, rows, t);
    struct lb_cpu_layernorm f = lb_cpu_layernorm_of(ld, active, t);
    f.dh = lb_cpu_at(s, s->dh, rows.from * s->H);
    f.dhn = ld->dhn + rows.from;
    f.dc = lb_cpu_sum_at(s, ld->dc, rows.from * s->H);
    f.cell_sums = lb_cpu_sum_at(s, s->cell_sums, rows.from * 10 * s->units);
    s->kernels->layernorm_backward(&f);
    lb_cpu_close_step(ld, (struct lb_cpu_range){0, s->panels}, rows, t, active.to);
}

/* From the gradients dh of the cell projection to those of its units, and their cells. */
static void projected_cells(const struct lb_cpu_layer_dir *ld, size_t t, size_t to)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t from = ld->rows.from;
    const char *dh = lb_cpu_at(s, s->dh, (t * s->B + from) * s->width);
    struct lb_cpu_rows rows = panel_rows(ld, dh, s->rows, to - from, s->P);
    for (size_t group = ld->groups.from; group < ld->groups.to; group++)
        cells(ld, group_of(ld, group, to, false, rows), group, t, to);
}

/* This thread's part of step t; later: whether a step after it was done. */
static void step(const struct lb_cpu_layer_dir *ld, size_t t, bool later)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t from = ld->rows.from, to = lb_cpu_active_to(s, ld->rows, t), row = t * s->B + from;
    struct lb_cpu_rows da = {0};
    lb_cpu_find_states(ld, t, to);
    if (later)
        da = panel_rows(ld, lb_cpu_gates(s, ld->index, 0, ld->d == 0 ? row + s->B : row - s->B),
                        s->rows, to - from, s->gates);
    for (size_t i = 0; i < ld->h_groups.to - ld->h_groups.from; i++) {
        size_t group =
            lb_cpu_backwards(t, to - from) ? ld->h_groups.to - 1 - i : ld->h_groups.from + i;
        struct lb_cpu_backward f = group_of(ld, group, to, true, da);
        f.gemm.k = later ? s->gates : 0;
        f.dy = lb_cpu_at(s, ld->dy, row * s->wide + f.first);
        f.dy_stride = s->wide;
        if (!s->dh) {
            cells(ld, f, group, t, to);
            continue;
        }
        /* The gradients of these columns of h of the whole batch. */
        char *dh = lb_cpu_at(s, s->dh, f.first);
        f.dh_stride = s->H;
        if (s->problem.cell == LB_CELL_PROJECTION) {
            size_t before = (f.first / s->width * s->rows + t * s->B) * s->width;
            dh = lb_cpu_at(s, s->dh, before + f.first % s->width);
            f.dh_stride = s->width;
            lb_cpu_clear_ended(ld, to, dh, f.dh_stride, f.gemm.columns);
        }
        f.dh = lb_cpu_at(s, dh, from * f.dh_stride);
        if (to > from)
            s->kernels->backward(&f);
    }
    if (s->dh)
        lb_cpu_end_step(s);
    if (s->problem.cell == LB_CELL_LAYERNORM)
        normalised_cells(ld, t);
    if (s->problem.cell == LB_CELL_PROJECTION)
        projected_cells(ld, t, to);
}

/* All steps of a layer_dir in reverse, down to dh0 and dc0. dc begins as dcn. */
static void steps(const struct lb_cpu_layer_dir *ld)
{
    const struct lb_cpu_simd *s = ld->s;
    const struct lb_cpu_range own = ld->rows, units = lb_cpu_units(s, ld->panels);
    lb_cpu_state_to_sums(ld, lb_cpu_at(s, ld->back->dcn, ld->c_at), ld->dc);
    lb_cpu_convert_c0(ld);
    for (size_t i = 0; i < s->T; i++) {
        step(ld, ld->d == 0 ? s->T - 1 - i : i, i > 0);
        lb_cpu_end_step(s);
    }
    struct lb_cpu_rows da =
        panel_rows(ld, lb_cpu_at(s, s->first, own.from * s->width), s->B, ld->row_count, s->gates);
    for (size_t group = ld->h_groups.from; group < ld->h_groups.to && own.to > own.from; group++) {
        struct lb_cpu_backward f = group_of(ld, group, own.to, true, da);
        f.dh = lb_cpu_at(s, ld->back->dh0, ld->h_at + own.from * s->P + f.first);
        f.dh_stride = s->P;
        s->kernels->backward(&f);
    }
    for (size_t b = own.from; b < own.to && s->half; b++) /* else dc is dc0 */
        lb_cpu_from_sums(s, lb_cpu_sum_at(s, ld->dc, b * s->H + units.from),
                         lb_cpu_at(s, ld->back->dc0, ld->c_at + b * s->H + units.from),
                         units.to - units.from);
}

enum { DEPTH = 512 }; /* rows per partial sum of weight gradients */

/* Bytes of DEPTH rows above which rows are packed first: three quarters of the L2 cache, at most
 * what was measured with 1 MiB. With 512 KiB, weight gradients of T128_B8_H256 then take 0.83 of
 * the time. */
static size_t max_unpacked_bytes(void)
{
    enum { MOST = 768 << 10 };
    long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return cache > 0 ? lb_cpu_least((size_t)cache / 4 * 3, MOST) : MOST;
}

size_t lb_cpu_packed_bytes(const struct lb_cpu_simd *s)
{
    size_t input = lb_cpu_widest_input(s), rows = lb_cpu_least(s->rows, DEPTH);
    size_t widest = input > s->H ? input : s->H, stride = s->wide > widest ? s->wide : widest;
    size_t group = s->kernels->group, block = lb_cpu_column_block(s);
    size_t parts = s->column_parts;
    size_t own = parts > 1 ? lb_cpu_cover(lb_cpu_cover(widest, block), parts) * block
                           : lb_cpu_cover(widest, group) * group;
    if (s->half)
        return lb_cpu_cover(lb_cpu_padded(s, rows) * own * s->kernels->operand_size, 64) * 64;
    return rows * stride * s->elem > max_unpacked_bytes() ? rows * own * s->elem : 0;
}

/* GEMM over steps: o.dw [panels, columns, width] = in [rows, columns] transposed, times da, whose
 * panels have da_rows rows. This computes the thread's tile, DEPTH rows at a time. Where the L2
 * cache doesn't hold so many rows of the widest input, all parts are first packed into the order in
 * which each panel reads them. */
static void multiply(const struct lb_cpu_layer_dir *ld, size_t all_panels, size_t da_rows,
                     struct lb_cpu_outer o)
{
    const struct lb_cpu_simd *s = ld->s;
    struct lb_cpu_range columns = lb_cpu_own_columns(s, ld->thread, o.columns);
    struct lb_cpu_range panels = lb_cpu_own_panels(s, ld->thread, all_panels);
    void *packed = s->packed + ld->thread * s->packed_bytes;
    for (size_t from = 0; from < o.rows && panels.from < panels.to && columns.from < columns.to;
         from += DEPTH) {
        struct lb_cpu_outer part = o;
        part.rows = lb_cpu_least(o.rows - from, DEPTH);
        part.columns = columns.to - columns.from;
        part.in = lb_cpu_at(s, o.in, from * o.stride + columns.from);
        part.add = o.add || from > 0;
        if (s->packed_bytes > 0) {
            s->kernels->pack(&part, packed);
            part.in = packed;
            part.packed = true;
        }
        for (size_t p = panels.from; p < panels.to; p++) {
            part.da = lb_cpu_at(s, o.da, (p * da_rows + from) * s->width);
            part.dw = lb_cpu_sum_at(s, o.dw, (p * o.columns + columns.from) * s->width);
            part.db = o.db && columns.from == 0 ? lb_cpu_sum_at(s, o.db, p * s->width) : NULL;
            s->kernels->outer(&part);
        }
    }
}

/* This thread's tiles of the weight gradients of a layer_dir. Gradients of a, and h, are zero
 * where a row has no step. So one GEMM covers all steps, with h of the step before as the state
 * before each step; another covers h0 at each row's first step. */
static void weight_gradients(const struct lb_cpu_layer_dir *ld)
{
    const struct lb_cpu_simd *s = ld->s;
    struct lb_cpu_gradients g = lb_cpu_gradients_of(s, ld->index);
    size_t second = ld->d == 0 ? s->B : 0; /* row of the second step */
    multiply(ld, s->panels, s->rows,
             (struct lb_cpu_outer){.rows = s->rows,
                                   .in = ld->in,
                                   .columns = ld->input,
                                   .stride = ld->input,
                                   .da = lb_cpu_gates(s, ld->index, 0, 0),
                                   .dw = g.dw_ih,
                                   .db = g.db});
    multiply(ld, s->panels, s->B,
             (struct lb_cpu_outer){.rows = s->B,
                                   .in = ld->h0,
                                   .columns = s->P,
                                   .stride = s->P,
                                   .da = s->first,
                                   .dw = g.dw_hh});
    multiply(ld, s->panels, s->rows,
             (struct lb_cpu_outer){.rows = s->rows - s->B,
                                   .in = lb_cpu_at(s, ld->states, (s->B - second) * s->wide),
                                   .columns = s->P,
                                   .stride = s->wide,
                                   .da = lb_cpu_gates(s, ld->index, 0, second),
                                   .dw = g.dw_hh,
                                   .add = true});
    if (s->problem.cell == LB_CELL_PROJECTION) {
        multiply(ld, s->h_panels, s->rows,
                 (struct lb_cpu_outer){.rows = s->rows,
                                       .in = ld->cell_h,
                                       .columns = s->H,
                                       .stride = s->H,
                                       .da = s->dh,
                                       .dw = g.dw_cell});
    } else if (s->cell_rows > 0) {
        struct lb_cpu_range own = lb_cpu_share(s->cell_rows * s->panels, s->threads, ld->thread);
        size_t first = own.from * s->simd_width;
        s->kernels->sum(lb_cpu_sum_at(s, s->cell_sums, first), s->B,
                        (own.to - own.from) * s->simd_width, s->cell_rows * s->units,
                        lb_cpu_sum_at(s, g.dw_cell, first));
    }
}

/* A row of the gradient of the input of a layer that adds it to its output: it starts from that of
 * the output, and may be in the same place. Rows that have ended stay zero. */
static void start_from_output(const struct lb_cpu_layer_dir *ld, size_t row, char *sums)
{
    const struct lb_cpu_simd *s = ld->s;
    const char *from = lb_cpu_at(s, ld->dy, row * s->wide);
    if (row / s->B >= lb_cpu_length(s, row % s->B))
        memset(sums, 0, s->wide * s->sum_elem);
    else if (from != sums)
        lb_cpu_to_sums(s, from, sums, s->wide);
}

/* This thread's rows of the gradient of a layer's input [T, B, I_l], in chunks, so that gradients
 * of a stay in the cache while all columns are computed. */
static void input_gradients(const struct lb_cpu_call *call, size_t l, size_t thread, char *dinput)
{
    const struct lb_cpu_simd *s = call->s;
    struct lb_cpu_layer_dir ld[2];
    for (size_t d = 0; d < s->D; d++)
        ld[d] = lb_cpu_layer_dir_of(call, l * s->D + d, thread);
    bool adds = lb_cpu_adds_input(s, l);
    struct lb_cpu_range rows = lb_cpu_share(s->rows, s->threads, thread);
    size_t input = ld[0].input, most = lb_cpu_gradient_rows(s, input), count;
    size_t stride = s->half ? lb_cpu_cover(input, s->simd_width) * s->simd_width : input;
    for (size_t row = rows.from; row < rows.to; row += count) {
        char *out = lb_cpu_at(s, dinput, row * input), *sums = s->half ? ld[0].sums : out;
        count = lb_cpu_least(rows.to - row, most);
        for (size_t r = 0; r < count && adds; r++)
            start_from_output(&ld[0], row + r, lb_cpu_sum_at(s, sums, r * stride));
        for (size_t d = 0; d < s->D; d++) {
            const char *gates = lb_cpu_gates(s, ld[d].index, 0, row);
            struct lb_cpu_rows da = panel_rows(&ld[d], gates, s->rows, count, s->gates);
            for (size_t first = 0; first < input; first += s->width)
                s->kernels->accumulate(&(struct lb_cpu_gemm){
                    .rows = count,
                    .k = s->gates,
                    .columns = lb_cpu_least(input - first, s->width),
                    .a = da,
                    .w = lb_cpu_at(s, ld[d].w.back_ih, first * s->gates),
                    .bias = adds || d > 0 ? NULL : lb_cpu_zeros(),
                    .sums = lb_cpu_sum_at(s, sums, first),
                    .stride = stride,
                });
        }
        for (size_t r = 0; r < count && s->half; r++)
            lb_cpu_from_sums(s, lb_cpu_sum_at(s, sums, r * stride), lb_cpu_at(s, out, r * input),
                             input);
    }
}

void lb_cpu_backward_work(void *arg, size_t thread)
{
    const struct lb_cpu_call *call = arg;
    const struct lb_cpu_simd *s = call->s;
    const struct lb_tile_kernels *tiles = s->kernels->tiles;
    for (size_t l = s->L; l-- > 0;) {
        for (size_t index = l * s->D; index < (l + 1) * s->D; index++) {
            const struct lb_cpu_layer_dir ld = lb_cpu_layer_dir_of(call, index, thread);
            (tiles ? lb_cpu_tiles_backward : steps)(&ld);
            lb_pinned_threads_barrier(s->pinned_threads); /* all gradients of a are written */
            (tiles ? lb_cpu_tiles_weights : weight_gradients)(&ld);
            lb_pinned_threads_barrier(s->pinned_threads); /* all threads have read `first` */
        }
        (tiles ? lb_cpu_tiles_inputs : input_gradients)(call, l, thread,
                                                        l == 0 ? call->back->dx : s->between);
        lb_pinned_threads_barrier(s->pinned_threads);
    }
    if (tiles)
        tiles->release();
}
