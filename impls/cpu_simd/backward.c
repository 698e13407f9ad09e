/* cpu_simd, backward: the steps, four panels at a time, then gradients over all steps at once. */
#include <string.h>

#include "impls/cpu_simd/cpu_simd.h"

/* One entry, as one thread sees it. */
struct entry {
    const struct lb_cpu_simd *blas;
    const struct lb_backward_io *io;
    size_t index, l, d, input;
    struct lb_cpu_weights w;
    char *sums;                 /* this thread's scratch */
    struct lb_cpu_range quads;  /* of panels: this thread's in a step */
    struct lb_cpu_range rows;   /* likewise */
    const char *cells;          /* [T, B, H] */
    const char *dy;             /* [T, B, D*H], at this direction's first unit */
    const char *c0, *dhn, *dcn; /* [B, H] */
    char *dh0, *dc0;
    const void **c_before, **dhn_of; /* [B] this thread's */
};

static struct entry open_entry(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_simd *blas = call->blas;
    const struct lb_backward_io *io = call->backward;
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
        .sums = lb_cpu_at(blas, blas->sums, thread * s->B * s->width),
        .quads = lb_cpu_columns(blas, lb_cpu_cover(s->panels, 4), thread),
        .rows = lb_cpu_rows(blas, thread),
        .cells = lb_cpu_at(blas, blas->cells, index * s->rows * s->H),
        .dy = lb_cpu_at(blas, l == s->L - 1 ? io->dy : blas->between, d * s->H),
        .c0 = lb_cpu_at(blas, io->c0, state),
        .dhn = lb_cpu_at(blas, io->dhn, state),
        .dcn = lb_cpu_at(blas, io->dcn, state),
        .dh0 = lb_cpu_at(blas, io->dh0, state),
        .dc0 = lb_cpu_at(blas, io->dc0, state),
        .c_before = pointers,
        .dhn_of = pointers + s->B,
    };
}

/* Gradients of a, of all panels: `rows` rows a panel, from one of them on. */
static struct lb_cpu_rows gradients_of(const struct lb_cpu_simd *blas, const void *from,
                                       size_t rows)
{
    size_t width = blas->s.width;
    return (struct lb_cpu_rows){
        .base = from, .stride = width, .piece = width, .jump = rows * width};
}

/* What all calls of a quad of panels, on this thread's rows up to `to`, have in common. */
static struct lb_cpu_backward quad_of(const struct entry *e, size_t quad, size_t to)
{
    const struct lb_cpu_simd *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t first = quad * s->width;
    return (struct lb_cpu_backward){
        .product = {.rows = to - e->rows.from,
                    .k = s->gates,
                    .columns = s->H - first < s->width ? s->H - first : s->width,
                    .w = lb_cpu_at(blas, e->w.back_hh, quad * s->gates * s->width),
                    .sums = e->sums,
                    .stride = s->width},
        .first = first,
        .c_stride = s->H,
    };
}

/* Where this thread's rows up to `to` have their cell states before step t, and which gradients
 * enter at their last step. */
static void find_states(const struct entry *e, size_t t, size_t to)
{
    const struct lb_cpu_simd *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    for (size_t b = e->rows.from; b < to; b++) {
        size_t before = (e->d == 0 ? t - 1 : t + 1) * s->B + b;
        e->c_before[b] = t == lb_cpu_first_step(blas, e->d, b)
                             ? lb_cpu_at(blas, e->c0, b * s->H)
                             : lb_cpu_at(blas, e->cells, before * s->H);
        e->dhn_of[b] =
            t == lb_cpu_last_step(blas, e->d, b) ? lb_cpu_at(blas, e->dhn, b * s->H) : NULL;
    }
}

/* A quad's gradients of a at step t: zero in rows from `to` on, which have no such step, and kept
 * apart in rows whose first step it is. */
static void close_step(const struct entry *e, size_t quad, size_t t, size_t to)
{
    const struct lb_cpu_simd *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t bytes = s->width * blas->elem;
    for (size_t p = 4 * quad; p < 4 * quad + 4 && p < s->panels; p++)
        for (size_t b = e->rows.from; b < e->rows.to; b++) {
            char *row = lb_cpu_gates(blas, e->index, p, t * s->B + b);
            if (b >= to)
                memset(row, 0, bytes);
            else if (t == lb_cpu_first_step(blas, e->d, b))
                memcpy(lb_cpu_at(blas, blas->first, (p * s->B + b) * s->width), row, bytes);
        }
}

