/* openblas: the passes. Products use the library's threads, the cell the caller's alone. */
#include <cblas.h>
#include <string.h>

#include "impls/openblas/openblas.h"

/* The cell's own arithmetic is built for the vector units of several machines, as its sigmoids and
 * tangents are. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VECTOR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define VECTOR_CLONES
#endif

/* One row of a step on the way back: openblas_cell.inc. */
struct row_back {
    void *gates;
    const void *c_before, *tanh_c, *dh, *dy;
    void *dc;
};

struct cell {
    void (*new_cells)(const void *gates, const void *c_before, void *c, size_t stride);
    void (*new_outputs)(const void *gates, const void *tanh_c, void *h, size_t stride,
                        size_t units);
    void (*back)(const struct row_back *row, size_t stride, size_t units);
};

#define real        float
#define TYPED(name) name##_f32
#include "impls/openblas/cell.inc"
#undef real
#undef TYPED
#define real        double
#define TYPED(name) name##_f64
#include "impls/openblas/cell.inc"
#undef real
#undef TYPED

static const struct cell *cell_of(const struct lb_openblas *blas)
{
    return blas->problem.dtype == LB_F32 ? &cell_f32 : &cell_f64;
}

/* Rows of `stride` elements. */
struct matrix {
    const void *at;
    size_t rows, stride;
};

/* c [m, n] = op(a) op(b) + beta c; what is turned lies in memory the other way round. */
struct product {
    enum CBLAS_TRANSPOSE turn_a, turn_b;
    size_t m, n, k;
    const void *a, *b;
    size_t a_stride, b_stride;
    double beta;
    void *c;
    size_t c_stride;
};

static void multiply(const struct lb_openblas *blas, const struct product *p)
{
    blasint m = (blasint)p->m, n = (blasint)p->n, k = (blasint)p->k;
    blasint lda = (blasint)p->a_stride, ldb = (blasint)p->b_stride, ldc = (blasint)p->c_stride;
    if (blas->problem.dtype == LB_F32)
        cblas_sgemm(CblasRowMajor, p->turn_a, p->turn_b, m, n, k, 1, p->a, lda, p->b, ldb,
                    (float)p->beta, p->c, ldc);
    else
        cblas_dgemm(CblasRowMajor, p->turn_a, p->turn_b, m, n, k, 1, p->a, lda, p->b, ldb, p->beta,
                    p->c, ldc);
}

/* y = op(w) x + beta y, w [gates, columns]: what a product of one row is. */
static void multiply_vector(const struct lb_openblas *blas, enum CBLAS_TRANSPOSE turn,
                            const void *w, size_t columns, const void *x, double beta, void *y)
{
    blasint m = (blasint)blas->gates, n = (blasint)columns;
    if (blas->problem.dtype == LB_F32)
        cblas_sgemv(CblasRowMajor, turn, m, n, 1, w, n, x, 1, (float)beta, y, 1);
    else
        cblas_dgemv(CblasRowMajor, turn, m, n, 1, w, n, x, 1, beta, y, 1);
}

/* gates [rows, gates] += in [rows, columns] w^T, w [gates, columns] */
static void add_to_gates(const struct lb_openblas *blas, struct matrix in, size_t columns,
                         const void *w, void *gates)
{
    if (in.rows == 1)
        multiply_vector(blas, CblasNoTrans, w, columns, in.at, 1, gates);
    else if (in.rows > 1)
        multiply(blas, &(struct product){CblasNoTrans, CblasTrans, in.rows, blas->gates, columns,
                                         in.at, w, in.stride, columns, 1, gates, blas->gates});
}

/* out [rows, columns] = da [rows, gates] w + beta out; rows of out are `stride` apart. */
static void back_through(const struct lb_openblas *blas, const void *da, size_t rows, const void *w,
                         size_t columns, double beta, void *out, size_t stride)
{
    if (rows == 1)
        multiply_vector(blas, CblasTrans, w, columns, da, beta, out);
    else if (rows > 1)
        multiply(blas, &(struct product){CblasNoTrans, CblasNoTrans, rows, columns, blas->gates, da,
                                         w, blas->gates, columns, beta, out, stride});
}

/* dw [gates, columns] = da^T in + beta dw, da [rows, gates], in [rows, columns] */
static void weight_gradient(const struct lb_openblas *blas, const void *da, struct matrix in,
                            size_t columns, double beta, void *dw)
{
    if (in.rows > 0)
        multiply(blas, &(struct product){CblasTrans, CblasNoTrans, blas->gates, columns, in.rows,
                                         da, in.at, blas->gates, in.stride, beta, dw, columns});
}

