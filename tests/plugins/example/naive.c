/* An example of a plug-in: it computes one layer in one direction, for inference in f32, in
 * plain loops. */
#include <math.h>
#include <string.h>

#include <bench-lstm/impl.h>

struct naive {
    struct lb_problem problem;
    const float *weights; /* w_ih [4H, I], w_hh [4H, H], both biases' sum [4H] */
    float *gates;         /* [4H] of one batch row, in the workspace */
};

static enum lb_status naive_supports(const struct lb_problem *problem,
                                     const struct lb_exec_config *config, struct lb_error *why)
{
    if (problem->dtype != LB_F32)
        return lb_fail(why, LB_UNSUPPORTED, "dtype %s: it computes in f32",
                       lb_dtype_name(problem->dtype));
    if (problem->pass != LB_INFER)
        return lb_fail(why, LB_UNSUPPORTED, "pass %s: it can infer only",
                       lb_pass_name(problem->pass));
    if (problem->layers > 1 || problem->directions > 1)
        return lb_fail(why, LB_UNSUPPORTED, "it has one layer and one direction");
    if (problem->ragged || problem->act != LB_ACT_TANH || problem->math != LB_IEEE)
        return lb_fail(why, LB_UNSUPPORTED, "it takes equal lengths, tanh and ieee only");
    if (config->threads > 1)
        return lb_fail(why, LB_UNSUPPORTED, "threads %d: it runs on one thread", config->threads);
    return LB_OK;
}

static enum lb_status naive_create(void *self, const struct lb_problem *problem,
                                   const struct lb_exec_config *config, struct lb_error *err)
{
    struct naive *naive = self;
    (void)config, (void)err;
    naive->problem = *problem;
    return LB_OK;
}

static enum lb_status naive_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    const struct lb_problem *p = &((struct naive *)self)->problem;
    (void)err;
    sizes->weights = 4 * (size_t)p->hidden * (size_t)(p->input + p->hidden + 1) * sizeof(float);
    sizes->workspace = 4 * (size_t)p->hidden * sizeof(float);
    return LB_OK;
}

static enum lb_status naive_prepare(void *self, const struct lb_buffers *buffers,
                                    const struct lb_weights *weights, struct lb_error *err)
{
    struct naive *naive = self;
    size_t I = (size_t)naive->problem.input, H = (size_t)naive->problem.hidden;
    float *packed = buffers->weights;
    const float *b_ih = weights->b_ih[0], *b_hh = weights->b_hh[0];
    (void)err;
    memcpy(packed, weights->w_ih[0], 4 * H * I * sizeof(float));
    memcpy(packed + 4 * H * I, weights->w_hh[0], 4 * H * H * sizeof(float));
    for (size_t k = 0; k < 4 * H; k++)
        packed[4 * H * (I + H) + k] = b_ih[k] + b_hh[k];
    naive->weights = packed;
    naive->gates = buffers->workspace;
    return LB_OK;
}

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* One step of one batch row: x [I] and h_prev [H] to h [H]; c [H] is updated. */
static void step(const struct naive *naive, const float *x, const float *h_prev, float *c, float *h)
{
    size_t I = (size_t)naive->problem.input, H = (size_t)naive->problem.hidden;
    const float *w_ih = naive->weights, *w_hh = w_ih + 4 * H * I, *bias = w_hh + 4 * H * H;
    float *a = naive->gates;
    for (size_t k = 0; k < 4 * H; k++) {
        a[k] = bias[k];
        for (size_t j = 0; j < I; j++)
            a[k] += w_ih[k * I + j] * x[j];
        for (size_t j = 0; j < H; j++)
            a[k] += w_hh[k * H + j] * h_prev[j];
    }
    for (size_t k = 0; k < H; k++) {
        c[k] = sigmoid(a[H + k]) * c[k] + sigmoid(a[k]) * tanhf(a[2 * H + k]);
        h[k] = sigmoid(a[3 * H + k]) * tanhf(c[k]);
    }
}

static enum lb_status naive_forward(void *self, const struct lb_forward_io *io,
                                    struct lb_error *err)
{
    const struct naive *naive = self;
    size_t T = (size_t)naive->problem.seq_len, B = (size_t)naive->problem.batch;
    size_t I = (size_t)naive->problem.input, H = (size_t)naive->problem.hidden;
    const float *x = io->x, *h = io->h0;
    float *y = io->y;
    (void)err;
    memcpy(io->cn, io->c0, B * H * sizeof(float));
    for (size_t t = 0; t < T; t++) {
        for (size_t b = 0; b < B; b++)
            step(naive, x + (t * B + b) * I, h + b * H, (float *)io->cn + b * H,
                 y + (t * B + b) * H);
        h = y + t * B * H;
    }
    memcpy(io->hn, h, B * H * sizeof(float));
    return LB_OK;
}

static void naive_destroy(void *self)
{
    (void)self; /* the harness owns all memory */
}

static const struct lb_impl naive = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "naive",
    .summary = "an example of a plug-in: plain loops",
    .memory = LB_HOST,
    .traits = LB_DETERMINISTIC,
    .state_size = sizeof(struct naive),
    .supports = naive_supports,
    .create = naive_create,
    .sizes = naive_sizes,
    .prepare = naive_prepare,
    .forward = naive_forward,
    .destroy = naive_destroy,
};

const struct lb_impl *lb_plugin(uint32_t abi);

const struct lb_impl *lb_plugin(uint32_t abi)
{
    return abi == LB_IMPL_ABI ? &naive : NULL;
}
