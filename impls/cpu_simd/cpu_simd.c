/* cpu_simd: products and cells in kernels of this project. f32 and f64, tanh activations, any
 * number of threads. README.md says what was tried. */
#include <stdio.h>

#include "base/arena.h"
#include "impls/cpu_simd/cpu_simd.h"

/* Multiply-adds of a step that make a thread worth its barrier. */
static const double work_per_thread = 32768;

/* See lb_cpu_rows_at_a_time. */
enum { FEW_ROWS = 24, MANY_ROWS = 512, NEAR_BYTES = 8 << 20 };

/* Recurrent weights up to this size each thread reads whole, from its own L2 cache, rather than
 * wait for the others in every step. */
enum { SHARED_BYTES = 512 << 10, ROWS_TO_SHARE = 6 };

size_t lb_cpu_rows_at_a_time(const struct lb_cpu_simd *blas, size_t input)
{
    return blas->s.gates * input * blas->elem <= NEAR_BYTES ? FEW_ROWS : MANY_ROWS;
}

static enum lb_status cpu_simd_supports(const struct lb_problem *p,
                                        const struct lb_exec_config *place, struct lb_error *why)
{
    (void)place;
    if (p->dtype != LB_F32 && p->dtype != LB_F64)
        return lb_fail(why, LB_UNSUPPORTED, "dtype %s: it has products in f32 and f64",
                       lb_dtype_name(p->dtype));
    if (p->math != LB_IEEE)
        return lb_fail(why, LB_UNSUPPORTED, "math %s: it computes f32 in full precision",
                       lb_math_name(p->math));
    if (p->act != LB_ACT_TANH)
        return lb_fail(why, LB_UNSUPPORTED, "act-%s: its cell has tanh only", lb_act_name(p->act));
    return LB_OK;
}

static struct lb_cpu_sizes sizes_of(const struct lb_problem *p, size_t lanes)
{
    struct lb_cpu_sizes s = {.T = (size_t)p->seq_len,
                             .B = (size_t)p->batch,
                             .H = (size_t)p->hidden,
                             .D = (size_t)p->directions,
                             .L = (size_t)p->layers,
                             .lanes = lanes};
    s.entries = s.L * s.D;
    s.rows = s.T * s.B;
    s.wide = s.D * s.H;
    s.panels = lb_cpu_cover(s.H, lanes);
    s.width = 4 * lanes;
    s.gates = s.width * s.panels;
    return s;
}

/* As many threads as asked for, or one where a step is too short to be shared. */
static size_t choose_threads(const struct lb_cpu_sizes *s, size_t asked)
{
    double work = (double)s->B * (double)s->gates * (double)s->H;
    return asked > 1 && work < work_per_thread * (double)asked ? 1 : asked;
}

static void describe(struct lb_cpu_simd *blas, int asked)
{
    char threads[96];
    if (blas->threads < (size_t)asked)
        snprintf(threads, sizeof(threads), "1 thread of %d: a step is too short to share", asked);
    else if (asked > 1)
        snprintf(threads, sizeof(threads), "%d threads, pinned, %s shared", asked,
                 blas->by_rows ? "rows" : "hidden units");
    else
        snprintf(threads, sizeof(threads), "1 thread");
    snprintf(blas->description, sizeof(blas->description),
             "own %s kernels, panels of %zu units, %s", blas->kernels->name, blas->s.lanes,
             threads);
}

static enum lb_status cpu_simd_create(void *self, const struct lb_problem *problem,
                                      const struct lb_exec_config *place, struct lb_error *err)
{
    struct lb_cpu_simd *blas = self;
    enum lb_status st = LB_OK;
    blas->problem = *problem;
    blas->elem = lb_dtype_size(problem->dtype);
    blas->kernels = lb_simd_kernels_best(problem->dtype);
    blas->s = sizes_of(problem, blas->kernels->lanes);
    blas->threads = choose_threads(&blas->s, (size_t)place->threads);
    if (blas->threads > 1)
        LB_TRY(lb_pinned_threads_open(place->threads, &blas->team, err));
    blas->by_rows = blas->threads > 1 && blas->s.B >= ROWS_TO_SHARE * blas->threads &&
                    blas->s.gates * blas->s.H * blas->elem <= SHARED_BYTES;
    blas->chunk = lb_cpu_cover(lb_cpu_rows_at_a_time(blas, (size_t)problem->input), blas->s.B);
    blas->chunk = blas->chunk < blas->s.T ? blas->chunk : blas->s.T;
    blas->gate_rows = (lb_trains(problem) ? blas->s.T : blas->chunk) * blas->s.B;
    describe(blas, place->threads);
done:
    return st;
}

