/* cpu_simd, forward: the input GEMM of a chunk of steps, then these steps, panel by panel. */
#include <string.h>

#include "impls/cpu_simd/cpu_simd.h"

/* One layer and direction, with the part of the work of one thread. */
struct layer_dir {
    struct lb_cpu_part part;
    const struct lb_forward_io *io;
    struct lb_cpu_range panels; /* of this thread */
    const char *in;             /* [T, B, I_l] */
    char *y;                    /* [T, B, D*H], at this direction's first unit */
    const char *h0;             /* [B, H] */
    char *hn, *cn;
    char *c; /* [B, H] in infer, else [T, B, H]: cell states, of sum_elem bytes */
    const void **h_before, **c_before; /* [B] of this thread, set for each step */
};

static struct layer_dir open_layer_dir(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_forward_io *io = call->forward;
    const struct lb_cpu_sizes *s = &simd->s;
    const struct lb_cpu_part part = lb_cpu_part_of(simd, index, thread, io->c0);
    size_t state = index * s->B * s->H, l = part.l, d = part.d;
    return (struct layer_dir){
        .part = part,
        .io = io,
        .panels = lb_cpu_columns(simd, s->panels, thread),
        .in = l == 0 ? io->x : lb_cpu_output(simd, io->y, l - 1),
        .y = lb_cpu_at(simd, lb_cpu_output(simd, io->y, l), d * s->H),
        .h0 = lb_cpu_at(simd, io->h0, state),
        .hn = lb_cpu_at(simd, io->hn, state),
        .cn = lb_cpu_at(simd, io->cn, state),
        .c = simd->cells ? lb_cpu_sum_at(simd, simd->cells, index * s->rows * s->H)
             : simd->c   ? lb_cpu_sum_at(simd, simd->c, state)
                         : lb_cpu_at(simd, io->cn, state),
        .h_before = part.pointers,
        .c_before = part.pointers + s->B,
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

/* Rows of this team's input of step t on, which become rows of the operand from `at` on. */
static struct lb_cpu_rows input_rows(const struct layer_dir *ld, size_t t, size_t at, size_t rows)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    size_t first = t * simd->s.B + ld->part.rows.from;
    struct lb_cpu_rows in = {.base = lb_cpu_at(simd, ld->in, first * ld->part.input),
                             .stride = ld->part.input};
    return lb_cpu_operand(simd, ld->part.thread, in, at, rows, ld->part.input);
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
        struct lb_cpu_rows in = input_rows(ld, t + i, 0, rows);
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
            ld->h_before[b] = lb_cpu_at(simd, ld->h0, b * s->H);
            ld->c_before[b] = lb_cpu_sum_at(simd, ld->part.c0, b * s->H);
            continue;
        }
        ld->h_before[b] = lb_cpu_at(simd, ld->y, before * s->wide);
        ld->c_before[b] = lb_cpu_sum_at(simd, ld->c, (simd->cells ? before : b) * s->H);
    }
}

/* This thread's part of step t. The chunk begins at step `from`. */
static void step(const struct layer_dir *ld, size_t t, size_t from)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t first_row = ld->part.rows.from, to = lb_cpu_active_to(simd, ld->part.rows, t);
    size_t k = lb_cpu_padded(simd, s->H);
    char *c = lb_cpu_sum_at(simd, ld->c, (simd->cells ? t * s->B : 0) * s->H);
    find_states(ld, t, to);
    struct lb_cpu_rows h_before =
        lb_cpu_operand(simd, ld->part.thread, (struct lb_cpu_rows){.at = ld->h_before + first_row},
                       0, to - first_row, s->H);
    for (size_t p = ld->panels.from; p < ld->panels.to; p++) {
        size_t first = p * s->simd_width;
        size_t units = s->H - first < s->simd_width ? s->H - first : s->simd_width;
        char *h = lb_cpu_at(simd, ld->y, t * s->B * s->wide + first);
        if (to > first_row)
            simd->kernels->forward(&(struct lb_cpu_forward){
                .gemm = {.rows = to - first_row,
                         .k = s->H,
                         .columns = s->width,
                         .a = h_before,
                         .w = lb_cpu_at(simd, ld->part.w.w_hh, p * k * s->width),
                         .sums = pre_of(ld, p, t, from, first_row),
                         .stride = s->width},
                .units = units,
                .first = first,
                .c_before = ld->c_before + first_row,
                .c = lb_cpu_sum_at(simd, c, first_row * s->H),
                .h = lb_cpu_at(simd, h, first_row * s->wide),
                .c_stride = s->H,
                .h_stride = s->wide,
                .gates = simd->gates ? lb_cpu_gates(simd, ld->part.index, p, t * s->B + first_row)
                                     : NULL,
            });
        for (size_t b = to; b < ld->part.rows.to; b++) /* rows that have ended */
            memset(lb_cpu_at(simd, h, b * s->wide), 0, units * simd->elem);
    }
}

/* Writes the last h and c of this thread's share of its team's rows. */
static void write_states(const struct layer_dir *ld)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t first = ld->part.rows.from;
    struct lb_cpu_range rows = lb_cpu_columns(simd, ld->part.rows.to - first, ld->part.thread);
    for (size_t b = first + rows.from; b < first + rows.to; b++) {
        size_t last = lb_cpu_last_step(simd, ld->part.d, b) * s->B + b;
        const void *c = lb_cpu_sum_at(simd, ld->c, (simd->cells ? last : b) * s->H);
        char *cn = lb_cpu_at(simd, ld->cn, b * s->H);
        memcpy(lb_cpu_at(simd, ld->hn, b * s->H), lb_cpu_at(simd, ld->y, last * s->wide),
               s->H * simd->elem);
        if (simd->half)
            simd->kernels->from_f32(c, cn, s->H);
        else if (simd->cells)
            memcpy(cn, c, s->H * simd->elem);
    }
}

/* This thread's part of c0 as f32, where the problem's dtype is another. */
static void convert_c0(const struct layer_dir *ld)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_range units = {ld->panels.from * s->simd_width, ld->panels.to * s->simd_width};
    units.to = units.to < s->H ? units.to : s->H;
    if (simd->half)
        lb_cpu_state_to_f32(simd, lb_cpu_at(simd, ld->io->c0, ld->part.index * s->B * s->H),
                            lb_cpu_sum_at(simd, ld->part.c0, 0), ld->part.rows, units);
}

void lb_cpu_forward_work(void *arg, size_t thread)
{
    const struct lb_cpu_call *call = arg;
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    for (size_t index = 0; index < s->layer_dirs; index++) {
        struct layer_dir ld = open_layer_dir(call, index, thread);
        convert_c0(&ld);
        for (size_t done = 0, steps; done < s->T; done += steps) {
            steps = s->T - done < simd->chunk ? s->T - done : simd->chunk;
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
