/* cuda_naive: what a framework's generic cell does on a GPU. Each step, for each gate, a product of
 * the input and one of h, then a kernel for every addition, bias, activation and product. Nothing
 * is hoisted out of the loop and nothing is fused. */
#include "cuda_naive.h"

#include <stdlib.h>

#include "cell.h"
#include "device.h"
#include "packing.h"

void *lb_naive_storage(const struct lb_cuda_naive *self, const void *base, int64_t index)
{
    return (char *)base + (size_t)index * lb_dtype_size(self->problem->dtype);
}

void *lb_naive_real(const struct lb_cuda_naive *self, const void *base, int64_t index)
{
    return (char *)base + (size_t)index * lb_dtype_size(self->real);
}

static enum lb_status naive_supports(const struct lb_problem *problem, const struct lb_place *place,
                                     struct lb_error *why)
{
    const struct lb_device_info *device = lb_device_known(NULL);
    (void)problem, (void)place;
    if (device && device->major < 8)
        return lb_fail(why, LB_UNSUPPORTED,
                       "compute capability %d.%d: the kernels are built for 8.0 and later",
                       device->major, device->minor);
    return LB_OK;
}

static enum lb_status naive_create(void *state, const struct lb_problem *problem,
                                   const struct lb_place *place, struct lb_error *err)
{
    struct lb_cuda_naive *self = state;
    self->problem = problem;
    self->stream = place->stream;
    self->real = problem->dtype == LB_F64 ? LB_F64 : LB_F32;
    self->entries = calloc((size_t)(problem->layers * problem->directions), sizeof(*self->entries));
    if (!self->entries)
        return lb_fail(err, LB_OOM, "out of memory");
    return lb_lanes_create(1, place->stream, &self->lanes, err);
}

struct carvers {
    struct lb_carver weights, gradients, reserve, workspace;
};

static void *carve_storage(const struct lb_cuda_naive *self, struct lb_carver *from, int64_t count)
{
    return lb_carve(from, (size_t)count * lb_dtype_size(self->problem->dtype));
}

static void *carve_real(const struct lb_cuda_naive *self, struct lb_carver *from, int64_t count)
{
    return lb_carve(from, (size_t)count * lb_dtype_size(self->real));
}

static void carve_entry(struct lb_cuda_naive *self, struct carvers *carvers, int64_t index)
{
    const struct lb_problem *p = self->problem;
    struct lb_naive_entry *e = &self->entries[index];
    int64_t state = p->batch * p->hidden;
    bool trains = lb_trains(p);
    struct lb_carver *keep = trains ? &carvers->reserve : &carvers->workspace;
    int64_t slots = trains ? p->seq_len : 1, states = trains ? p->seq_len + 1 : 2;
    bool top = index / p->directions + 1 == p->layers, first = index % p->directions == 0;
    e->b_ih = carve_real(self, &carvers->weights, 4 * p->hidden);
    e->b_hh = carve_real(self, &carvers->weights, 4 * p->hidden);
    e->gates = carve_real(self, keep, slots * 4 * state);
    e->inner = carve_real(self, keep, slots * state);
    e->c = carve_real(self, keep, states * state);
    e->h = carve_storage(self, keep, states * state);
    if (top)
        return;
    int64_t wide = p->seq_len * p->directions * state;
    e->y = first ? carve_storage(self, keep, wide) : self->entries[index - 1].y;
    if (lb_has_backward(p))
        e->dy =
            first ? carve_storage(self, &carvers->workspace, wide) : self->entries[index - 1].dy;
}

static void carve_scratch(struct lb_cuda_naive *self, struct lb_carver *from)
{
    const struct lb_problem *p = self->problem;
    struct lb_naive_scratch *s = &self->scratch;
    int64_t state = p->batch * p->hidden;
    int64_t widest = p->layers > 1 && p->directions * p->hidden > p->input
                         ? p->directions * p->hidden
                         : p->input;
    s->first = carve_real(self, from, state);
    s->second = carve_real(self, from, state);
    s->stored = carve_storage(self, from, state);
    if (!lb_has_backward(p))
        return;
    for (int k = 0; k < 4; k++)
        s->da[k] = carve_real(self, from, state);
    s->da_stored = carve_storage(self, from, state);
    s->dh = carve_real(self, from, state);
    s->dh_next = carve_real(self, from, state);
    s->dc = carve_real(self, from, state);
    s->dc_next = carve_real(self, from, state);
    s->dx = carve_real(self, from, p->batch * widest);
    s->dx_other = carve_real(self, from, p->batch * widest);
}

