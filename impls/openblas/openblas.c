/* openblas: an LSTM as frameworks build it on a BLAS library. One GEMM for the inputs of all steps,
 * one GEMM per step for the recurrence, and a vectorised cell in between. f32 and f64, tanh. */
#include "impls/openblas/openblas.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "impls/openblas/library.h"

struct lb_blas lb_blas;

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ... SkylakeX MAX_THREADS=64" */
static void print_version(char *text, size_t size)
{
    snprintf(text, size, "%s", lb_blas.openblas_get_config());
}

struct lb_shared_library lb_openblas_library = {
    .name = "OpenBLAS",
    .file = LB_OPENBLAS_FILE,
    .built = LB_OPENBLAS_VERSION,
    LB_FUNCTIONS_OF(LB_BLAS_FUNCTIONS, lb_blas),
    .print_version = print_version,
};

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
    const struct lb_simd_kernels *list[LB_SIMD_UNIT_COUNT];
    lb_simd_kernels_all(p->dtype, list);
    double filled = (double)p->hidden + (double)list[0]->simd_width;
    const double sides[] = {(double)p->seq_len * (double)p->batch, 4 * filled, (double)p->input,
                            (double)p->directions * (double)p->hidden};
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
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: this process may use only %d CPUs",
                       threads, CPU_COUNT(&cpus));
    lb_blas.openblas_set_num_threads(threads);
    if (lb_blas.openblas_get_num_threads() != threads)
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: this OpenBLAS takes at most %d", threads,
                       lb_blas.openblas_get_num_threads());
    if (symbol)
        memcpy(&confine, &symbol, sizeof(confine)); /* ISO C has no cast between the two */
    for (int i = 0; confine && i < threads - 1; i++)
        confine(i, sizeof(cpus), &cpus); /* the last thread is the caller itself */
    return LB_OK;
}

/* "OpenBLAS 0.3.21 SkylakeX, 2 threads, AVX-512 cell" */
static void describe(struct lb_openblas *blas)
{
    const char *config = lb_blas.openblas_get_config(); /* "OpenBLAS 0.3.21 DYNAMIC_ARCH ..." */
    const char *space = strchr(config, ' ');
    const char *version = space ? space + 1 : config;
    snprintf(blas->description, sizeof(blas->description), "OpenBLAS %.*s %s, %d thread%s, %s cell",
             (int)strcspn(version, " "), version, lb_blas.openblas_get_corename(), blas->threads,
             blas->threads > 1 ? "s" : "", blas->kernels->name);
}

static enum lb_status openblas_create(void *self, const struct lb_problem *p,
                                      const struct lb_exec_config *config, struct lb_error *err)
{
    struct lb_openblas *blas = self;
    enum lb_status st = LB_OK;
    LB_TRY(lb_shared_library_load(&lb_openblas_library, err));
    LB_TRY(set_threads(config->threads, err));
    LB_TRY(lb_simd_kernels_choose(p->dtype, &blas->kernels, err));
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
    blas->units = (blas->H + blas->kernels->simd_width - 1) / blas->kernels->simd_width *
                  blas->kernels->simd_width;
    blas->gates = 4 * blas->units;
    describe(blas);
done:
    return st;
}

/* Sets the pointers to all arrays. With zeroed buffers it only computes the sizes. */
static void lay_out(struct lb_openblas *blas, size_t *reserve, size_t *workspace)
{
    bool trains = lb_trains(&blas->problem);
    size_t layer_dirs = trains ? blas->layer_dirs : 1;
    size_t lower = !trains && blas->L > 2 ? 2 : blas->L - 1, steps = trains ? blas->T + 1 : 2;
    size_t state = blas->B * blas->units * blas->elem,
           output = blas->rows * blas->wide * blas->elem;
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

size_t lb_openblas_input(const struct lb_openblas *blas, size_t layer_dir)
{
    return layer_dir < blas->D ? (size_t)blas->problem.input : blas->wide;
}

/* Number of weights of all layer_dirs before this one; layer_dir L*D gives the total. */
static size_t weights_before(const struct lb_openblas *blas, size_t layer_dir)
{
    size_t first = layer_dir < blas->D ? layer_dir : blas->D, later = layer_dir - first;
    return blas->gates * (first * ((size_t)blas->problem.input + blas->H + 1) +
                          later * (blas->wide + blas->H + 1));
}

static enum lb_status openblas_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    struct lb_openblas *blas = self;
    double gates = (double)blas->layer_dirs * (double)blas->gates;
    double columns = (double)blas->problem.input + (double)blas->wide + (double)blas->H + 1;
    if (gates * (double)blas->rows > 0x1p58 || gates * columns > 0x1p58)
        return lb_fail(err, LB_OOM, "%.3g gates of all layers: more than any memory", gates);
    sizes->weights = weights_before(blas, blas->layer_dirs) * blas->elem;
    sizes->gradients = lb_has_backward(&blas->problem) ? sizes->weights : 0;
    lay_out(blas, &sizes->reserve, &sizes->workspace);
    return LB_OK;
}

