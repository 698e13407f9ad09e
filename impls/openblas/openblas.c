/* openblas: an LSTM as frameworks build it on a BLAS library. One GEMM for the inputs of all steps,
 * one GEMM per step for the recurrence, and a vectorised cell in between. f32 and f64, tanh. */
#include <cblas.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/impl.h"
#include "base/arena.h"
#include "device/weight_packing.h"
#include "host/shared_library.h"
#include "impls/common/simd_kernels.h"

/* The functions of the library, which are there once lb_openblas_library is loaded. */
#define BLAS_FUNCTIONS(X)       \
    X(cblas_daxpy)              \
    X(cblas_dgemm)              \
    X(cblas_dgemv)              \
    X(cblas_saxpy)              \
    X(cblas_sgemm)              \
    X(cblas_sgemv)              \
    X(openblas_get_config)      \
    X(openblas_get_corename)    \
    X(openblas_get_num_threads) \
    X(openblas_set_num_threads)

static struct {
    BLAS_FUNCTIONS(LB_FUNCTION_POINTER)
} library;

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ... SkylakeX MAX_THREADS=64" */
static void print_version(char *text, size_t size)
{
    snprintf(text, size, "%s", library.openblas_get_config());
}

struct lb_shared_library lb_openblas_library = {
    .name = "OpenBLAS",
    .file = LB_OPENBLAS_FILE,
    .built = LB_OPENBLAS_VERSION,
    LB_FUNCTIONS_OF(BLAS_FUNCTIONS, library),
    .print_version = print_version,
};

/* Sizes are in elements. */
struct openblas {
    struct lb_problem problem;
    struct lb_buffers buffers;
    const struct lb_simd_kernels *kernels; /* only their sigmoid and tanh are used */
    int threads;
    size_t T, B, H, D, L;
    size_t layer_dirs, rows, wide; /* L*D, T*B, D*H */
    size_t elem;                   /* bytes of an element */
    size_t gates;                  /* 4H */

    /* In the harness's buffers; NULL where the pass needs none. */
    char *gate_rows; /* [L*D, T*B, 4H], later their gradients; infer: of one layer_dir */
    char *cells;     /* [L*D, T + 1, B, H], see cells_at; infer: two steps of one layer_dir */
    char *lower;     /* outputs of all layers but the last, each [T, B, D*H]; infer: two */
    char *tanh_c;    /* [B, H] */
    char *dh, *dc;   /* [B, H] */
    char *first;     /* [B, 4H] gate gradients at each row's first step */
    char *between;   /* [T, B, D*H] gradient of a lower layer's output */
    char description[160];
};

/* Element `index` of an array. */
static char *at(const struct openblas *blas, const void *base, size_t index)
{
    return (char *)((uintptr_t)base + index * blas->elem);
}

static enum lb_status openblas_supports(const struct lb_problem *p,
                                        const struct lb_exec_config *config, struct lb_error *why)
{
    (void)config;
    if (p->dtype != LB_F32 && p->dtype != LB_F64)
        return lb_fail(why, LB_UNSUPPORTED, "dtype %s: OpenBLAS has GEMMs in f32 and f64 only",
                       lb_dtype_name(p->dtype));
    if (p->math != LB_IEEE)
        return lb_fail(why, LB_UNSUPPORTED, "math %s: OpenBLAS computes f32 in full precision",
                       lb_math_name(p->math));
    if (p->act != LB_ACT_TANH)
        return lb_fail(why, LB_UNSUPPORTED, "act-%s: the cell of openblas has tanh only",
                       lb_act_name(p->act));
    const double sides[] = {(double)p->seq_len * (double)p->batch, 4 * (double)p->hidden,
                            (double)p->input, (double)p->directions * (double)p->hidden};
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++)
        if (sides[i] > INT_MAX)
            return lb_fail(why, LB_UNSUPPORTED, "a matrix side of %.0f: OpenBLAS takes at most %d",
                           sides[i], INT_MAX);
    return LB_OK;
}

