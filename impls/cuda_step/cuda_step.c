/* cuda_step: the well-known optimised loop. One input GEMM for all steps, then per step one
 * recurrent GEMM of all gates and one fused pointwise kernel. Layers overlap in a wavefront, and
 * two directions run at the same time. Each weight gradient is one GEMM at the end. */
#include "impls/cuda_step/cuda_step.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cuda/common/cell.h"

enum {
    CHUNKS = 8 /* per sequence in a wavefront: a layer starts when the layer below has finished an
                  eighth */
};

int lb_cuda_step_stream(const struct lb_cuda_step *self, int64_t layer, int64_t direction)
{
    int64_t index = self->net.problem->directions == 2 ? direction : layer;
    return (int)(index % self->net.stream_count);
}

static enum lb_status step_create(void *state, const struct lb_problem *problem,
                                  const struct lb_exec_config *config, struct lb_error *err)
{
    struct lb_cuda_step *self = state;
    const struct lb_problem *p = problem;
    bool wavefront = p->directions == 1 && p->layers > 1;
    int64_t streams = wavefront ? p->layers : p->directions;
    self->net =
        lb_gpu_network_make(p, config, streams < LB_STREAMS_MAX ? (int)streams : LB_STREAMS_MAX);
    self->chunk = wavefront ? (p->seq_len + CHUNKS - 1) / CHUNKS : p->seq_len;
    self->layer_dirs = calloc((size_t)(p->layers * p->directions), sizeof(*self->layer_dirs));
    self->active = calloc((size_t)p->seq_len, sizeof(*self->active));
    if (!self->layer_dirs || !self->active)
        return lb_fail(err, LB_OOM, "out of memory");
    snprintf(self->description, sizeof(self->description),
             "one input GEMM of all steps, then a cuBLAS GEMM and a fused cell per step; "
             "%d stream%s",
             self->net.stream_count, self->net.stream_count == 1 ? "" : "s");
    if (wavefront)
        lb_append(self->description, sizeof(self->description),
                  "; layers in a wavefront, %lld steps apart", (long long)self->chunk);
    return LB_OK;
}

static void carve_forward(struct lb_cuda_step *self, struct lb_gpu_parts *parts)
{
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    bool trains = lb_trains(p);
    struct lb_arena *keep = trains ? &parts->reserve : &parts->workspace;
    int64_t state = p->batch * p->hidden, gate_count = p->batch * 4 * p->hidden;
    for (int64_t l = 0; l < p->layers; l++) {
        struct lb_cuda_step_layer_dir *layer = &self->layer_dirs[l * p->directions];
        void *y = l + 1 < p->layers
                      ? lb_gpu_carve_storage(net, keep, p->seq_len * p->directions * state)
                      : NULL;
        for (int64_t d = 0; d < p->directions; d++) {
            struct lb_cuda_step_layer_dir *e = &layer[d];
            /* In inference, layers that run one after the other on a stream share one buffer. */
            bool shares = !trains && l > 0 && p->directions == 2;
            int64_t steps = !trains && l > 0 ? self->chunk : p->seq_len;
            e->y = y;
            e->gates = shares ? self->layer_dirs[d].gates
                              : lb_gpu_carve_real(net, keep, steps * gate_count);
            e->h = lb_gpu_carve_storage(net, keep, (trains ? p->seq_len + 1 : 2) * state);
            e->c = lb_gpu_carve_real(net, keep, (trains ? p->seq_len + 1 : 1) * state);
        }
    }
}

static void carve_backward(struct lb_cuda_step *self, struct lb_gpu_parts *parts)
{
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    struct lb_arena *scratch = &parts->workspace;
    int64_t state = p->batch * p->hidden, gates = 4 * p->hidden;
    for (int64_t l = 0; l < p->layers; l++) {
        void *dy = l + 1 < p->layers
                       ? lb_gpu_carve_storage(net, scratch, p->seq_len * p->directions * state)
                       : NULL;
        for (int64_t d = 0; d < p->directions; d++) {
            struct lb_cuda_step_layer_dir *e = &self->layer_dirs[l * p->directions + d];
            e->dy = dy;
            e->dgates = lb_gpu_carve_storage(net, scratch, p->seq_len * p->batch * gates);
            e->dh = lb_gpu_carve_real(net, scratch, state);
            e->dc = lb_gpu_carve_real(net, scratch, state);
            e->sums = lb_gpu_carve_real(net, scratch, LB_CELL_PARTS * gates);
        }
    }
}

/* Lays out all buffers (lb_gpu_carve). Returns the scratch of the network. */
static void *carve(void *state, struct lb_gpu_parts *parts)
{
    struct lb_cuda_step *self = state;
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    void *scratch = lb_gpu_network_carve(&self->net, parts);
    for (int64_t i = 0; i < p->layers * p->directions; i++) {
        struct lb_cuda_step_layer_dir *e = &self->layer_dirs[i];
        e->bias = lb_gpu_carve_real(net, &parts->weights, 4 * p->hidden);
        e->weights = lb_gpu_weights_of(net, i);
    }
    carve_forward(self, parts);
    if (lb_has_backward(p))
        carve_backward(self, parts);
    return scratch;
}

static enum lb_status step_sizes(void *state, struct lb_sizes *sizes, struct lb_error *err)
{
    (void)err;
    *sizes = lb_gpu_network_sizes(state, carve);
    return LB_OK;
}

static enum lb_status step_prepare(void *state, const struct lb_buffers *buffers,
                                   const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_cuda_step *self = state;
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    LB_CHECK(lb_gpu_network_prepare(&self->net, self, carve, buffers, weights, err));
    for (int64_t i = 0; i < p->layers * p->directions; i++)
        LB_CHECK(lb_cell_add(p->dtype, self->layer_dirs[i].bias, lb_gpu_weight(net, i, LB_B_IH),
                             lb_gpu_weight(net, i, LB_B_HH), 4 * p->hidden, net->stream, err));
    for (int64_t t = 0, n = p->batch; t < p->seq_len; t++) {
        while (p->ragged && n > 0 && buffers->lengths[n - 1] <= t)
            n--;
        self->active[t] = n;
    }
    return LB_OK;
}

static enum lb_status step_gradients(void *state, const struct lb_gradients *gradients,
                                     struct lb_error *err)
{
    const struct lb_cuda_step *self = state;
    return lb_gpu_network_gradients(&self->net, gradients, err);
}

static const char *step_describe(const void *state)
{
    const struct lb_cuda_step *self = state;
    return self->description;
}

static void step_destroy(void *state)
{
    struct lb_cuda_step *self = state;
    lb_gpu_network_destroy(&self->net);
    free(self->active);
    free(self->layer_dirs);
}

const struct lb_impl lb_impl_cuda_step = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "cuda_step",
    .summary = "cuBLAS: one input GEMM, then one recurrent GEMM and one fused cell per step",
    .memory = LB_DEVICE,
    .traits = LB_DETERMINISTIC | LB_CAPTURABLE | LB_PLANS_ALONE,
    .state_size = sizeof(struct lb_cuda_step),
    .supports = lb_gpu_network_supports,
    .create = step_create,
    .sizes = step_sizes,
    .prepare = step_prepare,
    .forward = lb_cuda_step_forward,
    .backward = lb_cuda_step_backward,
    .gradients = step_gradients,
    .describe = step_describe,
    .destroy = step_destroy,
};