/* This thread's part of step t; later: whether a step after it was done. */
static void step(const struct entry *e, size_t t, bool later)
{
    const struct lb_cpu_simd *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t from = e->rows.from, to = lb_cpu_active_to(blas, e->rows, t), row = t * s->B + from;
    find_states(e, t, to);
    for (size_t quad = e->quads.from; quad < e->quads.to; quad++) {
        struct lb_cpu_backward f = quad_of(e, quad, to);
        if (later)
            f.product.a = gradients_of(
                blas, lb_cpu_gates(blas, e->index, 0, e->d == 0 ? row + s->B : row - s->B),
                blas->gate_rows);
        else
            f.product.k = 0;
        f.dhn = e->dhn_of + from;
        f.dy = lb_cpu_at(blas, e->dy, row * s->wide + f.first);
        f.dy_stride = s->wide;
        f.gates = lb_cpu_gates(blas, e->index, 4 * quad, row);
        f.gates_jump = blas->gate_rows * s->width;
        f.c = lb_cpu_at(blas, e->cells, row * s->H);
        f.c_before = e->c_before + from;
        f.dc = lb_cpu_at(blas, e->dc0, from * s->H);
        if (to > from)
            blas->kernels->backward(&f);
        close_step(e, quad, t, to);
    }
}

/* Back through the steps of an entry, to dh0 and dc0. */
static void steps(const struct entry *e)
{
    const struct lb_cpu_simd *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t from = e->quads.from * s->width, to = e->quads.to * s->width;
    to = to > s->H ? s->H : to;
    for (size_t b = e->rows.from; b < e->rows.to && from < to; b++)
        memcpy(lb_cpu_at(blas, e->dc0, b * s->H + from), lb_cpu_at(blas, e->dcn, b * s->H + from),
               (to - from) * blas->elem);
    for (size_t i = 0; i < s->T; i++) {
        step(e, e->d == 0 ? s->T - 1 - i : i, i > 0);
        if (!blas->by_rows)
            lb_pinned_threads_barrier(blas->team);
    }
    for (size_t quad = e->quads.from; quad < e->quads.to; quad++) {
        struct lb_cpu_backward f = quad_of(e, quad, e->rows.to);
        f.product.a =
            gradients_of(blas, lb_cpu_at(blas, blas->first, e->rows.from * s->width), s->B);
        f.dh0 = lb_cpu_at(blas, e->dh0, e->rows.from * s->H);
        if (f.product.rows > 0)
            blas->kernels->backward(&f);
    }
}

/* Rows of a product over steps that are summed at a time, and bytes of them from which on they are
 * packed. */
enum { DEPTH = 512, FAR_BYTES = 768 << 10 };

size_t lb_cpu_packed_bytes(const struct lb_cpu_simd *blas)
{
    const struct lb_cpu_sizes *s = &blas->s;
    size_t input = (size_t)blas->problem.input, rows = s->rows < DEPTH ? s->rows : DEPTH;
    size_t widest = s->L > 1 && s->wide > input ? s->wide : input;
    widest = widest > s->H ? widest : s->H;
    widest = lb_cpu_cover(widest, blas->kernels->group) * blas->kernels->group;
    size_t stride = s->wide > widest ? s->wide : widest;
    return rows * stride * blas->elem > FAR_BYTES ? rows * widest * blas->elem : 0;
}

/* A product over steps: dw [panels, columns, width] = in [rows, columns] transposed, times da. */
struct outer {
    size_t rows;
    const char *in;
    size_t columns, stride; /* of in */
    const char *da;         /* its first row of the first panel */
    size_t da_rows;         /* from a panel to the next */
    char *dw, *db;          /* db may be NULL */
    bool add;               /* to what dw and db hold */
};

/* This thread's panels of a product, some hundred rows at a time. Where those of `in` are more than
 * the L2 cache holds, they are brought into the order in which each panel reads them. */
static void multiply(const struct lb_cpu_simd *blas, size_t thread, const struct outer *o)
{
    const struct lb_cpu_sizes *s = &blas->s;
    struct lb_cpu_range panels = lb_cpu_share(blas, s->panels, thread);
    void *packed = blas->packed + thread * blas->packed_bytes;
    for (size_t from = 0; from < o->rows; from += DEPTH) {
        struct lb_cpu_outer part = {
            .rows = o->rows - from < DEPTH ? o->rows - from : DEPTH,
            .columns = o->columns,
            .in = lb_cpu_at(blas, o->in, from * o->stride),
            .stride = o->stride,
            .add = o->add || from > 0,
        };
        if (part.rows * o->stride * blas->elem > FAR_BYTES) {
            blas->kernels->pack(&part, packed);
            part.in = packed;
            part.packed = true;
        }
        for (size_t p = panels.from; p < panels.to; p++) {
            part.da = lb_cpu_at(blas, o->da, (p * o->da_rows + from) * s->width);
            part.dw = lb_cpu_at(blas, o->dw, p * o->columns * s->width);
            part.db = o->db ? lb_cpu_at(blas, o->db, p * s->width) : NULL;
            blas->kernels->outer(&part);
        }
    }
}

