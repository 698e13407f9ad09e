/* cpu_blas: OpenBLAS for the products, a plain cell. f32 and f64, tanh activations. */
#include <cblas.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cpu_blas.h"

static enum lb_status cpu_blas_supports(const struct lb_problem *problem,
                                        const struct lb_place *place, struct lb_error *why)
{
    const struct lb_problem *p = problem;
    if (p->dtype != LB_F32 && p->dtype != LB_F64)
        return lb_fail(why, LB_UNSUPPORTED, "dtype %s: OpenBLAS has products in f32 and f64",
                       lb_dtype_name(p->dtype));
    if (p->math != LB_IEEE)
        return lb_fail(why, LB_UNSUPPORTED, "math %s: OpenBLAS computes f32 in full precision",
                       lb_math_name(p->math));
    if (p->act != LB_ACT_TANH)
        return lb_fail(why, LB_UNSUPPORTED, "act-%s: its cell has tanh only", lb_act_name(p->act));
    const int64_t sides[] = {p->seq_len * p->batch, 4 * p->hidden, p->input,
                             p->directions * p->hidden};
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++)
        if (sides[i] > INT_MAX)
            return lb_fail(why, LB_UNSUPPORTED, "a matrix side of %lld: OpenBLAS takes at most %d",
                           (long long)sides[i], INT_MAX);
    if (place->threads > 1 && openblas_get_parallel() == 0)
        return lb_fail(why, LB_UNSUPPORTED, "threads %d: this OpenBLAS is built without threads",
                       place->threads);
    return LB_OK;
}

/* "0.3.21" of "OpenBLAS 0.3.21 DYNAMIC_ARCH ...". */
static void library_version(char *text, size_t size)
{
    const char *config = openblas_get_config();
    const char *space = strchr(config, ' ');
    snprintf(text, size, "%s", space ? space + 1 : config);
    text[strcspn(text, " ")] = '\0';
}

static enum lb_status cpu_blas_create(void *self, const struct lb_problem *problem,
                                      const struct lb_place *place, struct lb_error *err)
{
    struct cpu_blas *blas = self;
    char version[32];
    blas->problem = *problem;
    blas->routines = problem->dtype == LB_F32 ? &lb_cpu_blas_f32 : &lb_cpu_blas_f64;
    openblas_set_num_threads(place->threads); /* one setting for the process */
    if (openblas_get_num_threads() != place->threads)
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: OpenBLAS grants %d", place->threads,
                       openblas_get_num_threads());
    library_version(version, sizeof(version));
    snprintf(blas->chosen, sizeof(blas->chosen), "OpenBLAS %s, core %s, %d thread%s", version,
             openblas_get_corename(), place->threads, place->threads == 1 ? "" : "s");
    return LB_OK;
}

static enum lb_status cpu_blas_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    struct cpu_blas *blas = self;
    const struct lb_problem *p = &blas->problem;
    struct sizes s = sizes_of(p);
    size_t weights = weight_offset(p, s.entries) * lb_dtype_size(p->dtype);
    double largest = (double)s.entries * (double)s.rows * 4.0 * (double)s.H;
    if (largest > 0x1p58) /* bytes of all would pass what a size_t holds */
        return lb_fail(err, LB_OOM, "gates of all steps: %.3g elements are more than any memory",
                       largest);
    sizes->weights = weights;
    sizes->gradients = lb_has_backward(p) ? weights : 0;
    blas->routines->measure(blas, &sizes->reserve, &sizes->workspace);
    return LB_OK;
}

static enum lb_status cpu_blas_prepare(void *self, const struct lb_buffers *buffers,
                                       const struct lb_weights *weights, struct lb_error *err)
{
    struct cpu_blas *blas = self;
    (void)err;
    blas->buffers = *buffers;
    blas->routines->pack(blas, weights);
    return LB_OK;
}

static enum lb_status cpu_blas_forward(void *self, const struct lb_forward_io *io,
                                       struct lb_error *err)
{
    const struct cpu_blas *blas = self;
    (void)err;
    blas->routines->forward(blas, io);
    return LB_OK;
}

static enum lb_status cpu_blas_backward(void *self, const struct lb_backward_io *io,
                                        struct lb_error *err)
{
    const struct cpu_blas *blas = self;
    (void)err;
    blas->routines->backward(blas, io);
    return LB_OK;
}

static enum lb_status cpu_blas_gradients(void *self, const struct lb_gradients *gradients,
                                         struct lb_error *err)
{
    const struct cpu_blas *blas = self;
    const struct lb_problem *p = &blas->problem;
    size_t size = lb_dtype_size(p->dtype), gates = 4 * (size_t)p->hidden;
    const char *at = blas->buffers.gradients;
    (void)err;
    for (size_t e = 0; e < sizes_of(p).entries; e++) {
        size_t ih = gates * input_of(p, e) * size, hh = gates * (size_t)p->hidden * size;
        memcpy(gradients->dw_ih[e], at, ih);
        memcpy(gradients->dw_hh[e], at + ih, hh);
        memcpy(gradients->db_ih[e], at + ih + hh, gates * size);
        memcpy(gradients->db_hh[e], at + ih + hh, gates * size);
        at += ih + hh + gates * size;
    }
    return LB_OK;
}

static const char *cpu_blas_chosen(const void *self)
{
    return ((const struct cpu_blas *)self)->chosen;
}

static void cpu_blas_destroy(void *self)
{
    (void)self; /* the library is the process's, the buffers are the harness's */
}

const struct lb_impl lb_impl_cpu_blas = {
    .abi = LB_IMPL_ABI,
    .name = "cpu_blas",
    .summary = "OpenBLAS products, plain cell",
    .memory = LB_HOST,
    .traits = LB_DETERMINISTIC,
    .state_size = sizeof(struct cpu_blas),
    .supports = cpu_blas_supports,
    .create = cpu_blas_create,
    .sizes = cpu_blas_sizes,
    .prepare = cpu_blas_prepare,
    .forward = cpu_blas_forward,
    .backward = cpu_blas_backward,
    .gradients = cpu_blas_gradients,
    .chosen = cpu_blas_chosen,
    .destroy = cpu_blas_destroy,
};
