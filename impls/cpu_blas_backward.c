/* cpu_blas, backward: the steps, four panels at a time, then gradients over all steps at once. */
#include <cblas.h>
#include <string.h>

#include "cpu_blas.h"

/* One entry, as one thread sees it. */
struct entry {
    const struct lb_cpu_blas *blas;
    const struct lb_backward_io *io;
    size_t index, l, d, input;
    struct lb_cpu_weights w;
    struct lb_cpu_range quads;   /* this thread's */
    struct lb_cpu_range columns; /* of gates, in those quads */
    char *gates;                 /* [T, B, gates] */
    const char *cells;           /* [T, B, H] */
    const char *dy;              /* [T, B, D*H], at this direction's first unit */
    const char *c0, *dhn, *dcn;  /* [B, H] */
    char *dh0, *dc0;
    const void **c_before, **dhn_of, **first; /* [B] this thread's */
};

static struct entry open_entry(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_blas *blas = call->blas;
    const struct lb_backward_io *io = call->backward;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t state = index * s->B * s->H, l = index / s->D, d = index % s->D;
    size_t width = 16 * s->lanes;
    const void **pointers = blas->pointers + thread * 3 * s->B;
    struct lb_cpu_range quads = lb_cpu_share(blas, s->quads, thread);
    struct entry e = {
        .blas = blas,
        .io = io,
        .index = index,
        .l = l,
        .d = d,
        .input = lb_cpu_input(blas, index),
        .w = lb_cpu_weights_of(blas, index),
        .quads = quads,
        .columns = {quads.from * width, quads.to * width},
        .gates = lb_cpu_at(blas, blas->gates, index * s->rows * s->gates),
        .cells = lb_cpu_at(blas, blas->cells, index * s->rows * s->H),
        .dy = lb_cpu_at(blas, l == s->L - 1 ? io->dy : blas->between, d * s->H),
        .c0 = lb_cpu_at(blas, io->c0, state),
        .dhn = lb_cpu_at(blas, io->dhn, state),
        .dcn = lb_cpu_at(blas, io->dcn, state),
        .dh0 = lb_cpu_at(blas, io->dh0, state),
        .dc0 = lb_cpu_at(blas, io->dc0, state),
        .c_before = pointers,
        .dhn_of = pointers + s->B,
        .first = pointers + 2 * s->B,
    };
    if (e.columns.to > s->gates)
        e.columns.to = s->gates;
    return e;
}

static struct lb_cpu_backward quad_of(const struct entry *e, size_t quad)
{
    const struct lb_cpu_blas *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t width = 4 * s->lanes, first = quad * width;
    return (struct lb_cpu_backward){
        .product = {.w = lb_cpu_at(blas, e->w.back_hh, quad * s->gates * width)},
        .units = s->H - first < width ? s->H - first : width,
        .first = first,
        .c_stride = s->H,
    };
}

/* Where the rows' cell states before step t are, and which gradients enter at their last step. */
static void find_states(const struct entry *e, size_t t, size_t rows)
{
    const struct lb_cpu_blas *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    for (size_t b = 0; b < rows; b++) {
        size_t before = (e->d == 0 ? t - 1 : t + 1) * s->B + b;
        e->c_before[b] = t == lb_cpu_first_step(blas, e->d, b)
                             ? lb_cpu_at(blas, e->c0, b * s->H)
                             : lb_cpu_at(blas, e->cells, before * s->H);
        e->dhn_of[b] =
            t == lb_cpu_last_step(blas, e->d, b) ? lb_cpu_at(blas, e->dhn, b * s->H) : NULL;
    }
}

