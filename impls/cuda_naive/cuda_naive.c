/* cuda_naive: what a framework's generic cell does on a GPU. Per step and gate it runs one GEMM of
 * the input and one of h, then one kernel per addition, bias, activation and multiplication.
 * Nothing is hoisted out of the loop and nothing is fused. */
#include "impls/cuda_naive/cuda_naive.h"

#include <stdlib.h>

#include "cuda/common/cell.h"
#include "device/device.h"

static enum lb_status naive_create(void *state, const struct lb_problem *problem,
                                   const struct lb_exec_config *config, struct lb_error *err)
{
    struct lb_cuda_naive *self = state;
    self->net = lb_gpu_network_make(problem, config, 1);
    self->net.gradients_dtype = self->net.real;
    self->layer_dirs =
        calloc((size_t)(problem->layers * problem->directions), sizeof(*self->layer_dirs));
    return self->layer_dirs ? LB_OK : lb_fail(err, LB_OOM, "out of memory");
}

static void carve_layer_dir(struct lb_cuda_naive *self, struct lb_gpu_parts *parts, int64_t index)
{
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    struct lb_naive_layer_dir *e = &self->layer_dirs[index];
    int64_t state = p->batch * p->hidden, h_state = p->batch * lb_h_size(p);
    bool trains = lb_trains(p);
    struct lb_arena *keep = trains ? &parts->reserve : &parts->workspace;
    int64_t slots = trains ? p->seq_len : 1, states = trains ? p->seq_len + 1 : 2;
    bool top = index / p->directions + 1 == p->layers, first = index % p->directions == 0;
    e->weights = lb_gpu_weights_of(net, index);
    e->b_ih = lb_gpu_carve_real(net, &parts->weights, 4 * p->hidden);
    e->b_hh = lb_gpu_carve_real(net, &parts->weights, 4 * p->hidden);
    e->gates = lb_gpu_carve_real(net, keep, slots * 4 * state);
    e->inner = lb_gpu_carve_real(net, keep, slots * state);
    e->c = lb_gpu_carve_real(net, keep, states * state);
    e->h = lb_gpu_carve_storage(net, keep, states * h_state);
    if (p->cell == LB_CELL_PEEPHOLE || p->cell == LB_CELL_LAYERNORM)
        e->vectors = lb_gpu_carve_real(net, &parts->weights, (int64_t)lb_cell_weight_count(p));
    if (p->cell == LB_CELL_PROJECTION)
        e->unprojected = lb_gpu_carve_storage(net, keep, slots * state);
    if (p->cell == LB_CELL_LAYERNORM) {
        e->normalised = lb_gpu_carve_real(net, keep, slots * 5 * state);
        e->factors = lb_gpu_carve_real(net, keep, slots * 5 * p->batch);
    }
    if (top)
        return;
    int64_t layer_count = p->seq_len * p->directions * h_state;
    e->y = first ? lb_gpu_carve_storage(net, keep, layer_count) : self->layer_dirs[index - 1].y;
    if (lb_has_backward(p))
        e->dy = first ? lb_gpu_carve_storage(net, &parts->workspace, layer_count)
                      : self->layer_dirs[index - 1].dy;
}

static void carve_scratch(struct lb_cuda_naive *self, struct lb_arena *from)
{
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    struct lb_naive_scratch *s = &self->scratch;
    int64_t state = p->batch * p->hidden;
    int64_t y_width = p->directions * lb_h_size(p);
    int64_t widest = p->layers > 1 && y_width > p->input ? y_width : p->input;
    s->first = lb_gpu_carve_real(net, from, state);
    s->second = lb_gpu_carve_real(net, from, state);
    s->stored = lb_gpu_carve_storage(net, from, state);
    if (p->cell == LB_CELL_RECURRENT_DROPOUT) {
        s->mask = lb_gpu_carve_real(net, from, state);
        s->masked = lb_gpu_carve_storage(net, from, state);
    }
    if (p->cell == LB_CELL_LAYERNORM) {
        s->mean = lb_gpu_carve_real(net, from, p->batch);
        s->along = lb_gpu_carve_real(net, from, p->batch);
    }
    if (!lb_has_backward(p))
        return;
    if (p->cell == LB_CELL_PROJECTION)
        s->dh_stored = lb_gpu_carve_storage(net, from, state);
    if (p->cell == LB_CELL_RESIDUAL)
        s->wide = lb_gpu_carve_storage(net, from, p->batch * y_width);
    for (int k = 0; k < 4; k++)
        s->da[k] = lb_gpu_carve_real(net, from, state);
    s->da_stored = lb_gpu_carve_storage(net, from, state);
    s->dh = lb_gpu_carve_real(net, from, state);
    s->dh_next = lb_gpu_carve_real(net, from, state);
    s->dc = lb_gpu_carve_real(net, from, state);
    s->dc_next = lb_gpu_carve_real(net, from, state);
    s->dx = lb_gpu_carve_real(net, from, p->batch * widest);
    s->dx_other = lb_gpu_carve_real(net, from, p->batch * widest);
}

