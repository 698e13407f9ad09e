/* cpu_simd, forward: the input GEMM of a chunk of steps, then these steps, panel by panel. */
#include <string.h>

#include "impls/cpu_simd/cpu_simd.h"

/* Layer l's output [T, B, D*P]: the caller's y for the last. */
static char *output_of(const struct lb_cpu_simd *s, const void *y, size_t l)
{
    size_t kept = lb_trains(&s->problem) ? l : l % 2;
    if (l == s->L - 1)
        return lb_cpu_at(s, y, 0);
    return lb_cpu_at(s, s->lower, kept * s->rows * s->wide);
}

/* Sets the fields of tiles. */
static void add_tiles(struct lb_cpu_layer_dir *ld)
{
    const struct lb_cpu_tiles *t = &ld->s->tiles;
    size_t rows = ld->row_count, team = ld->thread / ld->s->team_size;
    ld->plan = lb_cpu_tiles_plan(ld->s, ld->input);
    /* Rows are divided evenly among as few tiles as possible. */
    ld->group_rows = rows > 0 ? lb_cpu_cover(rows, lb_cpu_cover(rows, LB_TILE_ROWS)) : 1;
    ld->tile_x = t->x + team * t->x_bytes;
    ld->tile_pre = t->pre + team * t->pre_count;
    ld->tile_state = t->state + team * t->state_count;
    for (size_t i = 0; i < 2; i++)
        ld->operand[i] =
            ld->back ? t->da + (2 * team + i) * t->da_bytes : t->h + (2 * team + i) * t->h_bytes;
}

/* Sets the fields of backward, whose panels are those of the groups. */
static void add_backward(struct lb_cpu_layer_dir *ld)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t columns = s->group * s->simd_width;
    ld->groups = lb_cpu_columns(s, lb_cpu_cover(s->panels, s->group), ld->thread);
    ld->h_groups = lb_cpu_columns(s, lb_cpu_cover(s->P, columns), ld->thread);
    ld->panels = (struct lb_cpu_range){ld->groups.from * s->group,
                                       lb_cpu_least(ld->groups.to * s->group, s->panels)};
    ld->dy = lb_cpu_at(s, ld->l == s->L - 1 ? ld->back->dy : s->between, ld->d * s->P);
    ld->mask = s->h0 ? lb_cpu_at(s, ld->io->mask, ld->c_at) : NULL;
    ld->dc = lb_cpu_sum_at(s, s->half ? s->dc : ld->back->dc0, ld->c_at);
}

struct lb_cpu_layer_dir lb_cpu_layer_dir_of(const struct lb_cpu_call *call, size_t index,
                                            size_t thread)
{
    const struct lb_cpu_simd *s = call->s;
    const struct lb_forward_io *io = call->io;
    const struct lb_backward_io *back = call->back;
    bool projects = s->problem.cell == LB_CELL_PROJECTION, trains = lb_trains(&s->problem);
    size_t l = index / s->D, d = index % s->D;
    size_t h_at = index * s->B * s->P, c_at = index * s->B * s->H;
    bool adds = lb_cpu_adds_input(s, l);
    size_t layer_of_h = adds ? l - 1 : l, kept = trains ? layer_of_h : layer_of_h % 2;
    const void **pointers = s->pointers + thread * 2 * s->B;
    struct lb_cpu_layer_dir ld = {
        .s = s,
        .io = io,
        .back = back,
        .thread = thread,
        .index = index,
        .l = l,
        .d = d,
        .input = lb_cpu_input(s, index),
        .w = lb_cpu_weights_of(s, s->copy_of[thread], index),
        .rows = lb_cpu_share(s->B, s->teams, thread / s->team_size),
        .panels = lb_cpu_columns(s, s->panels, thread),
        .in = l == 0 ? io->x : output_of(s, io->y, l - 1),
        .y = lb_cpu_at(s, output_of(s, io->y, l), d * s->P),
        .h_stride = projects ? s->H : s->wide,
        .h_step = projects ? trains * s->B * s->H : s->B * s->wide,
        .h_at = h_at,
        .c_at = c_at,
        .h0 = lb_cpu_at(s, s->h0 ? s->h0 : io->h0, h_at),
        .c0 = lb_cpu_sum_at(s, s->half ? s->c0 : io->c0, c_at),
        .c = s->cells ? lb_cpu_sum_at(s, s->cells, index * s->rows * s->H)
                      : lb_cpu_sum_at(s, s->c ? s->c : io->cn, c_at),
        .c_before = pointers,
        .h_before = pointers + s->B,
        .dhn = pointers + s->B,
        .sums = lb_cpu_sum_at(s, s->sums, thread * s->sum_count),
        .plan = {.chunk = s->chunk},
    };
    ld.states = ld.y;
    if (adds || s->problem.cell == LB_CELL_RECURRENT_DROPOUT)
        ld.states = lb_cpu_at(s, s->h, kept * s->rows * s->wide + d * s->P);
    ld.cell_h = projects ? lb_cpu_at(s, s->hidden, trains ? index * s->rows * s->H : 0)
                : adds   ? ld.states
                         : ld.y;
    ld.row_count = ld.rows.to - ld.rows.from;
    if (s->kernels->tiles)
        add_tiles(&ld);
    if (back)
        add_backward(&ld);
    return ld;
}

