/* cpu_simd, forward: input products of a chunk of steps, then the steps, panel by panel. */
#include <string.h>

#include "impls/cpu_simd/cpu_simd.h"

/* One entry, as one thread sees it. */
struct entry {
    const struct lb_cpu_simd *blas;
    const struct lb_forward_io *io;
    size_t index, l, d, input;
    struct lb_cpu_weights w;
    struct lb_cpu_range panels, rows; /* this thread's */
    const char *in;                   /* [T, B, I_l] */
    char *y;                          /* [T, B, D*H], at this direction's first unit */
    const char *h0, *c0;              /* [B, H] */
    char *hn, *cn;
    const void **h_before, **c_before; /* [B] this thread's, set anew for each step */
};

static struct entry open_entry(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_simd *blas = call->blas;
    const struct lb_forward_io *io = call->forward;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t state = index * s->B * s->H, l = index / s->D, d = index % s->D;
    const void **pointers = blas->pointers + thread * 2 * s->B;
    return (struct entry){
        .blas = blas,
        .io = io,
        .index = index,
        .l = l,
        .d = d,
        .input = lb_cpu_input(blas, index),
        .w = lb_cpu_weights_of(blas, index),
        .panels = lb_cpu_columns(blas, s->panels, thread),
        .rows = lb_cpu_rows(blas, thread),
        .in = l == 0 ? io->x : lb_cpu_output(blas, io->y, l - 1),
        .y = lb_cpu_at(blas, lb_cpu_output(blas, io->y, l), d * s->H),
        .h0 = lb_cpu_at(blas, io->h0, state),
        .c0 = lb_cpu_at(blas, io->c0, state),
        .hn = lb_cpu_at(blas, io->hn, state),
        .cn = lb_cpu_at(blas, io->cn, state),
        .h_before = pointers,
        .c_before = pointers + s->B,
    };
}

/* A panel's gates from row b of step t on; the first step of the chunk is `from`. */
static char *gates_of(const struct entry *e, size_t panel, size_t t, size_t from, size_t b)
{
    const struct lb_cpu_simd *blas = e->blas;
    bool kept = blas->cells != NULL;
    return lb_cpu_gates(blas, kept ? e->index : 0, panel, (kept ? t : t - from) * blas->s.B + b);
}

/* Bias and input products of `steps` steps from t on. */
static void input_products(const struct entry *e, size_t t, size_t steps)
{
    const struct lb_cpu_simd *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t parts = blas->by_rows ? steps : 1, rows = e->rows.to - e->rows.from;
    for (size_t p = e->panels.from; p < e->panels.to; p++)
        for (size_t i = 0; i < parts && rows > 0; i++) {
            size_t first = (t + i) * s->B + e->rows.from;
            blas->kernels->accumulate(&(struct lb_cpu_product){
                .rows = blas->by_rows ? rows : steps * s->B,
                .k = e->input,
                .columns = s->width,
                .a = {.base = lb_cpu_at(blas, e->in, first * e->input), .stride = e->input},
                .w = lb_cpu_at(blas, e->w.w_ih, p * e->input * s->width),
                .bias = lb_cpu_at(blas, e->w.bias, p * s->width),
                .sums = gates_of(e, p, t + i, t, e->rows.from),
                .stride = s->width,
            });
        }
}

/* Where this thread's rows up to `to` have their states before step t. */
static void find_states(const struct entry *e, size_t t, size_t to)
{
    const struct lb_cpu_simd *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    for (size_t b = e->rows.from; b < to; b++) {
        size_t before = (e->d == 0 ? t - 1 : t + 1) * s->B + b;
        if (t == lb_cpu_first_step(blas, e->d, b)) {
            e->h_before[b] = lb_cpu_at(blas, e->h0, b * s->H);
            e->c_before[b] = lb_cpu_at(blas, e->c0, b * s->H);
            continue;
        }
        e->h_before[b] = lb_cpu_at(blas, e->y, before * s->wide);
        e->c_before[b] = blas->cells
                             ? lb_cpu_at(blas, blas->cells, (e->index * s->rows + before) * s->H)
                             : lb_cpu_at(blas, e->cn, b * s->H);
    }
}

/* This thread's part of step t of a chunk that begins at step `from`. */
static void step(const struct entry *e, size_t t, size_t from)
{
    const struct lb_cpu_simd *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t first_row = e->rows.from, to = lb_cpu_active_to(blas, e->rows, t);
    char *cells =
        blas->cells ? lb_cpu_at(blas, blas->cells, (e->index * s->rows + t * s->B) * s->H) : e->cn;
    find_states(e, t, to);
    for (size_t p = e->panels.from; p < e->panels.to; p++) {
        size_t first = p * s->lanes, units = s->H - first < s->lanes ? s->H - first : s->lanes;
        char *h = lb_cpu_at(blas, e->y, t * s->B * s->wide + first);
        if (to > first_row)
            blas->kernels->forward(&(struct lb_cpu_forward){
                .product = {.rows = to - first_row,
                            .k = s->H,
                            .columns = s->width,
                            .a = {.at = e->h_before + first_row},
                            .w = lb_cpu_at(blas, e->w.w_hh, p * s->H * s->width),
                            .sums = gates_of(e, p, t, from, first_row),
                            .stride = s->width},
                .units = units,
                .first = first,
                .c_before = e->c_before + first_row,
                .c = lb_cpu_at(blas, cells, first_row * s->H),
                .h = lb_cpu_at(blas, h, first_row * s->wide),
                .c_stride = s->H,
                .h_stride = s->wide,
                .keep = blas->cells != NULL,
            });
        for (size_t b = to; b < e->rows.to; b++) /* rows that are over */
            memset(lb_cpu_at(blas, h, b * s->wide), 0, units * blas->elem);
    }
}

/* Every row's last h and c, the rows split among threads. */
static void write_states(const struct entry *e, struct lb_cpu_range rows)
{
    const struct lb_cpu_simd *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t bytes = s->H * blas->elem;
    for (size_t b = rows.from; b < rows.to; b++) {
        size_t last = lb_cpu_last_step(blas, e->d, b) * s->B + b;
        memcpy(lb_cpu_at(blas, e->hn, b * s->H), lb_cpu_at(blas, e->y, last * s->wide), bytes);
        if (blas->cells)
            memcpy(lb_cpu_at(blas, e->cn, b * s->H),
                   lb_cpu_at(blas, blas->cells, (e->index * s->rows + last) * s->H), bytes);
    }
}

void lb_cpu_forward_work(void *arg, size_t thread)
{
    const struct lb_cpu_call *call = arg;
    const struct lb_cpu_simd *blas = call->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    for (size_t index = 0; index < s->entries; index++) {
        struct entry e = open_entry(call, index, thread);
        for (size_t done = 0, steps; done < s->T; done += steps) {
            steps = s->T - done < blas->chunk ? s->T - done : blas->chunk;
            size_t from = e.d == 0 ? done : s->T - done - steps;
            input_products(&e, from, steps);
            for (size_t i = 0; i < steps; i++) {
                step(&e, e.d == 0 ? from + i : from + steps - 1 - i, from);
                if (!blas->by_rows)
                    lb_pinned_threads_barrier(blas->team);
            }
        }
        write_states(&e, lb_cpu_share(blas, s->B, thread));
    }
}
