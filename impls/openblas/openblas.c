/* openblas: what a framework makes of a BLAS library: one product for the inputs of all steps, one
 * product a step for the recurrence, a vectorised cell between. f32 and f64, tanh activations. */
#include "impls/openblas/openblas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"

static enum lb_status openblas_supports(const struct lb_problem *p,
                                        const struct lb_exec_config *place, struct lb_error *why)
{
    (void)place;
    if (p->dtype != LB_F32 && p->dtype != LB_F64)
        return lb_fail(why, LB_UNSUPPORTED, "dtype %s: OpenBLAS has products in f32 and f64",
                       lb_dtype_name(p->dtype));
    if (p->math != LB_IEEE)
        return lb_fail(why, LB_UNSUPPORTED, "math %s: OpenBLAS computes f32 in full precision",
                       lb_math_name(p->math));
    if (p->act != LB_ACT_TANH)
        return lb_fail(why, LB_UNSUPPORTED, "act-%s: its cell has tanh only", lb_act_name(p->act));
    double filled = (double)p->hidden + (double)lb_simd_kernels_best(p->dtype)->lanes;
    const double sides[] = {(double)p->seq_len * (double)p->batch, 4 * filled, (double)p->input,
                            (double)p->directions * (double)p->hidden};
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++)
        if (sides[i] > INT_MAX)
            return lb_fail(why, LB_UNSUPPORTED, "a matrix side of %.0f: OpenBLAS takes at most %d",
                           sides[i], INT_MAX);
    return LB_OK;
}

/* The library's threads and the CPUs of the caller's, to which the harness has pinned that one.
 * They live from when the library was loaded. What it calls its number of CPUs is of that time, or
 * of the first call, and is not asked. */
static enum lb_status set_threads(int threads, struct lb_error *err)
{
    int (*confine)(int thread, size_t size, cpu_set_t *cpus) = NULL; /* since 0.3.21 */
    void *symbol = dlsym(RTLD_DEFAULT, "openblas_setaffinity");
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
        return lb_fail(err, LB_FAILED, "reading the CPUs that this thread may use failed");
    if (threads > CPU_COUNT(&cpus))
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: this process may use %d CPUs", threads,
                       CPU_COUNT(&cpus));
    openblas_set_num_threads(threads);
    if (openblas_get_num_threads() != threads)
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: this OpenBLAS takes at most %d", threads,
                       openblas_get_num_threads());
    if (symbol)
        memcpy(&confine, &symbol, sizeof(confine)); /* ISO C has no cast between the two */
    for (int i = 0; confine && i < threads - 1; i++)
        confine(i, sizeof(cpus), &cpus); /* the last is the caller's */
    return LB_OK;
}

/* "OpenBLAS 0.3.21 SkylakeX, 2 threads, AVX-512 cell" */
static void describe(struct lb_openblas *blas)
{
    const char *config = openblas_get_config(); /* "OpenBLAS 0.3.21 DYNAMIC_ARCH ..." */
    const char *space = strchr(config, ' ');
    const char *version = space ? space + 1 : config;
    snprintf(blas->description, sizeof(blas->description), "OpenBLAS %.*s %s, %d thread%s, %s cell",
             (int)strcspn(version, " "), version, openblas_get_corename(), blas->threads,
             blas->threads > 1 ? "s" : "", blas->kernels->name);
}

static enum lb_status openblas_create(void *self, const struct lb_problem *p,
                                      const struct lb_exec_config *place, struct lb_error *err)
{
    struct lb_openblas *blas = self;
    enum lb_status st = set_threads(place->threads, err);
    if (st != LB_OK)
        return st;
    blas->problem = *p;
    blas->threads = place->threads;
    blas->kernels = lb_simd_kernels_best(p->dtype);
    blas->T = (size_t)p->seq_len;
    blas->B = (size_t)p->batch;
    blas->H = (size_t)p->hidden;
    blas->D = (size_t)p->directions;
    blas->L = (size_t)p->layers;
    blas->entries = blas->L * blas->D;
    blas->rows = blas->T * blas->B;
    blas->wide = blas->D * blas->H;
    blas->elem = lb_dtype_size(p->dtype);
    blas->units =
        (blas->H + blas->kernels->lanes - 1) / blas->kernels->lanes * blas->kernels->lanes;
    blas->gates = 4 * blas->units;
    describe(blas);
    return LB_OK;
}