/* Bias plus input GEMM of the first panel, from row b of step t on. The chunk begins at `from`. */
static char *pre_of(const struct lb_cpu_layer_dir *ld, size_t t, size_t from, size_t b)
{
    const struct lb_cpu_simd *s = ld->s;
    if (!s->pre)
        return lb_cpu_gates(s, ld->index, 0, t * s->B + b);
    return lb_cpu_sum_at(s, s->pre, ((t - from) * s->B + b) * s->width);
}

/* A GEMM of all of this thread's panels, from that of the first panel. */
static void accumulate(const struct lb_cpu_layer_dir *ld, struct lb_cpu_gemm first)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t w_panel = lb_cpu_padded(s, first.k) * s->width;
    for (size_t p = ld->panels.from; p < ld->panels.to; p++) {
        struct lb_cpu_gemm gemm = first;
        gemm.w = lb_cpu_at(s, gemm.w, p * w_panel);
        gemm.bias = gemm.bias ? lb_cpu_sum_at(s, gemm.bias, p * s->width) : NULL;
        gemm.sums = lb_cpu_sum_at(s, gemm.sums, p * s->pre_rows * s->width);
        s->kernels->accumulate(&gemm);
    }
}

/* Bias plus input GEMM of `steps` steps from t on. Where teams divide the rows, each step is a GEMM
 * of its own. */
static void input_gemm(const struct lb_cpu_layer_dir *ld, size_t t, size_t steps)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t gemms = s->teams > 1 ? steps : 1, rows = s->teams > 1 ? ld->row_count : steps * s->B;
    for (size_t i = 0; i < gemms && rows > 0; i++) {
        size_t first = (t + i) * s->B + ld->rows.from;
        struct lb_cpu_rows in = {.base = lb_cpu_at(s, ld->in, first * ld->input),
                                 .stride = ld->input};
        accumulate(ld, (struct lb_cpu_gemm){
                           .rows = rows,
                           .k = ld->input,
                           .columns = s->width,
                           .a = lb_cpu_operand(ld, in, rows, ld->input),
                           .w = ld->w.w_ih,
                           .bias = ld->w.bias,
                           .sums = pre_of(ld, t + i, t, ld->rows.from),
                           .stride = s->width,
                       });
    }
}

struct lb_cpu_layernorm lb_cpu_layernorm_of(const struct lb_cpu_layer_dir *ld,
                                            struct lb_cpu_range rows, size_t t)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t row = t * s->B + rows.from, kept = ld->index * s->rows + row;
    return (struct lb_cpu_layernorm){
        .rows = rows.to - rows.from,
        .units = s->H,
        .padded_units = s->units,
        .weights = ld->w.cell,
        .gates = s->kept_gates ? lb_cpu_gates(s, ld->index, 0, row) : NULL,
        .gates_stride = s->rows * s->width,
        .c_before = ld->c_before + rows.from,
        .c = lb_cpu_sum_at(s, ld->c, (s->cells ? row : rows.from) * s->H),
        .c_stride = s->H,
        .norm = s->norm ? lb_cpu_sum_at(s, s->norm, kept * s->norm_count) : NULL,
        .scratch = lb_cpu_sum_at(s, s->scratch, ld->thread * 5 * s->units),
    };
}

/* The cells of the cell layernorm at step t, in this thread's share of its team's rows up to `to`.
 */