void lb_openblas_add(const struct lb_openblas *blas, size_t count, const void *values, void *sum)
{
    if (blas->problem.dtype == LB_F32)
        cblas_saxpy((blasint)count, 1, values, 1, sum, 1);
    else
        cblas_daxpy((blasint)count, 1, values, 1, sum, 1);
}

static size_t length_of(const struct lb_openblas *blas, size_t b)
{
    return blas->buffers.lengths ? (size_t)blas->buffers.lengths[b] : blas->T;
}

/* How many rows have a step t: the first ones, for lengths descend. None has a step -1 or T. */
static size_t active(const struct lb_openblas *blas, size_t t)
{
    size_t n = t < blas->T ? blas->B : 0;
    while (n > 0 && length_of(blas, n - 1) <= t)
        n--;
    return n;
}

/* Layer l's output [T, B, D*H]: the caller's y for the last. */
static char *output_of(const struct lb_openblas *blas, const void *y, size_t l)
{
    size_t kept = lb_trains(&blas->problem) ? l : l % 2;
    if (l == blas->L - 1)
        return lb_blas_at(blas, y, 0);
    return lb_blas_at(blas, blas->lower, kept * blas->rows * blas->wide);
}

/* One layer and direction. */
struct entry {
    const struct lb_openblas *blas;
    size_t index, l, d, input;
    struct lb_openblas_parts w;
    const void *in; /* [T, B, I_l] */
    char *y;        /* [T, B, D*H], at this direction's first unit */
    const void *h0; /* [B, H] */
    char *gates;    /* [T, B, 4, units] */
    size_t state;   /* elements of [L*D, B, H] before this entry's */
};

static struct entry open_entry(const struct lb_openblas *blas, size_t index, const void *x,
                               const void *y, const void *h0)
{
    size_t l = index / blas->D, d = index % blas->D, state = index * blas->B * blas->H;
    size_t kept = lb_trains(&blas->problem) ? index : 0;
    return (struct entry){
        .blas = blas,
        .index = index,
        .l = l,
        .d = d,
        .input = lb_openblas_input(blas, index),
        .w = lb_openblas_parts_of(blas, blas->buffers.weights, index),
        .in = l == 0 ? x : output_of(blas, y, l - 1),
        .y = lb_blas_at(blas, output_of(blas, y, l), d * blas->H),
        .h0 = lb_blas_at(blas, h0, state),
        .gates = lb_blas_at(blas, blas->gate_rows, kept * blas->rows * blas->gates),
        .state = state,
    };
}

/* Cell states [B, units] at the start of step s, where time runs forward, else at its end, so that
 * a row's steps lead from its first to its last: with n steps, from 0 to n, or from n to 0. To
 * infer, two take turns. */
static char *cells_at(const struct entry *e, size_t s)
{
    const struct lb_openblas *blas = e->blas;
    size_t slot = lb_trains(&blas->problem) ? e->index * (blas->T + 1) + s : s % 2;
    return lb_blas_at(blas, blas->cells, slot * blas->B * blas->units);
}

static char *cells_before(const struct entry *e, size_t t)
{
    return cells_at(e, e->d == 0 ? t : t + 1);
}

static char *cells_after(const struct entry *e, size_t t)
{
    return cells_at(e, e->d == 0 ? t + 1 : t);
}

/* The step that direction d takes before t; SIZE_MAX or T where there is none. */
static size_t step_before(const struct entry *e, size_t t)
{
    return e->d == 0 ? t - 1 : t + 1;
}

static size_t step_after(const struct entry *e, size_t t)
{
    return e->d == 0 ? t + 1 : t - 1;
}

/* How many of the rows with a step t have another step too. */
static size_t both_active(const struct lb_openblas *blas, size_t t, size_t other)
{
    return active(blas, other > t ? other : t);
}

/* From the caller's states to a row's first cells, and from its last to the caller's. */
static void read_cells(const struct entry *e, const void *c0)
{
    const struct lb_openblas *blas = e->blas;
    for (size_t b = 0; b < blas->B; b++) {
        char *row = cells_at(e, e->d == 0 ? 0 : length_of(blas, b));
        memset(lb_blas_at(blas, row, b * blas->units), 0, blas->units * blas->elem);
        memcpy(lb_blas_at(blas, row, b * blas->units), lb_blas_at(blas, c0, e->state + b * blas->H),
               blas->H * blas->elem);
    }
}