/* lb_gpu_carve */
static void *carve(void *state, struct lb_gpu_parts *parts)
{
    struct lb_cuda_naive *self = state;
    const struct lb_problem *p = self->net.problem;
    void *scratch = lb_gpu_network_carve(&self->net, parts);
    if (p->cell == LB_CELL_LAYERNORM)
        self->averages = lb_gpu_carve_real(&self->net, &parts->weights, p->hidden);
    for (int64_t i = 0; i < p->layers * p->directions; i++)
        carve_layer_dir(self, parts, i);
    carve_scratch(self, &parts->workspace);
    return scratch;
}

static enum lb_status naive_sizes(void *state, struct lb_sizes *sizes, struct lb_error *err)
{
    (void)err;
    *sizes = lb_gpu_network_sizes(state, carve);
    return LB_OK;
}

/* Sets the vector of numbers 1/H. */
static enum lb_status upload_averages(const struct lb_cuda_naive *self, struct lb_error *err)
{
    const struct lb_gpu_network *net = &self->net;
    size_t H = (size_t)net->problem->hidden, size = lb_dtype_size(net->real);
    double average = 1 / (double)H;
    char *values = malloc(H * size);
    if (!values)
        return lb_fail(err, LB_OOM, "out of memory");
    for (size_t j = 0; j < H; j++)
        lb_store(net->real, values + j * size, &average, 1);
    enum lb_status st = lb_device_space.upload(self->averages, values, H * size, err);
    free(values);
    return st;
}

static enum lb_status naive_prepare(void *state, const struct lb_buffers *buffers,
                                    const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_cuda_naive *self = state;
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    LB_CHECK(lb_gpu_network_prepare(&self->net, self, carve, buffers, weights, err));
    for (int64_t i = 0; i < p->layers * p->directions; i++) {
        const struct lb_naive_layer_dir *e = &self->layer_dirs[i];
        LB_CHECK(lb_cell_convert_to_sums(p->dtype, e->b_ih, lb_gpu_weight(net, i, LB_B_IH),
                                         4 * p->hidden, net->stream, err));
        LB_CHECK(lb_cell_convert_to_sums(p->dtype, e->b_hh, lb_gpu_weight(net, i, LB_B_HH),
                                         4 * p->hidden, net->stream, err));
        if (e->vectors)
            LB_CHECK(lb_cell_convert_to_sums(p->dtype, e->vectors, e->weights.w_cell,
                                             (int64_t)lb_cell_weight_count(p), net->stream, err));
    }
    if (self->averages)
        LB_CHECK(upload_averages(self, err));
    return LB_OK;
}

static enum lb_status naive_gradients(void *state, const struct lb_gradients *gradients,
                                      struct lb_error *err)
{
    const struct lb_cuda_naive *self = state;
    return lb_gpu_network_gradients(&self->net, gradients, err);
}

static const char *naive_describe(const void *state)
{
    static const char *const texts[LB_CELL_COUNT] = {
        [LB_CELL_STANDARD] =
            "8 cuBLAS GEMMs and 23 pointwise kernels per step, nothing hoisted, nothing fused",
        [LB_CELL_LAYERNORM] = "18 GEMMs and 53 pointwise kernels per step, nothing fused: a layer "
                              "normalisation takes 2 GEMMs and 6 kernels",
        [LB_CELL_RECURRENT_DROPOUT] =
            "8 cuBLAS GEMMs and 26 pointwise kernels per step, of which 3 "
            "apply the mask; nothing fused",
        [LB_CELL_PROJECTION] = "9 cuBLAS GEMMs, of which one is the projection, and 24 pointwise "
                               "kernels per step, nothing fused",
        [LB_CELL_PEEPHOLE] = "8 cuBLAS GEMMs and 29 pointwise kernels per step, of which 6 are of "
                             "the peepholes; nothing fused",
        [LB_CELL_RESIDUAL] =
            "8 cuBLAS GEMMs and 23 pointwise kernels per step, and 5 more from the "
            "second layer on, which add the input; nothing fused",
    };
    return texts[((const struct lb_cuda_naive *)state)->net.problem->cell];
}

static void naive_destroy(void *state)
{
    struct lb_cuda_naive *self = state;
    lb_gpu_network_destroy(&self->net);
    free(self->layer_dirs);
}

const struct lb_impl lb_impl_cuda_naive = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "cuda_naive",
    .summary = "a framework's generic cell: cuBLAS GEMMs per gate, one kernel per operation",
    .memory = LB_DEVICE,
    .traits = LB_DETERMINISTIC | LB_CAPTURABLE | LB_PLANS_ALONE,
    .state_size = sizeof(struct lb_cuda_naive),
    .supports = lb_gpu_network_supports,
    .create = naive_create,
    .sizes = naive_sizes,
    .prepare = naive_prepare,
    .forward = lb_naive_forward,
    .backward = lb_naive_backward,
    .gradients = naive_gradients,
    .describe = naive_describe,
    .destroy = naive_destroy,
    .cells = 1u << LB_CELL_LAYERNORM | 1u << LB_CELL_RECURRENT_DROPOUT | 1u << LB_CELL_PROJECTION |
             1u << LB_CELL_PEEPHOLE | 1u << LB_CELL_RESIDUAL,
};