/* This thread's panels of an entry's weight gradients. Gradients of a are zero where a row has no
 * step, and so is y: a step's h before it is y one step earlier, in one product, or h0 at a row's
 * first step. */
static void weight_gradients(const struct entry *e, size_t thread)
{
    const struct lb_cpu_simd *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    struct lb_cpu_gradients g = lb_cpu_gradients_of(blas, e->index);
    const char *in = e->l == 0 ? e->io->x : lb_cpu_output(blas, e->io->y, e->l - 1);
    const char *y = lb_cpu_at(blas, lb_cpu_output(blas, e->io->y, e->l), e->d * s->H);
    multiply(blas, thread,
             &(struct outer){.rows = s->rows,
                             .in = in,
                             .columns = e->input,
                             .stride = e->input,
                             .da = lb_cpu_gates(blas, e->index, 0, 0),
                             .da_rows = blas->gate_rows,
                             .dw = g.dw_ih,
                             .db = g.db});
    multiply(blas, thread,
             &(struct outer){.rows = s->B,
                             .in = lb_cpu_at(blas, e->io->h0, e->index * s->B * s->H),
                             .columns = s->H,
                             .stride = s->H,
                             .da = blas->first,
                             .da_rows = s->B,
                             .dw = g.dw_hh});
    multiply(blas, thread,
             &(struct outer){.rows = s->rows - s->B,
                             .in = lb_cpu_at(blas, y, e->d == 0 ? 0 : s->B * s->wide),
                             .columns = s->H,
                             .stride = s->wide,
                             .da = lb_cpu_gates(blas, e->index, 0, e->d == 0 ? s->B : 0),
                             .da_rows = blas->gate_rows,
                             .dw = g.dw_hh,
                             .add = true});
}

/* This thread's rows of the gradient of a layer's input [T, B, I_l], a chunk of them at a time:
 * their gradients of a stay near while all columns are made. */
static void input_gradients(const struct lb_cpu_simd *blas, size_t l, size_t thread, char *dinput)
{
    static const double zeros[64]; /* what sums start from; a row of any width */
    const struct lb_cpu_sizes *s = &blas->s;
    struct lb_cpu_range rows = lb_cpu_share(blas, s->rows, thread);
    size_t input = lb_cpu_input(blas, l * s->D), count;
    size_t most = 2 * lb_cpu_rows_at_a_time(blas, input);
    for (size_t row = rows.from; row < rows.to; row += count) {
        count = rows.to - row < most ? rows.to - row : most;
        for (size_t d = 0; d < s->D; d++)
            for (size_t first = 0; first < input; first += s->width) {
                size_t e = l * s->D + d;
                blas->kernels->accumulate(&(struct lb_cpu_product){
                    .rows = count,
                    .k = s->gates,
                    .columns = input - first < s->width ? input - first : s->width,
                    .a = gradients_of(blas, lb_cpu_gates(blas, e, 0, row), blas->gate_rows),
                    .w = lb_cpu_at(blas, lb_cpu_weights_of(blas, e).back_ih, first * s->gates),
                    .bias = d == 0 ? zeros : NULL,
                    .sums = lb_cpu_at(blas, dinput, row * input + first),
                    .stride = input,
                });
            }
    }
}

void lb_cpu_backward_work(void *arg, size_t thread)
{
    const struct lb_cpu_call *call = arg;
    const struct lb_cpu_simd *blas = call->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    for (size_t l = s->L; l-- > 0;) {
        for (size_t d = 0; d < s->D; d++) {
            struct entry e = open_entry(call, l * s->D + d, thread);
            steps(&e);
            lb_pinned_threads_barrier(blas->team); /* gradients of a are whole */
            weight_gradients(&e, thread);
            lb_pinned_threads_barrier(blas->team); /* all have read `first` */
        }
        input_gradients(blas, l, thread, l == 0 ? call->backward->dx : blas->between);
        lb_pinned_threads_barrier(blas->team);
    }
}