static void normalise(const struct lb_cpu_layer_dir *ld, size_t t, size_t from, size_t to)
{
    const struct lb_cpu_simd *s = ld->s;
    struct lb_cpu_range own = lb_cpu_own_rows(ld, to);
    struct lb_cpu_layernorm f = lb_cpu_layernorm_of(ld, own, t);
    f.sums = pre_of(ld, t, from, own.from);
    f.sums_stride = s->pre_rows * s->width;
    f.h = lb_cpu_at(s, ld->y, (t * s->B + own.from) * s->wide);
    f.h_stride = s->wide;
    s->kernels->layernorm(&f);
}

/* h of the cell projection at step t, in this thread's columns and its team's rows up to `to`. */
static void project(const struct lb_cpu_layer_dir *ld, size_t t, size_t to)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t from = ld->rows.from, rows = to - from, k = lb_cpu_padded(s, s->H);
    struct lb_cpu_range groups = lb_cpu_columns(s, s->h_panels, ld->thread);
    struct lb_cpu_rows in = {.base = lb_cpu_at(s, ld->cell_h, t * ld->h_step + from * s->H),
                             .stride = s->H};
    in = lb_cpu_operand(ld, in, rows, s->H);
    for (size_t first = groups.from * s->width; first < groups.to * s->width; first += s->width) {
        char *y = lb_cpu_at(s, ld->y, t * s->B * s->wide + first);
        struct lb_cpu_gemm gemm = {
            .rows = rows,
            .k = s->H,
            .columns = lb_cpu_least(s->P - first, s->width),
            .a = in,
            .w = lb_cpu_at(s, ld->w.cell, first * k),
            .bias = lb_cpu_zeros(),
            .sums = s->half ? ld->sums : lb_cpu_at(s, y, from * s->wide),
            .stride = s->half ? s->width : s->wide,
        };
        if (rows > 0)
            s->kernels->accumulate(&gemm);
        for (size_t r = 0; r < rows && s->half; r++)
            lb_cpu_from_sums(s, lb_cpu_sum_at(s, ld->sums, r * s->width),
                             lb_cpu_at(s, y, (from + r) * s->wide), gemm.columns);
        lb_cpu_clear_ended(ld, to, y, s->wide, gemm.columns);
    }
}

/* From these units of h at step t, in this thread's rows: the output of the cell residual, and the
 * masked h of recurrent-dropout. Both are zero in rows that have ended, from `to` on. */
static void combine(const struct lb_cpu_layer_dir *ld, struct lb_cpu_range units, size_t t,
                    size_t to)
{
    const struct lb_cpu_simd *s = ld->s;
    bool drops = s->problem.cell == LB_CELL_RECURRENT_DROPOUT;
    size_t step = t * s->B * s->wide + units.from, count = units.to - units.from;
    char *out = drops ? ld->states : ld->y;
    for (size_t b = ld->rows.from; b < to; b++) {
        size_t at = step + b * s->wide;
        const char *other = drops ? lb_cpu_at(s, ld->io->mask, ld->c_at + b * s->H + units.from)
                                  : lb_cpu_at(s, ld->in, at + ld->d * s->P);
        s->kernels->combine(lb_cpu_at(s, ld->cell_h, at), other, drops, lb_cpu_at(s, out, at),
                            count);
    }
    lb_cpu_clear_ended(ld, to, lb_cpu_at(s, out, step), s->wide, count);
}

/* This thread's part of step t. The chunk begins at step `from`. */
static void step(const struct lb_cpu_layer_dir *ld, size_t t, size_t from)
{
    const struct lb_cpu_simd *s = ld->s;
    size_t first = ld->rows.from, to = lb_cpu_active_to(s, ld->rows, t), rows = to - first;
    struct lb_cpu_range units = lb_cpu_units(s, ld->panels);
    char *h = lb_cpu_at(s, ld->cell_h, t * ld->h_step);
    enum lb_cell_kind cell = (enum lb_cell_kind)s->problem.cell;
    lb_cpu_find_states(ld, t, to);
    const struct lb_cpu_forward f = {
        .gemm = {.rows = rows,
                 .k = s->P,
                 .columns = s->width,
                 .a = lb_cpu_operand(ld, (struct lb_cpu_rows){.at = ld->h_before + first}, rows,
                                     s->P),
                 .w = ld->w.w_hh,
                 .sums = pre_of(ld, t, from, first),
                 .stride = s->width},
        .panels_from = ld->panels.from,
        .panels_to = ld->panels.to,
        .backwards = lb_cpu_backwards(t, rows),
        .w_panel = lb_cpu_padded(s, s->P) * s->width,
        .sums_panel = s->pre_rows * s->width,
        .units = s->H,
        .c_before = ld->c_before + first,
        .c = lb_cpu_sum_at(s, ld->c, ((s->cells ? t * s->B : 0) + first) * s->H),
        .h = lb_cpu_at(s, h, first * ld->h_stride),
        .c_stride = s->H,
        .h_stride = ld->h_stride,
        .gates = s->kept_gates ? lb_cpu_gates(s, ld->index, 0, t * s->B + first) : NULL,
        .gates_panel = s->rows * s->width,
        .peepholes = cell == LB_CELL_PEEPHOLE ? ld->w.cell : NULL,
        .padded_units = s->units,
    };
    if (rows > 0 && cell == LB_CELL_LAYERNORM)
        accumulate(ld, f.gemm);
    else if (rows > 0)
        s->kernels->forward(&f);
    lb_cpu_clear_ended(ld, to, lb_cpu_at(s, h, units.from), ld->h_stride, units.to - units.from);
    if (cell == LB_CELL_LAYERNORM) {
        lb_cpu_end_step(s); /* all sums are there */
        normalise(ld, t, from, to);
    } else if (cell == LB_CELL_PROJECTION) {
        lb_cpu_end_step(s);
        project(ld, t, to);
    } else if (ld->states != ld->y) {
        combine(ld, units, t, to);
    }
}