/* This thread's quads of step t; later: whether a step after it was done. */
static void step(const struct entry *e, size_t t, bool later)
{
    const struct lb_cpu_blas *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t rows = lb_cpu_active(blas, t), after = (e->d == 0 ? t + 1 : t - 1) * s->B;
    char *gates = lb_cpu_at(blas, e->gates, t * s->B * s->gates);
    size_t column_bytes = (e->columns.to - e->columns.from) * blas->elem;
    find_states(e, t, rows);
    for (size_t quad = e->quads.from; quad < e->quads.to; quad++) {
        struct lb_cpu_backward f = quad_of(e, quad);
        f.product.rows = rows;
        f.product.k = later ? s->gates : 0;
        f.product.a = (struct lb_cpu_rows){
            .base = later ? lb_cpu_at(blas, e->gates, after * s->gates) : NULL, .stride = s->gates};
        f.dhn = e->dhn_of;
        f.dy = lb_cpu_at(blas, e->dy, t * s->B * s->wide + f.first);
        f.dy_stride = s->wide;
        f.gates = lb_cpu_at(blas, gates, 4 * f.first);
        f.gates_stride = s->gates;
        f.c = lb_cpu_at(blas, e->cells, t * s->B * s->H);
        f.c_before = e->c_before;
        f.dc = e->dc0;
        blas->kernels->backward(&f);
    }
    for (size_t b = 0; b < s->B && column_bytes > 0; b++) {
        char *row = lb_cpu_at(blas, gates, b * s->gates + e->columns.from);
        if (b >= rows)
            memset(row, 0, column_bytes);
        else if (t == lb_cpu_first_step(blas, e->d, b))
            memcpy(lb_cpu_at(blas, blas->first, b * s->gates + e->columns.from), row, column_bytes);
    }
}

/* Back through the steps of an entry, to dh0 and dc0. */
static void steps(const struct entry *e)
{
    const struct lb_cpu_blas *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    size_t units = 4 * s->lanes, from = e->quads.from * units, to = e->quads.to * units;
    to = to > s->H ? s->H : to;
    for (size_t b = 0; b < s->B && from < to; b++)
        memcpy(lb_cpu_at(blas, e->dc0, b * s->H + from), lb_cpu_at(blas, e->dcn, b * s->H + from),
               (to - from) * blas->elem);
    for (size_t i = 0; i < s->T; i++) {
        step(e, e->d == 0 ? s->T - 1 - i : i, i > 0);
        lb_team_meet(blas->team);
    }
    for (size_t quad = e->quads.from; quad < e->quads.to; quad++) {
        struct lb_cpu_backward f = quad_of(e, quad);
        f.product.rows = s->B;
        f.product.k = s->gates;
        f.product.a = (struct lb_cpu_rows){.base = blas->first, .stride = s->gates};
        f.dh0 = e->dh0;
        blas->kernels->backward(&f);
    }
}

/* A matrix with rows of `stride` elements. */
struct matrix {
    const void *at;
    size_t stride;
};

/* c [m, n] = op(a) b + beta c; inner is the summed dimension, op(a) is a^T where transposed. */
static void gemm(const struct lb_cpu_blas *blas, bool transposed, size_t m, size_t n, size_t inner,
                 struct matrix a, struct matrix b, double beta, void *c, size_t ldc)
{
    enum CBLAS_TRANSPOSE op = transposed ? CblasTrans : CblasNoTrans;
    if (m == 0 || n == 0)
        return;
    if (blas->problem.dtype == LB_F32)
        cblas_sgemm(CblasRowMajor, op, CblasNoTrans, (blasint)m, (blasint)n, (blasint)inner, 1,
                    a.at, (blasint)a.stride, b.at, (blasint)b.stride, (float)beta, c, (blasint)ldc);
    else
        cblas_dgemm(CblasRowMajor, op, CblasNoTrans, (blasint)m, (blasint)n, (blasint)inner, 1,
                    a.at, (blasint)a.stride, b.at, (blasint)b.stride, beta, c, (blasint)ldc);
}

