/* cuda_step: the well-known optimised loop. One input product for all steps, one recurrent product
 * a step for all gates, one fused pointwise kernel a step; layers overlap in a wavefront,
 * directions side by side; weight gradients are one product at the end. */
#include "cuda_step.h"

#include <stdio.h>
#include <stdlib.h>

#include "cell.h"
#include "device.h"
#include "packing.h"

enum { CHUNKS = 8 /* pieces of the wavefront: a layer starts when the one below did an eighth */ };

int lb_step_lane(const struct lb_cuda_step *self, int64_t layer, int64_t direction)
{
    int64_t index = self->problem->directions == 2 ? direction : layer;
    return (int)(index % lb_lanes_count(self->lanes));
}

size_t lb_step_storage(const struct lb_cuda_step *self, int64_t count)
{
    return (size_t)count * lb_dtype_size(self->problem->dtype);
}

size_t lb_step_real(const struct lb_cuda_step *self, int64_t count)
{
    return (size_t)count * lb_dtype_size(self->real);
}

static enum lb_status step_supports(const struct lb_problem *problem, const struct lb_place *place,
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

static enum lb_status step_create(void *state, const struct lb_problem *problem,
                                  const struct lb_place *place, struct lb_error *err)
{
    struct lb_cuda_step *self = state;
    const struct lb_problem *p = problem;
    enum lb_status st = LB_OK;
    bool wavefront = p->directions == 1 && p->layers > 1;
    int64_t lanes = wavefront ? p->layers : p->directions;
    self->problem = p;
    self->real = p->dtype == LB_F64 ? LB_F64 : LB_F32;
    self->chunk = wavefront ? (p->seq_len + CHUNKS - 1) / CHUNKS : p->seq_len;
    self->entries = calloc((size_t)(p->layers * p->directions), sizeof(*self->entries));
    self->active = calloc((size_t)p->seq_len, sizeof(*self->active));
    if (!self->entries || !self->active)
        return lb_fail(err, LB_OOM, "out of memory");
    LB_TRY(lb_lanes_create(lanes < LB_LANES_MAX ? (int)lanes : LB_LANES_MAX, place->stream,
                           &self->lanes, err));
    snprintf(self->chosen, sizeof(self->chosen),
             "input product of all steps, then a cuBLAS product and a fused cell a step; "
             "streams %d, layers %lld steps apart",
             lb_lanes_count(self->lanes), wavefront ? (long long)self->chunk : 0LL);
done:
    return st;
}

/* Cuts the weights, gradients, reserve and workspace into the entries' buffers. */
struct step_carvers {
    struct lb_carver weights, gradients, reserve, workspace;
};

static void carve_forward(struct lb_cuda_step *self, struct step_carvers *carvers)
{
    const struct lb_problem *p = self->problem;
    bool trains = lb_trains(p);
    struct lb_carver *keep = trains ? &carvers->reserve : &carvers->workspace;
    int64_t state = p->batch * p->hidden, wide = p->batch * 4 * p->hidden;
    for (int64_t l = 0; l < p->layers; l++) {
        struct lb_step_entry *layer = &self->entries[l * p->directions];
        void *y = l + 1 < p->layers
                      ? lb_carve(keep, lb_step_storage(self, p->seq_len * p->directions * state))
                      : NULL;
        for (int64_t d = 0; d < p->directions; d++) {
            struct lb_step_entry *e = &layer[d];
            /* In inference, what comes later on the same lane takes the same place. */
            bool shares = !trains && l > 0 && p->directions == 2;
            int64_t steps = !trains && l > 0 ? self->chunk : p->seq_len;
            e->y = y;
            e->gates =
                shares ? self->entries[d].gates : lb_carve(keep, lb_step_real(self, steps * wide));
            e->h = lb_carve(keep, lb_step_storage(self, (trains ? p->seq_len + 1 : 2) * state));
            e->c = lb_carve(keep, lb_step_real(self, (trains ? p->seq_len + 1 : 1) * state));
        }
    }
}

static void carve_backward(struct lb_cuda_step *self, struct step_carvers *carvers)
{
    const struct lb_problem *p = self->problem;
    struct lb_carver *scratch = &carvers->workspace;
    int64_t state = p->batch * p->hidden, gates = 4 * p->hidden;
    for (int64_t l = 0; l < p->layers; l++) {
        void *dy =
            l + 1 < p->layers
                ? lb_carve(scratch, lb_step_storage(self, p->seq_len * p->directions * state))
                : NULL;
        for (int64_t d = 0; d < p->directions; d++) {
            struct lb_step_entry *e = &self->entries[l * p->directions + d];
            e->dy = dy;
            e->dgates = lb_carve(scratch, lb_step_storage(self, p->seq_len * p->batch * gates));
            e->dh = lb_carve(scratch, lb_step_real(self, state));
            e->dc = lb_carve(scratch, lb_step_real(self, state));
            e->sums = lb_carve(scratch, lb_step_real(self, LB_CELL_PARTS * gates));
        }
    }
}

/* With NULL bases this only counts. */
static void carve(struct lb_cuda_step *self, struct step_carvers *carvers)
{
    const struct lb_problem *p = self->problem;
    size_t entries = (size_t)(p->layers * p->directions);
    char *weights = lb_carve(&carvers->weights, lb_packed_bytes(p, p->dtype));
    for (size_t i = 0; i < entries; i++) {
        struct lb_step_entry *e = &self->entries[i];
        e->bias = lb_carve(&carvers->weights, lb_step_real(self, 4 * p->hidden));
        if (!weights)
            continue;
        e->w_ih = weights + lb_packed_offset(p, p->dtype, i, LB_W_IH);
        e->w_hh = weights + lb_packed_offset(p, p->dtype, i, LB_W_HH);
    }
    if (p->ragged)
        self->lengths = lb_carve(&carvers->weights, (size_t)p->batch * sizeof(*self->lengths));
    carve_forward(self, carvers);
    if (!lb_has_backward(p))
        return;
    carve_backward(self, carvers);
    self->gradients = lb_carve(&carvers->gradients, lb_packed_bytes(p, p->dtype));
    for (size_t i = 0; self->gradients && i < entries; i++)
        for (int w = 0; w < LB_WEIGHT_COUNT; w++)
            self->entries[i].dweights[w] =
                (char *)self->gradients + lb_packed_offset(p, p->dtype, i, (enum lb_weight)w);
}

/* cuBLAS' scratch comes first in the workspace. */
static void *carve_lanes(struct lb_cuda_step *self, struct step_carvers *carvers)
{
    return lb_carve(&carvers->workspace, (size_t)lb_lanes_count(self->lanes) * lb_lane_scratch());
}

static enum lb_status step_sizes(void *state, struct lb_sizes *sizes, struct lb_error *err)
{
    struct lb_cuda_step *self = state;
    struct step_carvers carvers = {{0}, {0}, {0}, {0}};
    (void)err;
    carve_lanes(self, &carvers);
    carve(self, &carvers);
    *sizes = (struct lb_sizes){
        .weights = carvers.weights.used,
        .gradients = carvers.gradients.used,
        .reserve = carvers.reserve.used,
        .workspace = carvers.workspace.used,
    };
    return LB_OK;
}

static enum lb_status step_prepare(void *state, const struct lb_buffers *buffers,
                                   const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_cuda_step *self = state;
    const struct lb_problem *p = self->problem;
    enum lb_status st = LB_OK;
    struct step_carvers carvers = {.weights = {.base = buffers->weights},
                                   .gradients = {.base = buffers->gradients},
                                   .reserve = {.base = buffers->reserve},
                                   .workspace = {.base = buffers->workspace}};
    LB_TRY(lb_lanes_workspace(self->lanes, carve_lanes(self, &carvers), err));
    carve(self, &carvers);
    LB_TRY(lb_packed_upload(p, &lb_device_space, buffers->weights, weights, err));
    for (int64_t i = 0; i < p->layers * p->directions; i++) {
        const char *base = buffers->weights;
        LB_TRY(lb_cell_add(p->dtype, self->entries[i].bias,
                           base + lb_packed_offset(p, p->dtype, (size_t)i, LB_B_IH),
                           base + lb_packed_offset(p, p->dtype, (size_t)i, LB_B_HH), 4 * p->hidden,
                           lb_lane_stream(self->lanes, 0), err));
    }
    if (p->ragged)
        LB_TRY(lb_device_space.upload(self->lengths, buffers->lengths,
                                      (size_t)p->batch * sizeof(*self->lengths), err));
    for (int64_t t = 0, n = p->batch; t < p->seq_len; t++) {
        while (p->ragged && n > 0 && buffers->lengths[n - 1] <= t)
            n--;
        self->active[t] = n;
    }
done:
    return st;
}

static enum lb_status step_gradients(void *state, const struct lb_gradients *gradients,
                                     struct lb_error *err)
{
    const struct lb_cuda_step *self = state;
    return lb_packed_download(self->problem, &lb_device_space, self->problem->dtype,
                              self->gradients, gradients, err);
}

static const char *step_chosen(const void *state)
{
    const struct lb_cuda_step *self = state;
    return self->chosen;
}

static void step_destroy(void *state)
{
    struct lb_cuda_step *self = state;
    lb_lanes_destroy(self->lanes);
    free(self->active);
    free(self->entries);
}

const struct lb_impl lb_impl_cuda_step = {
    .abi = LB_IMPL_ABI,
    .name = "cuda_step",
    .summary = "cuBLAS: one input product, one recurrent product and one fused cell a step",
    .memory = LB_DEVICE,
    .traits = LB_DETERMINISTIC | LB_CAPTURABLE,
    .state_size = sizeof(struct lb_cuda_step),
    .supports = step_supports,
    .create = step_create,
    .sizes = step_sizes,
    .prepare = step_prepare,
    .forward = lb_step_forward,
    .backward = lb_step_backward,
    .gradients = step_gradients,
    .chosen = step_chosen,
    .destroy = step_destroy,
};
