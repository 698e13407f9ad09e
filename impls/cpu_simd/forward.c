/* cpu_simd, forward: the input GEMM of a chunk of steps, then these steps, panel by panel. */
#include <string.h>

#include "impls/cpu_simd/cpu_simd.h"

/* One layer and direction, with the part of the work of one thread. */
struct layer_dir {
    struct lb_cpu_part part;
    const struct lb_forward_io *io;
    struct lb_cpu_range panels; /* of this thread */
    const char *in;             /* [T, B, I_l] */
    char *y;                    /* [T, B, D*P], at this direction's first unit */
    char *states;               /* as y: h as the next step multiplies it */
    char *cell_h;               /* o tanh(c), where the cell writes it: h but for the projection */
    size_t h_stride, h_step;    /* of cell_h: from row to row, and from step to step */
    const char *h0;             /* [B, P] */
    char *hn, *cn;
    char *c; /* [B, H] in infer, else [T, B, H]: cell states, of sum_elem bytes */
};

static struct layer_dir open_layer_dir(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_forward_io *io = call->forward;
    const struct lb_cpu_sizes *s = &simd->s;
    const struct lb_cpu_part part = lb_cpu_part_of(simd, index, thread, io->c0);
    size_t state = index * s->B * s->H, l = part.l, d = part.d, h_state = index * s->B * s->P;
    char *y = lb_cpu_at(simd, lb_cpu_output(simd, io->y, l), d * s->P);
    char *states = lb_cpu_at(simd, lb_cpu_states(simd, io->y, l), d * s->P);
    bool projects = simd->problem.cell == LB_CELL_PROJECTION, trains = lb_trains(&simd->problem);
    return (struct layer_dir){
        .part = part,
        .io = io,
        .panels = lb_cpu_columns(simd, s->panels, thread),
        .in = l == 0 ? io->x : lb_cpu_output(simd, io->y, l - 1),
        .y = y,
        .states = states,
        .cell_h = projects ? lb_cpu_at(simd, simd->hidden, trains ? index * s->rows * s->H : 0)
                  : lb_cpu_adds_input(simd, l) ? states
                                               : y,
        .h_stride = projects ? s->H : s->wide,
        .h_step = projects ? trains * s->B * s->H : s->B * s->wide,
        .h0 = simd->h0 ? lb_cpu_at(simd, simd->h0, h_state) : lb_cpu_at(simd, io->h0, h_state),
        .hn = lb_cpu_at(simd, io->hn, h_state),
        .cn = lb_cpu_at(simd, io->cn, state),
        .c = simd->cells ? (char *)(uintptr_t)part.cells
             : simd->c   ? lb_cpu_sum_at(simd, simd->c, state)
                         : lb_cpu_at(simd, io->cn, state),
    };
}

/* Bias plus input GEMM of a panel, from row b of step t on. The chunk begins at step `from`. */
static char *pre_of(const struct layer_dir *ld, size_t panel, size_t t, size_t from, size_t b)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    size_t row = panel * simd->pre_rows + (t - from) * simd->s.B + b;
    if (!simd->pre)
        return lb_cpu_gates(simd, ld->part.index, panel, t * simd->s.B + b);
    return lb_cpu_sum_at(simd, simd->pre, row * simd->s.width);
}

/* Bias plus input GEMM of `steps` steps from t on. Where teams divide the rows, each step is a GEMM
 * of its own. */
static void input_gemm(const struct layer_dir *ld, size_t t, size_t steps)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t gemms = simd->teams > 1 ? steps : 1;
    size_t rows = simd->teams > 1 ? ld->part.rows.to - ld->part.rows.from : steps * s->B;
    size_t k = lb_cpu_padded(simd, ld->part.input);
    for (size_t i = 0; i < gemms && rows > 0; i++) {
        size_t first = (t + i) * s->B + ld->part.rows.from;
        struct lb_cpu_rows in = {.base = lb_cpu_at(simd, ld->in, first * ld->part.input),
                                 .stride = ld->part.input};
        in = lb_cpu_operand(simd, ld->part.thread, in, rows, ld->part.input);
        for (size_t p = ld->panels.from; p < ld->panels.to; p++)
            simd->kernels->accumulate(&(struct lb_cpu_gemm){
                .rows = rows,
                .k = ld->part.input,
                .columns = s->width,
                .a = in,
                .w = lb_cpu_at(simd, ld->part.w.w_ih, p * k * s->width),
                .bias = lb_cpu_sum_at(simd, ld->part.w.bias, p * s->width),
                .sums = pre_of(ld, p, t + i, t, ld->part.rows.from),
                .stride = s->width,
            });
    }
}