/* Sets the number of the library's threads and confines them to the CPUs of the calling thread,
 * which the harness has pinned. The threads exist since the library was loaded. The library counts
 * CPUs at that time or at its first call, so its own count is not used here. */
static enum lb_status set_threads(int threads, struct lb_error *err)
{
    int (*confine)(int thread, size_t size, cpu_set_t *cpus) = NULL; /* since 0.3.21 */
    void *symbol = lb_shared_library_find(&lb_openblas_library, "openblas_setaffinity");
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
        return lb_fail(err, LB_FAILED, "reading the CPUs that this thread may use failed");
    if (threads > CPU_COUNT(&cpus))
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: this process may use only %d of the CPUs",
                       threads, CPU_COUNT(&cpus));
    library.openblas_set_num_threads(threads);
    if (library.openblas_get_num_threads() != threads)
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: this OpenBLAS takes at most %d", threads,
                       library.openblas_get_num_threads());
    if (symbol)
        memcpy(&confine, &symbol, sizeof(confine)); /* ISO C has no cast between the two */
    for (int i = 0; confine && i < threads - 1; i++)
        confine(i, sizeof(cpus), &cpus); /* the last thread is the caller itself */
    return LB_OK;
}

static enum lb_status openblas_create(void *self, const struct lb_problem *p,
                                      const struct lb_exec_config *config, struct lb_error *err)
{
    struct openblas *blas = self;
    LB_CHECK(lb_shared_library_load(&lb_openblas_library, err));
    LB_CHECK(set_threads(config->threads, err));
    blas->kernels = lb_simd_kernels_best(p->dtype);
    blas->problem = *p;
    blas->threads = config->threads;
    blas->T = (size_t)p->seq_len;
    blas->B = (size_t)p->batch;
    blas->H = (size_t)p->hidden;
    blas->D = (size_t)p->directions;
    blas->L = (size_t)p->layers;
    blas->layer_dirs = blas->L * blas->D;
    blas->rows = blas->T * blas->B;
    blas->wide = blas->D * blas->H;
    blas->elem = lb_dtype_size(p->dtype);
    blas->gates = 4 * blas->H;
    /* "OpenBLAS 0.3.21 SkylakeX, 2 threads, AVX-512 cell", from "OpenBLAS 0.3.21 DYNAMIC_ARCH ..."
     */
    const char *config_text = library.openblas_get_config(), *space = strchr(config_text, ' ');
    const char *version = space ? space + 1 : config_text;
    snprintf(blas->description, sizeof(blas->description), "OpenBLAS %.*s %s, %d thread%s, %s cell",
             (int)strcspn(version, " "), version, library.openblas_get_corename(), blas->threads,
             blas->threads > 1 ? "s" : "", blas->kernels->name);
    return LB_OK;
}

/* Sets the pointers to all arrays. With zeroed buffers it only computes the sizes. */
static void lay_out(struct openblas *blas, size_t *reserve, size_t *workspace)
{
    bool trains = lb_trains(&blas->problem);
    size_t layer_dirs = trains ? blas->layer_dirs : 1;
    size_t lower = !trains && blas->L > 2 ? 2 : blas->L - 1, steps = trains ? blas->T + 1 : 2;
    size_t state = blas->B * blas->H * blas->elem, output = blas->rows * blas->wide * blas->elem;
    struct lb_arena scratch = {.base = blas->buffers.workspace};
    struct lb_arena kept = {.base = blas->buffers.reserve};
    struct lb_arena *passes = trains ? &kept : &scratch;
    blas->gate_rows = lb_arena_take(passes, layer_dirs * blas->rows * blas->gates * blas->elem);
    blas->cells = lb_arena_take(passes, layer_dirs * steps * state);
    blas->lower = lb_arena_take(passes, lower * output);
    blas->tanh_c = lb_arena_take(&scratch, state);
    if (lb_has_backward(&blas->problem)) {
        blas->dh = lb_arena_take(&scratch, state);
        blas->dc = lb_arena_take(&scratch, state);
        blas->first = lb_arena_take(&scratch, 4 * state);
        blas->between = lb_arena_take(&scratch, blas->L > 1 ? output : 0);
    }
    *reserve = kept.used;
    *workspace = scratch.used;
}