/* Places all arrays; with zeroed buffers this measures. */
static void lay_out(struct lb_openblas *blas, size_t *reserve, size_t *workspace)
{
    bool trains = lb_trains(&blas->problem);
    size_t entries = trains ? blas->entries : 1;
    size_t lower = !trains && blas->L > 2 ? 2 : blas->L - 1, steps = trains ? blas->T + 1 : 2;
    size_t state = blas->B * blas->units * blas->elem,
           output = blas->rows * blas->wide * blas->elem;
    struct lb_arena scratch = {.base = blas->buffers.workspace};
    struct lb_arena kept = {.base = blas->buffers.reserve};
    struct lb_arena *passes = trains ? &kept : &scratch;
    blas->gate_rows = lb_arena_take(passes, entries * blas->rows * blas->gates * blas->elem);
    blas->cells = lb_arena_take(passes, entries * steps * state);
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

size_t lb_openblas_input(const struct lb_openblas *blas, size_t entry)
{
    return entry < blas->D ? (size_t)blas->problem.input : blas->wide;
}

/* Elements of the weights of all entries before one; entry L*D: of all. */
static size_t weights_before(const struct lb_openblas *blas, size_t entry)
{
    size_t first = entry < blas->D ? entry : blas->D, later = entry - first;
    return blas->gates * (first * ((size_t)blas->problem.input + blas->H + 1) +
                          later * (blas->wide + blas->H + 1));
}

static enum lb_status openblas_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    struct lb_openblas *blas = self;
    double gates = (double)blas->entries * (double)blas->gates;
    double columns = (double)blas->problem.input + (double)blas->wide + (double)blas->H + 1;
    if (gates * (double)blas->rows > 0x1p58 || gates * columns > 0x1p58)
        return lb_fail(err, LB_OOM, "%.3g gates of all layers: more than any memory", gates);
    sizes->weights = weights_before(blas, blas->entries) * blas->elem;
    sizes->gradients = lb_has_backward(&blas->problem) ? sizes->weights : 0;
    lay_out(blas, &sizes->reserve, &sizes->workspace);
    return LB_OK;
}

struct lb_openblas_parts lb_openblas_parts_of(const struct lb_openblas *blas, void *base,
                                              size_t entry)
{
    struct lb_openblas_parts parts;
    parts.ih = lb_blas_at(blas, base, weights_before(blas, entry));
    parts.hh = lb_blas_at(blas, parts.ih, blas->gates * lb_openblas_input(blas, entry));
    parts.bias = lb_blas_at(blas, parts.hh, blas->gates * blas->H);
    return parts;
}

/* from [4, H, columns] -> to [4, units, columns] */
static void fill_up(const struct lb_openblas *blas, char *to, const void *from, size_t columns)
{
    size_t part = blas->H * columns;
    memset(to, 0, blas->gates * columns * blas->elem);
    for (size_t g = 0; g < 4; g++)
        memcpy(lb_blas_at(blas, to, g * blas->units * columns), lb_blas_at(blas, from, g * part),
               part * blas->elem);
}

/* from [4, units, columns] -> to [4, H, columns] */
static void cut_off(const struct lb_openblas *blas, void *to, const char *from, size_t columns)
{
    size_t part = blas->H * columns;
    for (size_t g = 0; g < 4; g++)
        memcpy(lb_blas_at(blas, to, g * part), lb_blas_at(blas, from, g * blas->units * columns),
               part * blas->elem);
}

static enum lb_status openblas_prepare(void *self, const struct lb_buffers *buffers,
                                       const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_openblas *blas = self;
    size_t reserve, workspace;
    (void)err;
    blas->buffers = *buffers;
    lay_out(blas, &reserve, &workspace);
    for (size_t e = 0; e < blas->entries; e++) {
        struct lb_openblas_parts w = lb_openblas_parts_of(blas, buffers->weights, e);
        fill_up(blas, w.ih, weights->w_ih[e], lb_openblas_input(blas, e));
        fill_up(blas, w.hh, weights->w_hh[e], blas->H);
        fill_up(blas, w.bias, weights->b_ih[e], 1);
        for (size_t g = 0; g < 4; g++)
            lb_openblas_add(blas, blas->H, lb_blas_at(blas, weights->b_hh[e], g * blas->H),
                            lb_blas_at(blas, w.bias, g * blas->units));
    }
    return LB_OK;
}

static enum lb_status openblas_forward(void *self, const struct lb_forward_io *io,
                                       struct lb_error *err)
{
    const struct lb_openblas *blas = self;
    (void)err;
    openblas_set_num_threads(blas->threads); /* the process's: another case may have changed it */
    lb_openblas_forward(blas, io);
    return LB_OK;
}

static enum lb_status openblas_backward(void *self, const struct lb_backward_io *io,
                                        struct lb_error *err)
{
    const struct lb_openblas *blas = self;
    (void)err;
    openblas_set_num_threads(blas->threads);
    lb_openblas_backward(blas, io);
    return LB_OK;
}

static enum lb_status openblas_gradients(void *self, const struct lb_gradients *gradients,
                                         struct lb_error *err)
{
    const struct lb_openblas *blas = self;
    (void)err;
    for (size_t e = 0; e < blas->entries; e++) {
        struct lb_openblas_parts from = lb_openblas_parts_of(blas, blas->buffers.gradients, e);
        cut_off(blas, gradients->dw_ih[e], from.ih, lb_openblas_input(blas, e));
        cut_off(blas, gradients->dw_hh[e], from.hh, blas->H);
        cut_off(blas, gradients->db_ih[e], from.bias, 1);
        cut_off(blas, gradients->db_hh[e], from.bias, 1);
    }
    return LB_OK;
}

static const char *openblas_describe(const void *self)
{
    return ((const struct lb_openblas *)self)->description;
}

/* The library's threads look for more work for 2^26 ticks of the CPU's clock, then sleep: others
 * are not to be timed beside that. */
static void openblas_destroy(void *self)
{
    const struct timespec until_asleep = {.tv_nsec = 50000000};
    if (((struct lb_openblas *)self)->threads > 1)
        nanosleep(&until_asleep, NULL);
    openblas_set_num_threads(1);
}

const struct lb_impl lb_impl_openblas = {
    .abi = LB_IMPL_ABI,
    .name = "openblas",
    .summary = "an OpenBLAS product for all inputs and one a step, vectorised cell",
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
};