/* Finds the states before step t of this thread's rows up to `to`. */
static void find_states(const struct layer_dir *ld, size_t t, size_t to)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    for (size_t b = ld->part.rows.from; b < to; b++) {
        size_t before = (ld->part.d == 0 ? t - 1 : t + 1) * s->B + b;
        if (t == lb_cpu_first_step(simd, ld->part.d, b)) {
            ld->part.h_before[b] = lb_cpu_at(simd, ld->h0, b * s->P);
            ld->part.c_before[b] = lb_cpu_sum_at(simd, ld->part.c0, b * s->H);
            continue;
        }
        ld->part.h_before[b] = lb_cpu_at(simd, ld->states, before * s->wide);
        ld->part.c_before[b] = lb_cpu_sum_at(simd, ld->c, (simd->cells ? before : b) * s->H);
    }
}

/* The cells of the cell layernorm at step t, in this thread's share of its team's rows up to `to`.
 */
static void normalise(const struct layer_dir *ld, size_t t, size_t from, size_t to)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t first = ld->part.rows.from;
    struct lb_cpu_range own = lb_cpu_columns(simd, to - first, ld->part.thread);
    size_t row = t * s->B + first + own.from, state = row - (simd->cells ? 0 : t * s->B);
    size_t kept = ld->part.index * s->rows + row;
    simd->kernels->layernorm(&(struct lb_cpu_layernorm){
        .rows = own.to - own.from,
        .units = s->H,
        .padded_units = s->units,
        .weights = ld->part.w.cell,
        .sums = pre_of(ld, 0, t, from, first + own.from),
        .sums_stride = (simd->pre ? simd->pre_rows : simd->gate_rows) * s->width,
        .gates = simd->gates ? lb_cpu_gates(simd, ld->part.index, 0, row) : NULL,
        .gates_stride = simd->gate_rows * s->width,
        .c_before = ld->part.c_before + first + own.from,
        .c = lb_cpu_sum_at(simd, ld->c, state * s->H),
        .h = lb_cpu_at(simd, ld->y, row * s->wide),
        .c_stride = s->H,
        .h_stride = s->wide,
        .norm = simd->norm ? lb_cpu_sum_at(simd, simd->norm, kept * simd->norm_count) : NULL,
        .scratch = lb_cpu_sum_at(simd, simd->scratch, ld->part.thread * 5 * s->units),
    });
}

/* h of the cell projection at step t, in this thread's columns and its team's rows up to `to`. */
static void project(const struct layer_dir *ld, size_t t, size_t to)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t from = ld->part.rows.from, rows = to - from, k = lb_cpu_padded(simd, s->H);
    struct lb_cpu_range groups = lb_cpu_columns(simd, s->h_panels, ld->part.thread);
    char *y = lb_cpu_at(simd, ld->y, (t * s->B + from) * s->wide);
    char *scratch = lb_cpu_sum_at(simd, simd->sums, ld->part.thread * simd->sum_count);
    struct lb_cpu_rows in = {.base = lb_cpu_at(simd, ld->cell_h, t * ld->h_step + from * s->H),
                             .stride = s->H};
    in = lb_cpu_operand(simd, ld->part.thread, in, rows, s->H);
    for (size_t first = groups.from * s->width; first < groups.to * s->width; first += s->width) {
        size_t columns = lb_cpu_least(s->P - first, s->width);
        struct lb_cpu_gemm gemm = {.rows = rows,
                                   .k = s->H,
                                   .columns = columns,
                                   .a = in,
                                   .w = lb_cpu_at(simd, ld->part.w.cell, first * k),
                                   .bias = lb_cpu_zeros(),
                                   .sums = simd->half ? scratch : lb_cpu_at(simd, y, first),
                                   .stride = simd->half ? s->width : s->wide};
        if (rows > 0)
            simd->kernels->accumulate(&gemm);
        for (size_t r = 0; r < rows && simd->half; r++)
            lb_cpu_from_sums(simd, lb_cpu_sum_at(simd, scratch, r * s->width),
                             lb_cpu_at(simd, y, r * s->wide + first), columns);
        for (size_t b = to; b < ld->part.rows.to; b++) /* rows that have ended */
            memset(lb_cpu_at(simd, y, (b - from) * s->wide + first), 0, columns * simd->elem);
    }
}