/* Places all arrays; with zeroed buffers this measures. */
static void lay_out(struct lb_cpu_simd *blas, size_t *reserve, size_t *workspace)
{
    const struct lb_cpu_sizes *s = &blas->s;
    bool trains = lb_trains(&blas->problem), backward = lb_has_backward(&blas->problem);
    size_t lower = !trains && s->L > 2 ? 2 : s->L - 1;
    size_t gates = (trains ? s->entries : 1) * blas->gate_rows * s->gates;
    struct lb_arena scratch = {.base = blas->buffers.workspace};
    struct lb_arena kept = {.base = blas->buffers.reserve};
    struct lb_arena *passes = trains ? &kept : &scratch;
    blas->pointers = lb_arena_take(&scratch, blas->threads * 2 * s->B * sizeof(void *));
    blas->gates = lb_arena_take(passes, gates * blas->elem);
    blas->lower = lb_arena_take(passes, lower * s->rows * s->wide * blas->elem);
    blas->cells = trains ? lb_arena_take(passes, s->entries * s->rows * s->H * blas->elem) : NULL;
    if (backward) {
        blas->between = lb_arena_take(&scratch, (s->L > 1 ? s->rows * s->wide : 0) * blas->elem);
        blas->first = lb_arena_take(&scratch, s->B * s->gates * blas->elem);
        blas->sums = lb_arena_take(&scratch, blas->threads * s->B * s->width * blas->elem);
        blas->packed_bytes = lb_cpu_packed_bytes(blas);
        blas->packed = lb_arena_take(&scratch, blas->threads * blas->packed_bytes);
    }
    *reserve = kept.used;
    *workspace = scratch.used;
}

static enum lb_status cpu_simd_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    struct lb_cpu_simd *blas = self;
    const struct lb_cpu_sizes *s = &blas->s;
    double largest = (double)s->entries * (double)s->rows * (double)s->gates;
    if (largest > 0x1p58) /* bytes of all would pass what a size_t holds */
        return lb_fail(err, LB_OOM, "gates of all steps: %.3g elements are more than any memory",
                       largest);
    sizes->weights = lb_cpu_weight_count(blas) * blas->elem;
    if (lb_has_backward(&blas->problem))
        sizes->gradients = lb_cpu_gradient_count(blas) * blas->elem;
    lay_out(blas, &sizes->reserve, &sizes->workspace);
    return LB_OK;
}

static enum lb_status cpu_simd_prepare(void *self, const struct lb_buffers *buffers,
                                       const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_cpu_simd *blas = self;
    size_t reserve, workspace;
    (void)err;
    blas->buffers = *buffers;
    lay_out(blas, &reserve, &workspace);
    for (size_t e = 0; e < blas->s.entries; e++)
        lb_cpu_pack(blas, e, weights);
    return LB_OK;
}

static enum lb_status cpu_simd_forward(void *self, const struct lb_forward_io *io,
                                       struct lb_error *err)
{
    const struct lb_cpu_simd *blas = self;
    (void)err;
    lb_pinned_threads_run(blas->team, lb_cpu_forward_work,
                          &(struct lb_cpu_call){.blas = blas, .forward = io});
    return LB_OK;
}

static enum lb_status cpu_simd_backward(void *self, const struct lb_backward_io *io,
                                        struct lb_error *err)
{
    const struct lb_cpu_simd *blas = self;
    (void)err;
    lb_pinned_threads_run(blas->team, lb_cpu_backward_work,
                          &(struct lb_cpu_call){.blas = blas, .backward = io});
    return LB_OK;
}

static enum lb_status cpu_simd_gradients(void *self, const struct lb_gradients *gradients,
                                         struct lb_error *err)
{
    const struct lb_cpu_simd *blas = self;
    (void)err;
    for (size_t e = 0; e < blas->s.entries; e++)
        lb_cpu_unpack(blas, e, gradients);
    return LB_OK;
}

static const char *cpu_simd_describe(const void *self)
{
    return ((const struct lb_cpu_simd *)self)->description;
}

static void cpu_simd_destroy(void *self)
{
    lb_pinned_threads_close(((struct lb_cpu_simd *)self)->team);
}

const struct lb_impl lb_impl_cpu_simd = {
    .abi = LB_IMPL_ABI,
    .name = "cpu_simd",
    .summary = "packed weights, products and cells in own vector kernels",
    .memory = LB_HOST,
    .traits = LB_DETERMINISTIC,
    .state_size = sizeof(struct lb_cpu_simd),
    .supports = cpu_simd_supports,
    .create = cpu_simd_create,
    .sizes = cpu_simd_sizes,
    .prepare = cpu_simd_prepare,
    .forward = cpu_simd_forward,
    .backward = cpu_simd_backward,
    .gradients = cpu_simd_gradients,
    .describe = cpu_simd_describe,
    .destroy = cpu_simd_destroy,
};
