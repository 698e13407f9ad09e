/* cpu_blas, forward: input products of a chunk of steps, then the steps, panel by panel. */
#include <string.h>

#include "cpu_blas.h"

/* One entry, as one thread sees it. */
struct entry {
    const struct lb_cpu_blas *blas;
    const struct lb_forward_io *io;
    size_t index, l, d, input;
    struct lb_cpu_weights w;
    struct lb_cpu_range panels; /* this thread's */
    const char *in;             /* [T, B, I_l] */
    char *y;                    /* [T, B, D*H], at this direction's first unit */
    const char *h0, *c0;        /* [B, H] */
    char *hn, *cn;
    const void **h_before, **c_before; /* [B] this thread's, set anew for each step */
};

static struct entry open_entry(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_blas *blas = call->blas;
    const struct lb_forward_io *io = call->forward;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t state = index * s->B * s->H, l = index / s->D, d = index % s->D;
    const void **pointers = blas->pointers + thread * 3 * s->B;
    return (struct entry){
        .blas = blas,
        .io = io,
        .index = index,
        .l = l,
        .d = d,
        .input = lb_cpu_input(blas, index),
        .w = lb_cpu_weights_of(blas, index),
        .panels = lb_cpu_share(blas, s->panels, thread),
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

/* Bias and input products of `steps` steps from t on -> gates [steps, B, gates]. */
static void input_products(const struct entry *e, size_t t, size_t steps, char *gates)
{
    const struct lb_cpu_blas *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t width = 4 * s->lanes;
    for (size_t p = e->panels.from; p < e->panels.to; p++)
        blas->kernels->accumulate(&(struct lb_cpu_product){
            .rows = steps * s->B,
            .k = e->input,
            .a = {.base = lb_cpu_at(blas, e->in, t * s->B * e->input), .stride = e->input},
            .w = lb_cpu_at(blas, e->w.w_ih, p * e->input * width),
            .bias = lb_cpu_at(blas, e->w.bias, p * width),
            .sums = lb_cpu_at(blas, gates, p * width),
            .stride = s->gates,
        });
}

/* Where each active row's states before step t are. */
static void find_states(const struct entry *e, size_t t, size_t rows)
{
    const struct lb_cpu_blas *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    for (size_t b = 0; b < rows; b++) {
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

/* This thread's panels of step t; gates [B, gates] hold the input products. */
static void step(const struct entry *e, size_t t, char *gates)
{
    const struct lb_cpu_blas *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t rows = lb_cpu_active(blas, t), width = 4 * s->lanes;
    char *cells =
        blas->cells ? lb_cpu_at(blas, blas->cells, (e->index * s->rows + t * s->B) * s->H) : e->cn;
    find_states(e, t, rows);
    for (size_t p = e->panels.from; p < e->panels.to; p++) {
        size_t first = p * s->lanes, units = s->H - first < s->lanes ? s->H - first : s->lanes;
        char *h = lb_cpu_at(blas, e->y, t * s->B * s->wide + first);
        blas->kernels->forward(&(struct lb_cpu_forward){
            .product = {.rows = rows,
                        .k = s->H,
                        .a = {.at = e->h_before},
                        .w = lb_cpu_at(blas, e->w.w_hh, p * s->H * width),
                        .sums = lb_cpu_at(blas, gates, p * width),
                        .stride = s->gates},
            .units = units,
            .first = first,
            .c_before = e->c_before,
            .c = cells,
            .h = h,
            .c_stride = s->H,
            .h_stride = s->wide,
            .keep = blas->cells != NULL,
        });
        for (size_t b = rows; b < s->B; b++) /* rows that are over */
            memset(lb_cpu_at(blas, h, b * s->wide), 0, units * blas->elem);
    }
}

/* Every row's last h and c, the rows split among threads. */
static void write_states(const struct entry *e, struct lb_cpu_range rows)
{
    const struct lb_cpu_blas *blas = e->blas;
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
    const struct lb_cpu_blas *blas = call->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    for (size_t index = 0; index < s->entries; index++) {
        struct entry e = open_entry(call, index, thread);
        for (size_t done = 0, steps; done < s->T; done += steps) {
            steps = s->T - done < blas->chunk ? s->T - done : blas->chunk;
            size_t from = e.d == 0 ? done : s->T - done - steps;
            size_t before = blas->cells ? index * s->rows + from * s->B : 0;
            char *gates = lb_cpu_at(blas, blas->gates, before * s->gates);
            input_products(&e, from, steps, gates);
            for (size_t i = 0; i < steps; i++) {
                size_t now = e.d == 0 ? i : steps - 1 - i;
                step(&e, from + now, lb_cpu_at(blas, gates, now * s->B * s->gates));
                lb_team_meet(blas->team);
            }
        }
        write_states(&e, lb_cpu_share(blas, s->B, thread));
    }
}