/* Writes the last h of this thread's share of its team's rows, and without tiles the last c. */
static void write_states(const struct lb_cpu_layer_dir *ld)
{
    const struct lb_cpu_simd *s = ld->s;
    const char *h = s->problem.cell == LB_CELL_PROJECTION ? ld->y : ld->cell_h;
    bool converts = !s->kernels->tiles && (s->half || s->cells); /* else c is cn */
    struct lb_cpu_range rows = lb_cpu_own_rows(ld, ld->rows.to);
    for (size_t b = rows.from; b < rows.to; b++) {
        size_t last = lb_cpu_first_step(s, 1 - ld->d, b) * s->B + b;
        memcpy(lb_cpu_at(s, ld->io->hn, ld->h_at + b * s->P), lb_cpu_at(s, h, last * s->wide),
               s->P * s->elem);
        if (converts)
            lb_cpu_from_sums(s, lb_cpu_sum_at(s, ld->c, (s->cells ? last : b) * s->H),
                             lb_cpu_at(s, ld->io->cn, ld->c_at + b * s->H), s->H);
    }
}

/* This thread's part of c0 as f32, where the problem's dtype is another, and of the masked h0 of
 * recurrent-dropout. */
static void convert_states(const struct lb_cpu_layer_dir *ld)
{
    const struct lb_cpu_simd *s = ld->s;
    struct lb_cpu_range units = lb_cpu_units(s, ld->panels);
    lb_cpu_convert_c0(ld);
    if (!s->h0)
        return;
    for (size_t b = ld->rows.from; b < ld->rows.to; b++) {
        size_t at = ld->c_at + b * s->H + units.from;
        s->kernels->combine(lb_cpu_at(s, ld->io->h0, at), lb_cpu_at(s, ld->io->mask, at), true,
                            lb_cpu_at(s, s->h0, at), units.to - units.from);
    }
    lb_cpu_end_step(s);
}

void lb_cpu_forward_work(void *arg, size_t thread)
{
    const struct lb_cpu_call *call = arg;
    const struct lb_cpu_simd *s = call->s;
    const struct lb_tile_kernels *tiles = s->kernels->tiles;
    for (size_t index = 0; index < s->layer_dirs; index++) {
        const struct lb_cpu_layer_dir opened = lb_cpu_layer_dir_of(call, index, thread);
        const struct lb_cpu_layer_dir *ld = &opened;
        (tiles ? lb_cpu_tiles_start : convert_states)(ld);
        for (size_t done = 0, steps; done < s->T; done += steps) {
            steps = lb_cpu_least(s->T - done, ld->plan.chunk);
            size_t from = ld->d == 0 ? done : s->T - done - steps;
            (tiles ? lb_cpu_tiles_input : input_gemm)(ld, from, steps);
            for (size_t i = 0; i < steps; i++) {
                size_t at = ld->d == 0 ? i : steps - 1 - i;
                if (tiles)
                    lb_cpu_tiles_step(ld, from + at, at, done + i);
                else
                    step(ld, from + at, from);
                lb_cpu_end_step(s);
            }
        }
        write_states(ld);
        if (tiles)
            lb_cpu_tiles_store_state(ld, ld->io->cn);
    }
    if (tiles)
        tiles->release();
}