/* From these units of h at step t, in this thread's rows: the output of the cell residual, and the
 * masked h of recurrent-dropout. Both are zero in rows that have ended, from `to` on. */
static void combine(const struct layer_dir *ld, struct lb_cpu_range units, size_t t, size_t to)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    bool drops = simd->problem.cell == LB_CELL_RECURRENT_DROPOUT;
    size_t count = units.to - units.from;
    for (size_t b = ld->part.rows.from; b < ld->part.rows.to; b++) {
        size_t at = (t * s->B + b) * s->wide + units.from;
        char *out = lb_cpu_at(simd, drops ? ld->states : ld->y, at);
        const char *other =
            drops ? lb_cpu_at(simd, ld->io->mask, (ld->part.index * s->B + b) * s->H + units.from)
                  : lb_cpu_at(simd, ld->in, at + ld->part.d * s->P);
        if (b < to)
            simd->kernels->combine(lb_cpu_at(simd, ld->cell_h, at), other, drops, out, count);
        else
            memset(out, 0, count * simd->elem);
    }
}

/* What a cell other than the standard one computes at step t besides its panels. */
static void finish_step(const struct layer_dir *ld, size_t t, size_t from, size_t to)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    if (simd->problem.cell == LB_CELL_LAYERNORM) {
        lb_cpu_end_step(simd); /* all sums are there */
        normalise(ld, t, from, to);
    } else if (simd->problem.cell == LB_CELL_PROJECTION) {
        lb_cpu_end_step(simd);
        project(ld, t, to);
    } else if (ld->states != ld->y) {
        combine(ld, lb_cpu_units(simd, ld->panels), t, to);
    }
}

/* The sums of these panels alone, for cells that need those of all units. */
static void accumulate_panels(const struct lb_cpu_simd *simd, const struct lb_cpu_forward *f)
{
    for (size_t panel = f->panels_from; panel < f->panels_to; panel++) {
        struct lb_cpu_gemm gemm = f->gemm;
        gemm.w = lb_cpu_at(simd, gemm.w, panel * f->w_panel);
        gemm.sums = lb_cpu_sum_at(simd, gemm.sums, panel * f->sums_panel);
        simd->kernels->accumulate(&gemm);
    }
}