/* With NULL bases this only counts. *scratch is cuBLAS'. */
static void carve(struct lb_cuda_naive *self, struct carvers *carvers, void **scratch)
{
    const struct lb_problem *p = self->problem;
    int64_t entries = p->layers * p->directions;
    *scratch = lb_carve(&carvers->workspace, lb_lane_scratch());
    char *weights = lb_carve(&carvers->weights, lb_packed_bytes(p, p->dtype));
    if (lb_has_backward(p))
        self->gradients = lb_carve(&carvers->gradients, lb_packed_bytes(p, self->real));
    for (int64_t i = 0; i < entries; i++) {
        struct lb_naive_entry *e = &self->entries[i];
        carve_entry(self, carvers, i);
        if (!weights)
            continue;
        e->w_ih = weights + lb_packed_offset(p, p->dtype, (size_t)i, LB_W_IH);
        e->w_hh = weights + lb_packed_offset(p, p->dtype, (size_t)i, LB_W_HH);
        for (int w = 0; self->gradients && w < LB_WEIGHT_COUNT; w++)
            e->dweights[w] = (char *)self->gradients +
                             lb_packed_offset(p, self->real, (size_t)i, (enum lb_weight)w);
    }
    if (p->ragged)
        self->lengths = lb_carve(&carvers->weights, (size_t)p->batch * sizeof(*self->lengths));
    carve_scratch(self, &carvers->workspace);
}

static enum lb_status naive_sizes(void *state, struct lb_sizes *sizes, struct lb_error *err)
{
    struct carvers carvers = {{0}, {0}, {0}, {0}};
    void *scratch;
    (void)err;
    carve(state, &carvers, &scratch);
    *sizes = (struct lb_sizes){
        .weights = carvers.weights.used,
        .gradients = carvers.gradients.used,
        .reserve = carvers.reserve.used,
        .workspace = carvers.workspace.used,
    };
    return LB_OK;
}

static enum lb_status naive_prepare(void *state, const struct lb_buffers *buffers,
                                    const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_cuda_naive *self = state;
    const struct lb_problem *p = self->problem;
    enum lb_status st = LB_OK;
    void *scratch;
    struct carvers carvers = {.weights = {.base = buffers->weights},
                              .gradients = {.base = buffers->gradients},
                              .reserve = {.base = buffers->reserve},
                              .workspace = {.base = buffers->workspace}};
    carve(self, &carvers, &scratch);
    LB_TRY(lb_lanes_workspace(self->lanes, scratch, err));
    LB_TRY(lb_packed_upload(p, &lb_device_space, buffers->weights, weights, err));
    for (int64_t i = 0; i < p->layers * p->directions; i++) {
        const char *base = buffers->weights;
        const struct lb_naive_entry *e = &self->entries[i];
        LB_TRY(lb_cell_widen(p->dtype, e->b_ih,
                             base + lb_packed_offset(p, p->dtype, (size_t)i, LB_B_IH),
                             4 * p->hidden, self->stream, err));
        LB_TRY(lb_cell_widen(p->dtype, e->b_hh,
                             base + lb_packed_offset(p, p->dtype, (size_t)i, LB_B_HH),
                             4 * p->hidden, self->stream, err));
    }
    if (p->ragged)
        LB_TRY(lb_device_space.upload(self->lengths, buffers->lengths,
                                      (size_t)p->batch * sizeof(*self->lengths), err));
done:
    return st;
}

static enum lb_status naive_gradients(void *state, const struct lb_gradients *gradients,
                                      struct lb_error *err)
{
    const struct lb_cuda_naive *self = state;
    return lb_packed_download(self->problem, &lb_device_space, self->real, self->gradients,
                              gradients, err);
}

static const char *naive_chosen(const void *state)
{
    (void)state;
    return "8 cuBLAS products and 23 pointwise kernels a step, nothing hoisted, nothing fused";
}

static void naive_destroy(void *state)
{
    struct lb_cuda_naive *self = state;
    lb_lanes_destroy(self->lanes);
    free(self->entries);
}

const struct lb_impl lb_impl_cuda_naive = {
    .abi = LB_IMPL_ABI,
    .name = "cuda_naive",
    .summary = "a framework's generic cell: cuBLAS products a gate, a kernel an operation",
    .memory = LB_DEVICE,
    .traits = LB_DETERMINISTIC | LB_CAPTURABLE,
    .state_size = sizeof(struct lb_cuda_naive),
    .supports = naive_supports,
    .create = naive_create,
    .sizes = naive_sizes,
    .prepare = naive_prepare,
    .forward = lb_naive_forward,
    .backward = lb_naive_backward,
    .gradients = naive_gradients,
    .chosen = naive_chosen,
    .destroy = naive_destroy,
};