struct lb_openblas_parts lb_openblas_parts_of(const struct lb_openblas *blas, void *base,
                                              size_t layer_dir)
{
    struct lb_openblas_parts parts;
    parts.ih = lb_blas_at(blas, base, weights_before(blas, layer_dir));
    parts.hh = lb_blas_at(blas, parts.ih, blas->gates * lb_openblas_input(blas, layer_dir));
    parts.bias = lb_blas_at(blas, parts.hh, blas->gates * blas->H);
    return parts;
}

/* from [4, H, columns] -> to [4, units, columns] */
static void copy_padded(const struct lb_openblas *blas, char *to, const void *from, size_t columns)
{
    size_t part = blas->H * columns;
    memset(to, 0, blas->gates * columns * blas->elem);
    for (size_t g = 0; g < 4; g++)
        memcpy(lb_blas_at(blas, to, g * blas->units * columns), lb_blas_at(blas, from, g * part),
               part * blas->elem);
}

/* from [4, units, columns] -> to [4, H, columns] */
static void copy_unpadded(const struct lb_openblas *blas, void *to, const char *from,
                          size_t columns)
{
    size_t part = blas->H * columns;
    for (size_t g = 0; g < 4; g++)
        memcpy(lb_blas_at(blas, to, g * part), lb_blas_at(blas, from, g * blas->units * columns),
               part * blas->elem);
}

/* Writes the padded weights of all layers, with one bias for two. */
static void pack(const struct lb_openblas *blas, const struct lb_weights *weights)
{
    for (size_t ld = 0; ld < blas->layer_dirs; ld++) {
        struct lb_openblas_parts w = lb_openblas_parts_of(blas, blas->buffers.weights, ld);
        copy_padded(blas, w.ih, weights->w_ih[ld], lb_openblas_input(blas, ld));
        copy_padded(blas, w.hh, weights->w_hh[ld], blas->H);
        copy_padded(blas, w.bias, weights->b_ih[ld], 1);
        for (size_t g = 0; g < 4; g++)
            lb_openblas_add(blas, blas->H, lb_blas_at(blas, weights->b_hh[ld], g * blas->H),
                            lb_blas_at(blas, w.bias, g * blas->units));
    }
}

static enum lb_status openblas_prepare(void *self, const struct lb_buffers *buffers,
                                       const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_openblas *blas = self;
    size_t reserve, workspace;
    (void)err;
    blas->buffers = *buffers;
    lay_out(blas, &reserve, &workspace);
    pack(blas, weights);
    return LB_OK;
}

static enum lb_status openblas_forward(void *self, const struct lb_forward_io *io,
                                       struct lb_error *err)
{
    const struct lb_openblas *blas = self;
    (void)err;
    lb_blas.openblas_set_num_threads(blas->threads); /* a setting of the process: another case may
                                                      * have changed it */
    lb_openblas_forward(blas, io);
    return LB_OK;
}

static enum lb_status openblas_backward(void *self, const struct lb_backward_io *io,
                                        struct lb_error *err)
{
    const struct lb_openblas *blas = self;
    (void)err;
    lb_blas.openblas_set_num_threads(blas->threads);
    lb_openblas_backward(blas, io);
    return LB_OK;
}

static enum lb_status openblas_gradients(void *self, const struct lb_gradients *gradients,
                                         struct lb_error *err)
{
    const struct lb_openblas *blas = self;
    (void)err;
    for (size_t ld = 0; ld < blas->layer_dirs; ld++) {
        struct lb_openblas_parts from = lb_openblas_parts_of(blas, blas->buffers.gradients, ld);
        copy_unpadded(blas, gradients->dw_ih[ld], from.ih, lb_openblas_input(blas, ld));
        copy_unpadded(blas, gradients->dw_hh[ld], from.hh, blas->H);
        copy_unpadded(blas, gradients->db_ih[ld], from.bias, 1);
        copy_unpadded(blas, gradients->db_hh[ld], from.bias, 1);
    }
    return LB_OK;
}

static enum lb_status openblas_update(void *self, const struct lb_update_io *io,
                                      struct lb_error *err)
{
    pack(self, &io->weights);
    return openblas_gradients(self, &io->gradients, err);
}

static const char *openblas_describe(const void *self)
{
    return ((const struct lb_openblas *)self)->description;
}

/* The library's threads poll for more work for 2^26 clock ticks before they sleep. Waiting for that
 * keeps them from slowing down the next case. */
static void openblas_destroy(void *self)
{
    const struct timespec until_asleep = {.tv_nsec = 50000000};
    if (!lb_openblas_library.loaded)
        return; /* it was never created */
    if (((struct lb_openblas *)self)->threads > 1)
        nanosleep(&until_asleep, NULL);
    lb_blas.openblas_set_num_threads(1);
}

const struct lb_impl lb_impl_openblas = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "openblas",
    .summary = "one OpenBLAS GEMM for all inputs and one per step, vectorised cell",
    .memory = LB_HOST,
    .traits = LB_DETERMINISTIC,
    .state_size = sizeof(struct lb_openblas),
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