/* This thread's part of step t. The chunk begins at step `from`. */
static void step(const struct layer_dir *ld, size_t t, size_t from)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t first_row = ld->part.rows.from, to = lb_cpu_active_to(simd, ld->part.rows, t);
    size_t rows = to - first_row, state = (simd->cells ? t * s->B : 0) + first_row;
    struct lb_cpu_range units = lb_cpu_units(simd, ld->panels);
    char *h = lb_cpu_at(simd, ld->cell_h, t * ld->h_step);
    find_states(ld, t, to);
    const struct lb_cpu_forward f = {
        .gemm = {.rows = rows,
                 .k = s->P,
                 .columns = s->width,
                 .a = lb_cpu_operand(simd, ld->part.thread,
                                     (struct lb_cpu_rows){.at = ld->part.h_before + first_row},
                                     rows, s->P),
                 .w = ld->part.w.w_hh,
                 .sums = pre_of(ld, 0, t, from, first_row),
                 .stride = s->width},
        .panels_from = ld->panels.from,
        .panels_to = ld->panels.to,
        .backwards = lb_cpu_backwards(t, rows),
        .w_panel = lb_cpu_padded(simd, s->P) * s->width,
        .sums_panel = (simd->pre ? simd->pre_rows : simd->gate_rows) * s->width,
        .units = s->H,
        .c_before = ld->part.c_before + first_row,
        .c = lb_cpu_sum_at(simd, ld->c, state * s->H),
        .h = lb_cpu_at(simd, h, first_row * ld->h_stride),
        .c_stride = s->H,
        .h_stride = ld->h_stride,
        .gates = simd->gates ? lb_cpu_gates(simd, ld->part.index, 0, t * s->B + first_row) : NULL,
        .gates_panel = simd->gate_rows * s->width,
        .peepholes = simd->problem.cell == LB_CELL_PEEPHOLE ? ld->part.w.cell : NULL,
        .padded_units = s->units,
    };
    if (rows > 0 && simd->problem.cell == LB_CELL_LAYERNORM)
        accumulate_panels(simd, &f);
    else if (rows > 0)
        simd->kernels->forward(&f);
    for (size_t b = to; b < ld->part.rows.to; b++) /* rows that have ended */
        memset(lb_cpu_at(simd, h, b * ld->h_stride + units.from), 0,
               (units.to - units.from) * simd->elem);
    finish_step(ld, t, from, to);
}

/* Writes the last h and c of this thread's share of its team's rows. */
static void write_states(const struct layer_dir *ld)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t first = ld->part.rows.from;
    const char *h = simd->problem.cell == LB_CELL_PROJECTION ? ld->y : ld->cell_h;
    struct lb_cpu_range rows = lb_cpu_columns(simd, ld->part.rows.to - first, ld->part.thread);
    for (size_t b = first + rows.from; b < first + rows.to; b++) {
        size_t last = lb_cpu_last_step(simd, ld->part.d, b) * s->B + b;
        const void *c = lb_cpu_sum_at(simd, ld->c, (simd->cells ? last : b) * s->H);
        char *cn = lb_cpu_at(simd, ld->cn, b * s->H);
        memcpy(lb_cpu_at(simd, ld->hn, b * s->P), lb_cpu_at(simd, h, last * s->wide),
               s->P * simd->elem);
        if (simd->half || simd->cells) /* else c is cn */
            lb_cpu_from_sums(simd, c, cn, s->H);
    }
}

/* This thread's part of c0 as f32, where the problem's dtype is another, and of the masked h0 of
 * recurrent-dropout. */
static void convert_states(const struct layer_dir *ld)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_range units = lb_cpu_units(simd, ld->panels);
    size_t state = ld->part.index * s->B * s->H;
    if (simd->half)
        lb_cpu_state_to_sums(simd, lb_cpu_at(simd, ld->io->c0, state),
                             lb_cpu_sum_at(simd, ld->part.c0, 0), ld->part.rows, units);
    if (!simd->h0)
        return;
    for (size_t b = ld->part.rows.from; b < ld->part.rows.to; b++) {
        size_t at = state + b * s->H + units.from;
        simd->kernels->combine(lb_cpu_at(simd, ld->io->h0, at), lb_cpu_at(simd, ld->io->mask, at),
                               true, lb_cpu_at(simd, simd->h0, at), units.to - units.from);
    }
    lb_cpu_end_step(simd);
}

void lb_cpu_forward_work(void *arg, size_t thread)
{
    const struct lb_cpu_call *call = arg;
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    for (size_t index = 0; index < s->layer_dirs; index++) {
        struct layer_dir ld = open_layer_dir(call, index, thread);
        convert_states(&ld);
        for (size_t done = 0, steps; done < s->T; done += steps) {
            steps = lb_cpu_least(s->T - done, simd->chunk);
            size_t from = ld.part.d == 0 ? done : s->T - done - steps;
            input_gemm(&ld, from, steps);
            for (size_t i = 0; i < steps; i++) {
                step(&ld, ld.part.d == 0 ? from + i : from + steps - 1 - i, from);
                lb_cpu_end_step(simd);
            }
        }
        write_states(&ld);
    }
}