static void write_states(const struct entry *e, void *hn, void *cn)
{
    const struct lb_openblas *blas = e->blas;
    for (size_t b = 0; b < blas->B; b++) {
        size_t length = length_of(blas, b), last = e->d == 0 ? length - 1 : 0;
        memcpy(lb_blas_at(blas, hn, e->state + b * blas->H),
               lb_blas_at(blas, e->y, (last * blas->B + b) * blas->wide), blas->H * blas->elem);
        memcpy(lb_blas_at(blas, cn, e->state + b * blas->H),
               lb_blas_at(blas, cells_at(e, e->d == 0 ? length : 0), b * blas->units),
               blas->H * blas->elem);
    }
}

/* Adds the recurrent product of rows that go on from the step before, and of those that start here,
 * which are the last of the active ones. */
static void add_recurrent(const struct entry *e, size_t t, char *gates)
{
    const struct lb_openblas *blas = e->blas;
    size_t before = step_before(e, t), going = both_active(blas, t, before), H = blas->H;
    struct matrix h = {lb_blas_at(blas, e->y, before * blas->B * blas->wide), going, blas->wide};
    struct matrix h0 = {lb_blas_at(blas, e->h0, going * H), active(blas, t) - going, H};
    add_to_gates(blas, h, H, e->w.hh, gates);
    add_to_gates(blas, h0, H, e->w.hh, lb_blas_at(blas, gates, going * blas->gates));
}

static void step_forward(const struct entry *e, size_t t)
{
    const struct lb_openblas *blas = e->blas;
    const struct lb_simd_kernels *k = blas->kernels;
    size_t n = active(blas, t), units = blas->units;
    char *gates = lb_blas_at(blas, e->gates, t * blas->B * blas->gates);
    char *y = lb_blas_at(blas, e->y, t * blas->B * blas->wide);
    char *before = cells_before(e, t), *after = cells_after(e, t);
    add_recurrent(e, t, gates);
    for (size_t b = 0; b < n; b++) {
        char *row = lb_blas_at(blas, gates, b * blas->gates);
        k->sigmoid(row, row, 2 * units);
        k->tanh(lb_blas_at(blas, row, 2 * units), lb_blas_at(blas, row, 2 * units), units);
        k->sigmoid(lb_blas_at(blas, row, 3 * units), lb_blas_at(blas, row, 3 * units), units);
        cell_of(blas)->new_cells(row, lb_blas_at(blas, before, b * units),
                                 lb_blas_at(blas, after, b * units), units);
    }
    k->tanh(after, blas->tanh_c, n * units);
    for (size_t b = 0; b < n; b++)
        cell_of(blas)->new_outputs(lb_blas_at(blas, gates, b * blas->gates),
                                   lb_blas_at(blas, blas->tanh_c, b * units),
                                   lb_blas_at(blas, y, b * blas->wide), units, blas->H);
    for (size_t b = n; b < blas->B; b++)
        memset(lb_blas_at(blas, y, b * blas->wide), 0, blas->H * blas->elem);
}

void lb_openblas_forward(const struct lb_openblas *blas, const struct lb_forward_io *io)
{
    for (size_t index = 0; index < blas->entries; index++) {
        struct entry e = open_entry(blas, index, io->x, io->y, io->h0);
        read_cells(&e, io->c0);
        for (size_t row = 0; row < blas->rows; row++)
            memcpy(lb_blas_at(blas, e.gates, row * blas->gates), e.w.bias,
                   blas->gates * blas->elem);
        add_to_gates(blas, (struct matrix){e.in, blas->rows, e.input}, e.input, e.w.ih, e.gates);
        for (size_t i = 0; i < blas->T; i++)
            step_forward(&e, e.d == 0 ? i : blas->T - 1 - i);
        write_states(&e, io->hn, io->cn);
    }
}

/* dh [B, units] of the rows active in step t: through the step after it, or of a row's last step.
 */
static void output_gradients(const struct entry *e, size_t t, const void *dhn)
{
    const struct lb_openblas *blas = e->blas;
    size_t after = step_after(e, t), going = both_active(blas, t, after), H = blas->H;
    const char *da = lb_blas_at(blas, e->gates, after * blas->B * blas->gates);
    back_through(blas, da, going, e->w.hh, H, 0, blas->dh, blas->units);
    for (size_t b = going; b < active(blas, t); b++)
        memcpy(lb_blas_at(blas, blas->dh, b * blas->units), lb_blas_at(blas, dhn, e->state + b * H),
               H * blas->elem);
}

