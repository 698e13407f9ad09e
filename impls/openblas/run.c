/* openblas: forward and backward. GEMMs use the library's threads; the cell runs on the caller. */
#include <string.h>

#include "impls/openblas/library.h"
#include "impls/openblas/openblas.h"

/* The cell's arithmetic is compiled for several instruction sets, as are its sigmoid and tanh. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VECTOR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define VECTOR_CLONES
#endif

/* One batch row of a backward step: see cell.inc. */
struct row_backward {
    void *gates;
    const void *c_before, *tanh_c, *dh, *dy;
    void *dc;
};

struct cell {
    void (*new_cells)(const void *gates, const void *c_before, void *c, size_t stride);
    void (*new_outputs)(const void *gates, const void *tanh_c, void *h, size_t stride,
                        size_t units);
    void (*backward)(const struct row_backward *row, size_t stride, size_t units);
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

/* c [m, n] = op(a) op(b) + beta c, where op may transpose. */
struct gemm {
    enum CBLAS_TRANSPOSE transpose_a, transpose_b;
    size_t m, n, k;
    const void *a, *b;
    size_t a_stride, b_stride;
    double beta;
    void *c;
    size_t c_stride;
};

static void multiply(const struct lb_openblas *blas, const struct gemm *p)
{
    blasint m = (blasint)p->m, n = (blasint)p->n, k = (blasint)p->k;
    blasint lda = (blasint)p->a_stride, ldb = (blasint)p->b_stride, ldc = (blasint)p->c_stride;
    if (blas->problem.dtype == LB_F32)
        lb_blas.cblas_sgemm(CblasRowMajor, p->transpose_a, p->transpose_b, m, n, k, 1, p->a, lda,
                            p->b, ldb, (float)p->beta, p->c, ldc);
    else
        lb_blas.cblas_dgemm(CblasRowMajor, p->transpose_a, p->transpose_b, m, n, k, 1, p->a, lda,
                            p->b, ldb, p->beta, p->c, ldc);
}

/* y = op(w) x + beta y, w [gates, columns]: the GEMM of a single row. */
static void multiply_vector(const struct lb_openblas *blas, enum CBLAS_TRANSPOSE transpose,
                            const void *w, size_t columns, const void *x, double beta, void *y)
{
    blasint m = (blasint)blas->gates, n = (blasint)columns;
    if (blas->problem.dtype == LB_F32)
        lb_blas.cblas_sgemv(CblasRowMajor, transpose, m, n, 1, w, n, x, 1, (float)beta, y, 1);
    else
        lb_blas.cblas_dgemv(CblasRowMajor, transpose, m, n, 1, w, n, x, 1, beta, y, 1);
}

/* gates [rows, gates] += in [rows, columns] w^T, w [gates, columns] */
static void add_to_gates(const struct lb_openblas *blas, struct matrix in, size_t columns,
                         const void *w, void *gates)
{
    if (in.rows == 1)
        multiply_vector(blas, CblasNoTrans, w, columns, in.at, 1, gates);
    else if (in.rows > 1)
        multiply(blas, &(struct gemm){CblasNoTrans, CblasTrans, in.rows, blas->gates, columns,
                                      in.at, w, in.stride, columns, 1, gates, blas->gates});
}

/* out [rows, columns] = da [rows, gates] w + beta out; rows of out are `stride` apart. */
static void input_gradient(const struct lb_openblas *blas, const void *da, size_t rows,
                           const void *w, size_t columns, double beta, void *out, size_t stride)
{
    if (rows == 1)
        multiply_vector(blas, CblasTrans, w, columns, da, beta, out);
    else if (rows > 1)
        multiply(blas, &(struct gemm){CblasNoTrans, CblasNoTrans, rows, columns, blas->gates, da, w,
                                      blas->gates, columns, beta, out, stride});
}

/* dw [gates, columns] = da^T in + beta dw, da [rows, gates], in [rows, columns] */
static void weight_gradient(const struct lb_openblas *blas, const void *da, struct matrix in,
                            size_t columns, double beta, void *dw)
{
    if (in.rows > 0)
        multiply(blas, &(struct gemm){CblasTrans, CblasNoTrans, blas->gates, columns, in.rows, da,
                                      in.at, blas->gates, in.stride, beta, dw, columns});
}

void lb_openblas_add(const struct lb_openblas *blas, size_t count, const void *values, void *sum)
{
    if (blas->problem.dtype == LB_F32)
        lb_blas.cblas_saxpy((blasint)count, 1, values, 1, sum, 1);
    else
        lb_blas.cblas_daxpy((blasint)count, 1, values, 1, sum, 1);
}

static size_t length_of(const struct lb_openblas *blas, size_t b)
{
    return blas->buffers.lengths ? (size_t)blas->buffers.lengths[b] : blas->T;
}

/* How many rows have a step t. They are the first ones, since lengths descend. No row has a step -1
 * or T. */
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
struct layer_dir {
    const struct lb_openblas *blas;
    size_t index, l, d, input;
    struct lb_openblas_parts w;
    const void *in; /* [T, B, I_l] */
    char *y;        /* [T, B, D*H], at this direction's first unit */
    const void *h0; /* [B, H] */
    char *gates;    /* [T, B, 4, units] */
    size_t state;   /* elements of [L*D, B, H] before this layer_dir's */
};

static struct layer_dir open_layer_dir(const struct lb_openblas *blas, size_t index, const void *x,
                                       const void *y, const void *h0)
{
    size_t l = index / blas->D, d = index % blas->D, state = index * blas->B * blas->H;
    size_t kept = lb_trains(&blas->problem) ? index : 0;
    return (struct layer_dir){
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

/* Cell states [B, units] between steps: slot s is before step s and after step s - 1 in time. A row
 * of n steps goes from slot 0 to n, or from n to 0 in reverse. Infer alternates between two slots.
 */
static char *cells_at(const struct layer_dir *ld, size_t s)
{
    const struct lb_openblas *blas = ld->blas;
    size_t slot = lb_trains(&blas->problem) ? ld->index * (blas->T + 1) + s : s % 2;
    return lb_blas_at(blas, blas->cells, slot * blas->B * blas->units);
}

static char *cells_before(const struct layer_dir *ld, size_t t)
{
    return cells_at(ld, ld->d == 0 ? t : t + 1);
}

static char *cells_after(const struct layer_dir *ld, size_t t)
{
    return cells_at(ld, ld->d == 0 ? t + 1 : t);
}

/* The step that this direction computes before t; SIZE_MAX or T where there is none. */
static size_t step_before(const struct layer_dir *ld, size_t t)
{
    return ld->d == 0 ? t - 1 : t + 1;
}

static size_t step_after(const struct layer_dir *ld, size_t t)
{
    return ld->d == 0 ? t + 1 : t - 1;
}

/* How many rows have both steps. */
static size_t both_active(const struct lb_openblas *blas, size_t t, size_t other)
{
    return active(blas, other > t ? other : t);
}

/* Copies the caller's initial states into the first slot of each row, and the last states back. */
static void read_cells(const struct layer_dir *ld, const void *c0)
{
    const struct lb_openblas *blas = ld->blas;
    for (size_t b = 0; b < blas->B; b++) {
        char *row = cells_at(ld, ld->d == 0 ? 0 : length_of(blas, b));
        memset(lb_blas_at(blas, row, b * blas->units), 0, blas->units * blas->elem);
        memcpy(lb_blas_at(blas, row, b * blas->units),
               lb_blas_at(blas, c0, ld->state + b * blas->H), blas->H * blas->elem);
    }
}

static void write_states(const struct layer_dir *ld, void *hn, void *cn)
{
    const struct lb_openblas *blas = ld->blas;
    for (size_t b = 0; b < blas->B; b++) {
        size_t length = length_of(blas, b), last = ld->d == 0 ? length - 1 : 0;
        memcpy(lb_blas_at(blas, hn, ld->state + b * blas->H),
               lb_blas_at(blas, ld->y, (last * blas->B + b) * blas->wide), blas->H * blas->elem);
        memcpy(lb_blas_at(blas, cn, ld->state + b * blas->H),
               lb_blas_at(blas, cells_at(ld, ld->d == 0 ? length : 0), b * blas->units),
               blas->H * blas->elem);
    }
}

/* Adds the recurrent GEMM of the rows that continue from the step before, and that of the rows that
 * start here, which are the last of the active ones. */
static void add_recurrent(const struct layer_dir *ld, size_t t, char *gates)
{
    const struct lb_openblas *blas = ld->blas;
    size_t before = step_before(ld, t), going = both_active(blas, t, before), H = blas->H;
    struct matrix h = {lb_blas_at(blas, ld->y, before * blas->B * blas->wide), going, blas->wide};
    struct matrix h0 = {lb_blas_at(blas, ld->h0, going * H), active(blas, t) - going, H};
    add_to_gates(blas, h, H, ld->w.hh, gates);
    add_to_gates(blas, h0, H, ld->w.hh, lb_blas_at(blas, gates, going * blas->gates));
}

static void step_forward(const struct layer_dir *ld, size_t t)
{
    const struct lb_openblas *blas = ld->blas;
    const struct lb_simd_kernels *k = blas->kernels;
    size_t n = active(blas, t), units = blas->units;
    char *gates = lb_blas_at(blas, ld->gates, t * blas->B * blas->gates);
    char *y = lb_blas_at(blas, ld->y, t * blas->B * blas->wide);
    char *before = cells_before(ld, t), *after = cells_after(ld, t);
    add_recurrent(ld, t, gates);
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
    for (size_t index = 0; index < blas->layer_dirs; index++) {
        struct layer_dir ld = open_layer_dir(blas, index, io->x, io->y, io->h0);
        read_cells(&ld, io->c0);
        for (size_t row = 0; row < blas->rows; row++)
            memcpy(lb_blas_at(blas, ld.gates, row * blas->gates), ld.w.bias,
                   blas->gates * blas->elem);
        add_to_gates(blas, (struct matrix){ld.in, blas->rows, ld.input}, ld.input, ld.w.ih,
                     ld.gates);
        for (size_t i = 0; i < blas->T; i++)
            step_forward(&ld, ld.d == 0 ? i : blas->T - 1 - i);
        write_states(&ld, io->hn, io->cn);
    }
}

/* dh [B, units] of the rows that have step t: from the step after it, or dhn at a row's last step.
 */
static void output_gradients(const struct layer_dir *ld, size_t t, const void *dhn)
{
    const struct lb_openblas *blas = ld->blas;
    size_t after = step_after(ld, t), going = both_active(blas, t, after), H = blas->H;
    const char *da = lb_blas_at(blas, ld->gates, after * blas->B * blas->gates);
    input_gradient(blas, da, going, ld->w.hh, H, 0, blas->dh, blas->units);
    for (size_t b = going; b < active(blas, t); b++)
        memcpy(lb_blas_at(blas, blas->dh, b * blas->units),
               lb_blas_at(blas, dhn, ld->state + b * H), H * blas->elem);
}

/* dy [T, B, D*H], at this direction's first unit. */
static void step_backward(const struct layer_dir *ld, size_t t, const void *dhn, const void *dy)
{
    const struct lb_openblas *blas = ld->blas;
    size_t n = active(blas, t), units = blas->units, row_bytes = blas->gates * blas->elem;
    size_t going = both_active(blas, t, step_before(ld, t)); /* the other active rows start here */
    char *gates = lb_blas_at(blas, ld->gates, t * blas->B * blas->gates);
    const char *before = cells_before(ld, t);
    output_gradients(ld, t, dhn);
    blas->kernels->tanh(cells_after(ld, t), blas->tanh_c, n * units);
    for (size_t b = 0; b < n; b++) {
        struct row_backward row = {
            .gates = lb_blas_at(blas, gates, b * blas->gates),
            .c_before = lb_blas_at(blas, before, b * units),
            .tanh_c = lb_blas_at(blas, blas->tanh_c, b * units),
            .dh = lb_blas_at(blas, blas->dh, b * units),
            .dy = lb_blas_at(blas, dy, (t * blas->B + b) * blas->wide),
            .dc = lb_blas_at(blas, blas->dc, b * units),
        };
        cell_of(blas)->backward(&row, units, blas->H);
    }
    memset(lb_blas_at(blas, gates, n * blas->gates), 0, (blas->B - n) * row_bytes);
    memcpy(lb_blas_at(blas, blas->first, going * blas->gates),
           lb_blas_at(blas, gates, going * blas->gates), (n - going) * row_bytes);
}

/* Gradients of a, and y, are zero where a row has no step. So one GEMM covers all steps, with y of
 * the step before as the state h before each step; another covers h0 at each row's first step. */
static void weight_gradients(const struct layer_dir *ld)
{
    const struct lb_openblas *blas = ld->blas;
    struct lb_openblas_parts dw = lb_openblas_parts_of(blas, blas->buffers.gradients, ld->index);
    size_t later = blas->rows - blas->B, second = ld->d == 0 ? blas->B : 0;
    const char *da = lb_blas_at(blas, ld->gates, second * blas->gates);
    const char *h = lb_blas_at(blas, ld->y, (blas->B - second) * blas->wide);
    weight_gradient(blas, ld->gates, (struct matrix){ld->in, blas->rows, ld->input}, ld->input, 0,
                    dw.ih);
    weight_gradient(blas, blas->first, (struct matrix){ld->h0, blas->B, blas->H}, blas->H, 0,
                    dw.hh);
    weight_gradient(blas, da, (struct matrix){h, later, blas->wide}, blas->H, 1, dw.hh);
    memset(dw.bias, 0, blas->gates * blas->elem);
    for (size_t row = 0; row < blas->rows; row++)
        lb_openblas_add(blas, blas->gates, lb_blas_at(blas, ld->gates, row * blas->gates), dw.bias);
}

static void backward_layer_dir(const struct layer_dir *ld, const struct lb_backward_io *io)
{
    const struct lb_openblas *blas = ld->blas;
    const void *dy = ld->l == blas->L - 1 ? io->dy : blas->between;
    for (size_t b = 0; b < blas->B; b++)
        memcpy(lb_blas_at(blas, blas->dc, b * blas->units),
               lb_blas_at(blas, io->dcn, ld->state + b * blas->H), blas->H * blas->elem);
    for (size_t i = 0; i < blas->T; i++)
        step_backward(ld, ld->d == 0 ? blas->T - 1 - i : i, io->dhn,
                      lb_blas_at(blas, dy, ld->d * blas->H));
    input_gradient(blas, blas->first, blas->B, ld->w.hh, blas->H, 0,
                   lb_blas_at(blas, io->dh0, ld->state), blas->H);
    for (size_t b = 0; b < blas->B; b++)
        memcpy(lb_blas_at(blas, io->dc0, ld->state + b * blas->H),
               lb_blas_at(blas, blas->dc, b * blas->units), blas->H * blas->elem);
    weight_gradients(ld);
}

void lb_openblas_backward(const struct lb_openblas *blas, const struct lb_backward_io *io)
{
    for (size_t l = blas->L; l-- > 0;) {
        for (size_t d = 0; d < blas->D; d++) {
            struct layer_dir ld = open_layer_dir(blas, l * blas->D + d, io->x, io->y, io->h0);
            backward_layer_dir(&ld, io);
        }
        for (size_t d = 0; d < blas->D; d++) { /* now no direction reads `between` any more */
            struct layer_dir ld = open_layer_dir(blas, l * blas->D + d, io->x, io->y, io->h0);
            input_gradient(blas, ld.gates, blas->rows, ld.w.ih, ld.input, d > 0,
                           l == 0 ? io->dx : blas->between, ld.input);
        }
    }
}