static enum lb_status openblas_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    struct openblas *blas = self;
    double gates = (double)blas->layer_dirs * (double)blas->gates;
    if (gates * (double)blas->rows > 0x1p58)
        return lb_fail(err, LB_OOM, "%.3g gates of all layers: more than any memory", gates);
    sizes->weights = lb_packed_bytes(&blas->problem, blas->problem.dtype);
    sizes->gradients = lb_has_backward(&blas->problem) ? sizes->weights : 0;
    lay_out(blas, &sizes->reserve, &sizes->workspace);
    return LB_OK;
}

/* The weights of one layer_dir or their gradients. */
struct parts {
    char *ih, *hh, *b_ih, *b_hh; /* [4H, I_l], [4H, H], [4H], [4H] */
};

/* Those of a layer_dir in `base`, which is the packed buffer of weights or of gradients. */
static struct parts parts_of(const struct openblas *blas, void *base, size_t layer_dir)
{
    char *of[LB_WEIGHT_COUNT];
    for (int w = 0; w < LB_WEIGHT_COUNT; w++)
        of[w] = (char *)base +
                lb_packed_offset(&blas->problem, blas->problem.dtype, layer_dir, (enum lb_weight)w);
    return (struct parts){of[LB_W_IH], of[LB_W_HH], of[LB_B_IH], of[LB_B_HH]};
}