/* dy [T, B, D*H], at this direction's first unit. */
static void step_backward(const struct entry *e, size_t t, const void *dhn, const void *dy)
{
    const struct lb_openblas *blas = e->blas;
    size_t n = active(blas, t), units = blas->units, row_bytes = blas->gates * blas->elem;
    size_t going = both_active(blas, t, step_before(e, t)); /* the other active rows start here */
    char *gates = lb_blas_at(blas, e->gates, t * blas->B * blas->gates);
    const char *before = cells_before(e, t);
    output_gradients(e, t, dhn);
    blas->kernels->tanh(cells_after(e, t), blas->tanh_c, n * units);
    for (size_t b = 0; b < n; b++) {
        struct row_back row = {
            .gates = lb_blas_at(blas, gates, b * blas->gates),
            .c_before = lb_blas_at(blas, before, b * units),
            .tanh_c = lb_blas_at(blas, blas->tanh_c, b * units),
            .dh = lb_blas_at(blas, blas->dh, b * units),
            .dy = lb_blas_at(blas, dy, (t * blas->B + b) * blas->wide),
            .dc = lb_blas_at(blas, blas->dc, b * units),
        };
        cell_of(blas)->back(&row, units, blas->H);
    }
    memset(lb_blas_at(blas, gates, n * blas->gates), 0, (blas->B - n) * row_bytes);
    memcpy(lb_blas_at(blas, blas->first, going * blas->gates),
           lb_blas_at(blas, gates, going * blas->gates), (n - going) * row_bytes);
}

/* Gradients of a are zero where a row has no step, and so is y: the h before each step is y one
 * step earlier, in one product, or h0 at a row's first. */
static void weight_gradients(const struct entry *e)
{
    const struct lb_openblas *blas = e->blas;
    struct lb_openblas_parts dw = lb_openblas_parts_of(blas, blas->buffers.gradients, e->index);
    size_t later = blas->rows - blas->B, second = e->d == 0 ? blas->B : 0;
    const char *da = lb_blas_at(blas, e->gates, second * blas->gates);
    const char *h = lb_blas_at(blas, e->y, (blas->B - second) * blas->wide);
    weight_gradient(blas, e->gates, (struct matrix){e->in, blas->rows, e->input}, e->input, 0,
                    dw.ih);
    weight_gradient(blas, blas->first, (struct matrix){e->h0, blas->B, blas->H}, blas->H, 0, dw.hh);
    weight_gradient(blas, da, (struct matrix){h, later, blas->wide}, blas->H, 1, dw.hh);
    memset(dw.bias, 0, blas->gates * blas->elem);
    for (size_t row = 0; row < blas->rows; row++)
        lb_openblas_add(blas, blas->gates, lb_blas_at(blas, e->gates, row * blas->gates), dw.bias);
}

static void backward_entry(const struct entry *e, const struct lb_backward_io *io)
{
    const struct lb_openblas *blas = e->blas;
    const void *dy = e->l == blas->L - 1 ? io->dy : blas->between;
    for (size_t b = 0; b < blas->B; b++)
        memcpy(lb_blas_at(blas, blas->dc, b * blas->units),
               lb_blas_at(blas, io->dcn, e->state + b * blas->H), blas->H * blas->elem);
    for (size_t i = 0; i < blas->T; i++)
        step_backward(e, e->d == 0 ? blas->T - 1 - i : i, io->dhn,
                      lb_blas_at(blas, dy, e->d * blas->H));
    back_through(blas, blas->first, blas->B, e->w.hh, blas->H, 0,
                 lb_blas_at(blas, io->dh0, e->state), blas->H);
    for (size_t b = 0; b < blas->B; b++)
        memcpy(lb_blas_at(blas, io->dc0, e->state + b * blas->H),
               lb_blas_at(blas, blas->dc, b * blas->units), blas->H * blas->elem);
    weight_gradients(e);
}

void lb_openblas_backward(const struct lb_openblas *blas, const struct lb_backward_io *io)
{
    for (size_t l = blas->L; l-- > 0;) {
        for (size_t d = 0; d < blas->D; d++) {
            struct entry e = open_entry(blas, l * blas->D + d, io->x, io->y, io->h0);
            backward_entry(&e, io);
        }
        for (size_t d = 0; d < blas->D; d++) { /* when no direction reads `between` any more */
            struct entry e = open_entry(blas, l * blas->D + d, io->x, io->y, io->h0);
            back_through(blas, e.gates, blas->rows, e.w.ih, e.input, d > 0,
                         l == 0 ? io->dx : blas->between, e.input);
        }
    }
}