/* db = sums of this thread's columns of da [T, B, gates]. */
static void bias_gradients(const struct entry *e, char *db)
{
    const struct lb_cpu_sizes *s = &e->blas->s;
    size_t from = e->columns.from, to = e->columns.to;
    if (from >= to)
        return;
    memset(lb_cpu_at(e->blas, db, from), 0, (to - from) * e->blas->elem);
    if (e->blas->problem.dtype == LB_F32) {
        float *sum = (float *)(void *)db;
        const float *row = (const float *)(const void *)e->gates;
        for (size_t i = 0; i < s->rows; i++, row += s->gates)
            for (size_t j = from; j < to; j++)
                sum[j] += row[j];
    } else {
        double *sum = (double *)(void *)db;
        const double *row = (const double *)(const void *)e->gates;
        for (size_t i = 0; i < s->rows; i++, row += s->gates)
            for (size_t j = from; j < to; j++)
                sum[j] += row[j];
    }
}

/* This thread's rows of an entry's weight gradients. Gradients of a are zero where a row has no
 * step, and so is y: a step's h before it is y one step earlier, in one product, or h0 at a row's
 * first step. */
static void weight_gradients(const struct entry *e)
{
    const struct lb_cpu_blas *blas = e->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    struct lb_cpu_gradients g = lb_cpu_gradients_of(blas, e->index);
    size_t from = e->columns.from, m = e->columns.to - from, later = s->rows - s->B;
    size_t step_gates = s->B * s->gates, step_y = s->B * s->wide;
    const char *in = e->l == 0 ? e->io->x : lb_cpu_output(blas, e->io->y, e->l - 1);
    const char *y = lb_cpu_at(blas, lb_cpu_output(blas, e->io->y, e->l), e->d * s->H);
    const char *da = lb_cpu_at(blas, e->gates, from);
    const char *h0 = lb_cpu_at(blas, e->io->h0, e->index * s->B * s->H);
    char *dw_hh = lb_cpu_at(blas, g.dw_hh, from * s->H);
    gemm(blas, true, m, e->input, s->rows, (struct matrix){da, s->gates},
         (struct matrix){in, e->input}, 0, lb_cpu_at(blas, g.dw_ih, from * e->input), e->input);
    gemm(blas, true, m, s->H, s->B, (struct matrix){lb_cpu_at(blas, blas->first, from), s->gates},
         (struct matrix){h0, s->H}, 0, dw_hh, s->H);
    if (later > 0)
        gemm(blas, true, m, s->H, later,
             (struct matrix){lb_cpu_at(blas, da, e->d == 0 ? step_gates : 0), s->gates},
             (struct matrix){lb_cpu_at(blas, y, e->d == 0 ? 0 : step_y), s->wide}, 1, dw_hh, s->H);
    bias_gradients(e, g.db);
}

/* This thread's rows of the gradient of a layer's input [T, B, I_l]. */
static void input_gradients(const struct lb_cpu_blas *blas, size_t l, size_t thread, char *dinput)
{
    const struct lb_cpu_sizes *s = &blas->s;
    struct lb_cpu_range rows = lb_cpu_share(blas, s->rows, thread);
    for (size_t d = 0; d < s->D; d++) {
        size_t e = l * s->D + d, input = lb_cpu_input(blas, e);
        const char *da = lb_cpu_at(blas, blas->gates, (e * s->rows + rows.from) * s->gates);
        gemm(blas, false, rows.to - rows.from, input, s->gates, (struct matrix){da, s->gates},
             (struct matrix){lb_cpu_weights_of(blas, e).back_ih, input}, d > 0,
             lb_cpu_at(blas, dinput, rows.from * input), input);
    }
}

void lb_cpu_backward_work(void *arg, size_t thread)
{
    const struct lb_cpu_call *call = arg;
    const struct lb_cpu_blas *blas = call->blas;
    const struct lb_cpu_sizes *s = &blas->s;
    for (size_t l = s->L; l-- > 0;) {
        for (size_t d = 0; d < s->D; d++) {
            struct entry e = open_entry(call, l * s->D + d, thread);
            steps(&e);
            weight_gradients(&e);
            lb_team_meet(blas->team); /* all have read `first`, and written gradients of a */
        }
        input_gradients(blas, l, thread, l == 0 ? call->backward->dx : blas->between);
        lb_team_meet(blas->team);
    }
}