/* Calls a function of the library in the problem's type. */
#define BLAS(blas, function, ...)                                             \
    ((blas)->problem.dtype == LB_F32 ? library.cblas_s##function(__VA_ARGS__) \
                                     : library.cblas_d##function(__VA_ARGS__))

/* sum [count] += values */
static void add(const struct openblas *blas, size_t count, const void *values, void *sum)
{
    BLAS(blas, axpy, (blasint)count, 1, values, 1, sum, 1);
}

/* Writes the weights of all layers. b_ih becomes the sum of both biases. */
static enum lb_status pack(const struct openblas *blas, const struct lb_weights *weights,
                           struct lb_error *err)
{
    void *packed = blas->buffers.weights;
    LB_CHECK(lb_packed_upload(&blas->problem, &lb_host_space, packed, weights, err));
    for (size_t ld = 0; ld < blas->layer_dirs; ld++)
        add(blas, blas->gates, weights->b_hh[ld], parts_of(blas, packed, ld).b_ih);
    return LB_OK;
}

static enum lb_status openblas_prepare(void *self, const struct lb_buffers *buffers,
                                       const struct lb_weights *weights, struct lb_error *err)
{
    struct openblas *blas = self;
    size_t reserve, workspace;
    blas->buffers = *buffers;
    lay_out(blas, &reserve, &workspace);
    return pack(blas, weights, err);
}

/* The cell's arithmetic is compiled for several instruction sets, as are its sigmoid and tanh. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VECTOR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define VECTOR_CLONES
#endif

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

/* Calls a function of cell.inc in the problem's type. */
#define CELL(blas, function, ...) \
    ((blas)->problem.dtype == LB_F32 ? function##_f32(__VA_ARGS__) : function##_f64(__VA_ARGS__))

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
    float beta;
    void *c;
    size_t c_stride;
};

static void multiply(const struct openblas *blas, const struct gemm *p)
{
    blasint m = (blasint)p->m, n = (blasint)p->n, k = (blasint)p->k;
    blasint lda = (blasint)p->a_stride, ldb = (blasint)p->b_stride, ldc = (blasint)p->c_stride;
    BLAS(blas, gemm, CblasRowMajor, p->transpose_a, p->transpose_b, m, n, k, 1, p->a, lda, p->b,
         ldb, p->beta, p->c, ldc);
}

/* gates [rows, gates] += in [rows, columns] w^T, w [gates, columns] */
static void add_to_gates(const struct openblas *blas, struct matrix in, size_t columns,
                         const void *w, void *gates)
{
    blasint m = (blasint)blas->gates, n = (blasint)columns;
    if (in.rows == 1) /* gates = w in + gates */
        BLAS(blas, gemv, CblasRowMajor, CblasNoTrans, m, n, 1, w, n, in.at, 1, 1, gates, 1);
    else if (in.rows > 1)
        multiply(blas, &(struct gemm){CblasNoTrans, CblasTrans, in.rows, blas->gates, columns,
                                      in.at, w, in.stride, columns, 1, gates, blas->gates});
}

/* out [rows, columns] = da [rows, gates] w + beta out; rows of out are `stride` apart. */
static void input_gradient(const struct openblas *blas, const void *da, size_t rows, const void *w,
                           size_t columns, float beta, void *out, size_t stride)
{
    blasint m = (blasint)blas->gates, n = (blasint)columns;
    if (rows == 1) /* out = w^T da + beta out */
        BLAS(blas, gemv, CblasRowMajor, CblasTrans, m, n, 1, w, n, da, 1, beta, out, 1);
    else if (rows > 1)
        multiply(blas, &(struct gemm){CblasNoTrans, CblasNoTrans, rows, columns, blas->gates, da, w,
                                      blas->gates, columns, beta, out, stride});
}

/* dw [gates, columns] = da^T in + beta dw, da [rows, gates], in [rows, columns] */
static void weight_gradient(const struct openblas *blas, const void *da, struct matrix in,
                            size_t columns, float beta, void *dw)
{
    if (in.rows > 0)
        multiply(blas, &(struct gemm){CblasTrans, CblasNoTrans, blas->gates, columns, in.rows, da,
                                      in.at, blas->gates, in.stride, beta, dw, columns});
}

static size_t length_of(const struct openblas *blas, size_t b)
{
    return blas->buffers.lengths ? (size_t)blas->buffers.lengths[b] : blas->T;
}

/* How many rows have a step t. They are the first ones, since lengths descend. No row has a step -1
 * or T. */
static size_t active(const struct openblas *blas, size_t t)
{
    size_t n = t < blas->T ? blas->B : 0;
    while (n > 0 && length_of(blas, n - 1) <= t)
        n--;
    return n;
}

/* Layer l's output [T, B, D*H]: the caller's y for the last. */
static char *output_of(const struct openblas *blas, const void *y, size_t l)
{
    size_t kept = lb_trains(&blas->problem) ? l : l % 2;
    if (l == blas->L - 1)
        return at(blas, y, 0);
    return at(blas, blas->lower, kept * blas->rows * blas->wide);
}

/* One layer and direction. */
struct layer_dir {
    const struct openblas *blas;
    size_t index, l, d, input;
    struct parts w;
    const void *in; /* [T, B, I_l] */
    char *y;        /* [T, B, D*H], at this direction's first unit */
    const void *h0; /* [B, H] */
    char *gates;    /* [T, B, 4H] */
    size_t state;   /* elements of [L*D, B, H] before this layer_dir's */
};

static struct layer_dir open_layer_dir(const struct openblas *blas, size_t index, const void *x,
                                       const void *y, const void *h0)
{
    size_t l = index / blas->D, d = index % blas->D, state = index * blas->B * blas->H;
    size_t kept = lb_trains(&blas->problem) ? index : 0;
    return (struct layer_dir){
        .blas = blas,
        .index = index,
        .l = l,
        .d = d,
        .input = l == 0 ? (size_t)blas->problem.input : blas->wide,
        .w = parts_of(blas, blas->buffers.weights, index),
        .in = l == 0 ? x : output_of(blas, y, l - 1),
        .y = at(blas, output_of(blas, y, l), d * blas->H),
        .h0 = at(blas, h0, state),
        .gates = at(blas, blas->gate_rows, kept * blas->rows * blas->gates),
        .state = state,
    };
}

enum { BEFORE = false, AFTER = true, FIRST = false, LAST = true };

/* Cell states [B, H] before and after step t. A row of n steps goes from slot 0 to n, or from n to
 * 0 in reverse. Infer alternates between two slots. */
static char *cells_at(const struct layer_dir *ld, size_t t, bool after)
{
    const struct openblas *blas = ld->blas;
    size_t s = (ld->d == 0) == after ? t + 1 : t;
    size_t slot = lb_trains(&blas->problem) ? ld->index * (blas->T + 1) + s : s % 2;
    return at(blas, blas->cells, slot * blas->B * blas->H);
}

/* The step that this direction computes before or after t; SIZE_MAX or T where there is none. */
static size_t next_to(const struct layer_dir *ld, size_t t, bool after)
{
    return (ld->d == 0) == after ? t + 1 : t - 1;
}

/* How many rows have both steps. */
static size_t both_active(const struct openblas *blas, size_t t, size_t other)
{
    return active(blas, other > t ? other : t);
}

/* The first or the last step that this direction computes in row b. */
static size_t end_step(const struct layer_dir *ld, size_t b, bool last)
{
    return (ld->d == 0) == last ? length_of(ld->blas, b) - 1 : 0;
}

/* Copies the caller's initial cell states into the first slot of each row. */
static void read_cells(const struct layer_dir *ld, const void *c0)
{
    const struct openblas *blas = ld->blas;
    for (size_t b = 0; b < blas->B; b++)
        memcpy(at(blas, cells_at(ld, end_step(ld, b, FIRST), BEFORE), b * blas->H),
               at(blas, c0, ld->state + b * blas->H), blas->H * blas->elem);
}

/* Copies each row's last states to the caller. */
static void write_states(const struct layer_dir *ld, void *hn, void *cn)
{
    const struct openblas *blas = ld->blas;
    for (size_t b = 0; b < blas->B; b++) {
        size_t last = end_step(ld, b, LAST), to = ld->state + b * blas->H;
        memcpy(at(blas, hn, to), at(blas, ld->y, (last * blas->B + b) * blas->wide),
               blas->H * blas->elem);
        memcpy(at(blas, cn, to), at(blas, cells_at(ld, last, AFTER), b * blas->H),
               blas->H * blas->elem);
    }
}

static void step_forward(const struct layer_dir *ld, size_t t)
{
    const struct openblas *blas = ld->blas;
    const struct lb_simd_kernels *k = blas->kernels;
    size_t n = active(blas, t), H = blas->H;
    char *gates = at(blas, ld->gates, t * blas->B * blas->gates);
    char *y = at(blas, ld->y, t * blas->B * blas->wide);
    char *before = cells_at(ld, t, BEFORE), *after = cells_at(ld, t, AFTER);
    /* Rows that go on from the step before; the other active rows, which are the last ones, start
     * here. */
    size_t earlier = next_to(ld, t, BEFORE), going = both_active(blas, t, earlier);
    struct matrix h = {at(blas, ld->y, earlier * blas->B * blas->wide), going, blas->wide};
    struct matrix h0 = {at(blas, ld->h0, going * H), n - going, H};
    add_to_gates(blas, h, H, ld->w.hh, gates);
    add_to_gates(blas, h0, H, ld->w.hh, at(blas, gates, going * blas->gates));
    for (size_t b = 0; b < n; b++) {
        char *row = at(blas, gates, b * blas->gates);
        k->sigmoid(row, row, 2 * H);
        k->tanh(at(blas, row, 2 * H), at(blas, row, 2 * H), H);
        k->sigmoid(at(blas, row, 3 * H), at(blas, row, 3 * H), H);
        CELL(blas, new_cells, row, at(blas, before, b * H), at(blas, after, b * H), H);
    }
    k->tanh(after, blas->tanh_c, n * H);
    for (size_t b = 0; b < n; b++)
        CELL(blas, new_outputs, at(blas, gates, b * blas->gates), at(blas, blas->tanh_c, b * H),
             at(blas, y, b * blas->wide), H);
    for (size_t b = n; b < blas->B; b++)
        memset(at(blas, y, b * blas->wide), 0, H * blas->elem);
}

static enum lb_status openblas_forward(void *self, const struct lb_forward_io *io,
                                       struct lb_error *err)
{
    const struct openblas *blas = self;
    (void)err;
    library.openblas_set_num_threads(blas->threads); /* a setting of the process: another case may
                                                      * have changed it */
    for (size_t index = 0; index < blas->layer_dirs; index++) {
        struct layer_dir ld = open_layer_dir(blas, index, io->x, io->y, io->h0);
        read_cells(&ld, io->c0);
        for (size_t row = 0; row < blas->rows; row++)
            memcpy(at(blas, ld.gates, row * blas->gates), ld.w.b_ih, blas->gates * blas->elem);
        add_to_gates(blas, (struct matrix){ld.in, blas->rows, ld.input}, ld.input, ld.w.ih,
                     ld.gates);
        for (size_t i = 0; i < blas->T; i++)
            step_forward(&ld, ld.d == 0 ? i : blas->T - 1 - i);
        write_states(&ld, io->hn, io->cn);
    }
    return LB_OK;
}

/* dy [T, B, D*H], at this direction's first unit. */
static void step_backward(const struct layer_dir *ld, size_t t, const void *dhn, const void *dy)
{
    const struct openblas *blas = ld->blas;
    size_t n = active(blas, t), H = blas->H, row_bytes = blas->gates * blas->elem;
    size_t later = next_to(ld, t, AFTER), going = both_active(blas, t, later);
    char *gates = at(blas, ld->gates, t * blas->B * blas->gates);
    const char *before = cells_at(ld, t, BEFORE);
    /* dh comes from the later step, or is dhn at a row's last step. */
    input_gradient(blas, at(blas, ld->gates, later * blas->B * blas->gates), going, ld->w.hh, H, 0,
                   blas->dh, H);
    memcpy(at(blas, blas->dh, going * H), at(blas, dhn, ld->state + going * H),
           (n - going) * H * blas->elem);
    blas->kernels->tanh(cells_at(ld, t, AFTER), blas->tanh_c, n * H);
    for (size_t b = 0; b < n; b++)
        CELL(blas, backward, at(blas, gates, b * blas->gates), at(blas, before, b * H),
             at(blas, blas->tanh_c, b * H), at(blas, blas->dh, b * H),
             at(blas, dy, (t * blas->B + b) * blas->wide), at(blas, blas->dc, b * H), H);
    size_t first =
        both_active(blas, t, next_to(ld, t, BEFORE)); /* from there on, rows start here */
    memset(at(blas, gates, n * blas->gates), 0, (blas->B - n) * row_bytes);
    memcpy(at(blas, blas->first, first * blas->gates), at(blas, gates, first * blas->gates),
           (n - first) * row_bytes);
}

/* Gate gradients and y are zero where a row has no step. So one GEMM covers all steps, with y of
 * the step before as the state h before each step; another covers h0 at each row's first step. */
static void weight_gradients(const struct layer_dir *ld)
{
    const struct openblas *blas = ld->blas;
    struct parts dw = parts_of(blas, blas->buffers.gradients, ld->index);
    size_t later = blas->rows - blas->B, second = ld->d == 0 ? blas->B : 0;
    const char *da = at(blas, ld->gates, second * blas->gates);
    const char *h = at(blas, ld->y, (blas->B - second) * blas->wide);
    weight_gradient(blas, ld->gates, (struct matrix){ld->in, blas->rows, ld->input}, ld->input, 0,
                    dw.ih);
    weight_gradient(blas, blas->first, (struct matrix){ld->h0, blas->B, blas->H}, blas->H, 0,
                    dw.hh);
    weight_gradient(blas, da, (struct matrix){h, later, blas->wide}, blas->H, 1, dw.hh);
    memset(dw.b_ih, 0, blas->gates * blas->elem);
    for (size_t row = 0; row < blas->rows; row++)
        add(blas, blas->gates, at(blas, ld->gates, row * blas->gates), dw.b_ih);
    memcpy(dw.b_hh, dw.b_ih, blas->gates * blas->elem);
}

static void backward_layer_dir(const struct layer_dir *ld, const struct lb_backward_io *io)
{
    const struct openblas *blas = ld->blas;
    const void *dy = ld->l == blas->L - 1 ? io->dy : blas->between;
    size_t bytes = blas->B * blas->H * blas->elem;
    memcpy(blas->dc, at(blas, io->dcn, ld->state), bytes);
    for (size_t i = 0; i < blas->T; i++)
        step_backward(ld, ld->d == 0 ? blas->T - 1 - i : i, io->dhn, at(blas, dy, ld->d * blas->H));
    input_gradient(blas, blas->first, blas->B, ld->w.hh, blas->H, 0, at(blas, io->dh0, ld->state),
                   blas->H);
    memcpy(at(blas, io->dc0, ld->state), blas->dc, bytes);
    weight_gradients(ld);
}

static enum lb_status openblas_backward(void *self, const struct lb_backward_io *io,
                                        struct lb_error *err)
{
    const struct openblas *blas = self;
    (void)err;
    library.openblas_set_num_threads(blas->threads);
    for (size_t l = blas->L; l-- > 0;) {
        struct layer_dir ld[2];
        for (size_t d = 0; d < blas->D; d++) {
            ld[d] = open_layer_dir(blas, l * blas->D + d, io->x, io->y, io->h0);
            backward_layer_dir(&ld[d], io);
        }
        for (size_t d = 0; d < blas->D; d++) /* now no direction reads `between` any more */
            input_gradient(blas, ld[d].gates, blas->rows, ld[d].w.ih, ld[d].input, d > 0,
                           l == 0 ? io->dx : blas->between, ld[d].input);
    }
    return LB_OK;
}

static enum lb_status openblas_gradients(void *self, const struct lb_gradients *gradients,
                                         struct lb_error *err)
{
    const struct openblas *blas = self;
    return lb_packed_download(&blas->problem, &lb_host_space, blas->problem.dtype,
                              blas->buffers.gradients, gradients, err);
}

static enum lb_status openblas_update(void *self, const struct lb_update_io *io,
                                      struct lb_error *err)
{
    LB_CHECK(pack(self, &io->weights, err));
    return openblas_gradients(self, &io->gradients, err);
}

static const char *openblas_describe(const void *self)
{
    return ((const struct openblas *)self)->description;
}

/* The library's threads poll for more work for 2^26 clock ticks before they sleep. Waiting for that
 * keeps them from slowing down the next case. */
static void openblas_destroy(void *self)
{
    const struct timespec until_asleep = {.tv_nsec = 50000000};
    if (!lb_openblas_library.loaded)
        return; /* it was never created */
    if (((struct openblas *)self)->threads > 1)
        nanosleep(&until_asleep, NULL);
    library.openblas_set_num_threads(1);
}

const struct lb_impl lb_impl_openblas = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "openblas",
    .summary = "one OpenBLAS GEMM for all inputs and one per step, vectorised cell",
    .memory = LB_HOST,
    .traits = LB_DETERMINISTIC,
    .state_size = sizeof(struct openblas),
    .supports = openblas_supports,
    .create = openblas_create,
    .sizes = openblas_sizes,
    .prepare = openblas_prepare,
    .forward = openblas_forward,
    .backward = openblas_backward,
    .gradients = openblas_gradients,
    .describe = openblas_describe,
    .destroy = openblas_destroy,
    .update = openblas_update,
};
