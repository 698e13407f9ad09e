/* cpu_simd, forward: the input GEMM of a chunk of steps, then these steps, panel by panel. */
#include <string.h>

#include "impls/cpu_simd/cpu_simd.h"

/* One layer and direction, with the part of the work of one thread. */
struct layer_dir {
    const struct lb_cpu_simd *simd;
    const struct lb_forward_io *io;
    size_t index, l, d, input;
    struct lb_cpu_weights w;
    struct lb_cpu_range panels, rows; /* of this thread */
    const char *in;                   /* [T, B, I_l] */
    char *y;                          /* [T, B, D*H], at this direction's first unit */
    const char *h0, *c0;              /* [B, H] */
    char *hn, *cn;
    const void **h_before, **c_before; /* [B] of this thread, set for each step */
};

static struct layer_dir open_layer_dir(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_forward_io *io = call->forward;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t state = index * s->B * s->H, l = index / s->D, d = index % s->D;
    const void **pointers = simd->pointers + thread * 2 * s->B;
    return (struct layer_dir){
        .simd = simd,
        .io = io,
        .index = index,
        .l = l,
        .d = d,
        .input = lb_cpu_input(simd, index),
        .w = lb_cpu_weights_of(simd, index),
        .panels = lb_cpu_columns(simd, s->panels, thread),
        .rows = lb_cpu_rows(simd, thread),
        .in = l == 0 ? io->x : lb_cpu_output(simd, io->y, l - 1),
        .y = lb_cpu_at(simd, lb_cpu_output(simd, io->y, l), d * s->H),
        .h0 = lb_cpu_at(simd, io->h0, state),
        .c0 = lb_cpu_at(simd, io->c0, state),
        .hn = lb_cpu_at(simd, io->hn, state),
        .cn = lb_cpu_at(simd, io->cn, state),
        .h_before = pointers,
        .c_before = pointers + s->B,
    };
}

/* The gates of a panel from row b of step t on. The chunk begins at step `from`. */
static char *gates_of(const struct layer_dir *ld, size_t panel, size_t t, size_t from, size_t b)
{
    const struct lb_cpu_simd *simd = ld->simd;
    bool kept = simd->cells != NULL;
    return lb_cpu_gates(simd, kept ? ld->index : 0, panel, (kept ? t : t - from) * simd->s.B + b);
}

/* Bias plus input GEMM of `steps` steps from t on. */
static void input_gemm(const struct layer_dir *ld, size_t t, size_t steps)
{
    const struct lb_cpu_simd *simd = ld->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t parts = simd->by_rows ? steps : 1, rows = ld->rows.to - ld->rows.from;
    for (size_t p = ld->panels.from; p < ld->panels.to; p++)
        for (size_t i = 0; i < parts && rows > 0; i++) {
            size_t first = (t + i) * s->B + ld->rows.from;
            simd->kernels->accumulate(&(struct lb_cpu_gemm){
                .rows = simd->by_rows ? rows : steps * s->B,
                .k = ld->input,
                .columns = s->width,
                .a = {.base = lb_cpu_at(simd, ld->in, first * ld->input), .stride = ld->input},
                .w = lb_cpu_at(simd, ld->w.w_ih, p * ld->input * s->width),
                .bias = lb_cpu_at(simd, ld->w.bias, p * s->width),
                .sums = gates_of(ld, p, t + i, t, ld->rows.from),
                .stride = s->width,
            });
        }
}

/* Finds the states before step t of this thread's rows up to `to`. */
static void find_states(const struct layer_dir *ld, size_t t, size_t to)
{
    const struct lb_cpu_simd *simd = ld->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    for (size_t b = ld->rows.from; b < to; b++) {
        size_t before = (ld->d == 0 ? t - 1 : t + 1) * s->B + b;
        if (t == lb_cpu_first_step(simd, ld->d, b)) {
            ld->h_before[b] = lb_cpu_at(simd, ld->h0, b * s->H);
            ld->c_before[b] = lb_cpu_at(simd, ld->c0, b * s->H);
            continue;
        }
        ld->h_before[b] = lb_cpu_at(simd, ld->y, before * s->wide);
        ld->c_before[b] = simd->cells
                              ? lb_cpu_at(simd, simd->cells, (ld->index * s->rows + before) * s->H)
                              : lb_cpu_at(simd, ld->cn, b * s->H);
    }
}

/* This thread's part of step t. The chunk begins at step `from`. */
static void step(const struct layer_dir *ld, size_t t, size_t from)
{
    const struct lb_cpu_simd *simd = ld->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t first_row = ld->rows.from, to = lb_cpu_active_to(simd, ld->rows, t);
    char *cells = simd->cells
                      ? lb_cpu_at(simd, simd->cells, (ld->index * s->rows + t * s->B) * s->H)
                      : ld->cn;
    find_states(ld, t, to);
    for (size_t p = ld->panels.from; p < ld->panels.to; p++) {
        size_t first = p * s->simd_width,
               units = s->H - first < s->simd_width ? s->H - first : s->simd_width;
        char *h = lb_cpu_at(simd, ld->y, t * s->B * s->wide + first);
        if (to > first_row)
            simd->kernels->forward(&(struct lb_cpu_forward){
                .gemm = {.rows = to - first_row,
                         .k = s->H,
                         .columns = s->width,
                         .a = {.at = ld->h_before + first_row},
                         .w = lb_cpu_at(simd, ld->w.w_hh, p * s->H * s->width),
                         .sums = gates_of(ld, p, t, from, first_row),
                         .stride = s->width},
                .units = units,
                .first = first,
                .c_before = ld->c_before + first_row,
                .c = lb_cpu_at(simd, cells, first_row * s->H),
                .h = lb_cpu_at(simd, h, first_row * s->wide),
                .c_stride = s->H,
                .h_stride = s->wide,
                .keep = simd->cells != NULL,
            });
        for (size_t b = to; b < ld->rows.to; b++) /* rows that have ended */
            memset(lb_cpu_at(simd, h, b * s->wide), 0, units * simd->elem);
    }
}

/* Writes the last h and c of these rows. */
static void write_states(const struct layer_dir *ld, struct lb_cpu_range rows)
{
    const struct lb_cpu_simd *simd = ld->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t bytes = s->H * simd->elem;
    for (size_t b = rows.from; b < rows.to; b++) {
        size_t last = lb_cpu_last_step(simd, ld->d, b) * s->B + b;
        memcpy(lb_cpu_at(simd, ld->hn, b * s->H), lb_cpu_at(simd, ld->y, last * s->wide), bytes);
        if (simd->cells)
            memcpy(lb_cpu_at(simd, ld->cn, b * s->H),
                   lb_cpu_at(simd, simd->cells, (ld->index * s->rows + last) * s->H), bytes);
    }
}

void lb_cpu_forward_work(void *arg, size_t thread)
{
    const struct lb_cpu_call *call = arg;
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    for (size_t index = 0; index < s->layer_dirs; index++) {
        struct layer_dir ld = open_layer_dir(call, index, thread);
        for (size_t done = 0, steps; done < s->T; done += steps) {
            steps = s->T - done < simd->chunk ? s->T - done : simd->chunk;
            size_t from = ld.d == 0 ? done : s->T - done - steps;
            input_gemm(&ld, from, steps);
            for (size_t i = 0; i < steps; i++) {
                step(&ld, ld.d == 0 ? from + i : from + steps - 1 - i, from);
                if (!simd->by_rows)
                    lb_team_meet(simd->team);
            }
        }
        write_states(&ld, lb_cpu_share(simd, s->B, thread));
    }
}
