/* fused: the project's own kernels. One GEMM multiplies the inputs of all steps of a layer; one of
 * several families of kernels then runs its recurrence, both directions at the same time.
 * cuda/README.md describes them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cuda/common/cell.h"
#include "device/weight_packing.h"
#include "impls/common/gpu_network.h"
#include "impls/fused/fused.h"

static const char *variant_of(const struct lb_exec_config *config)
{
    return config->variant ? config->variant : lb_fused_variants[0];
}

static enum lb_status fused_supports(const struct lb_problem *problem,
                                     const struct lb_exec_config *config, struct lb_error *why)
{
    struct lb_fused_choice choice;
    return lb_fused_choose(problem, lb_device_known(NULL), variant_of(config), &choice, why);
}

enum lb_dtype lb_fused_real(const struct lb_problem *problem)
{
    return problem->dtype == LB_F64 ? LB_F64 : LB_F32;
}

enum { TEXT_SIZE = sizeof(((struct lb_fused *)0)->description) };

static void describe_plan(struct lb_fused *self, const struct lb_fused_plan *plan)
{
    char tiles[200];
    plan->family->describe(self->problem, plan, tiles, sizeof(tiles));
    lb_append(self->description, TEXT_SIZE, "%s: %s; %s %.2f us per step%s%s", plan->family->name,
              tiles, plan->tuned ? "tuned," : "expected", plan->step_ns / 1e3,
              plan->tuned ? "" : " on ", plan->tuned ? "" : self->choice.machine);
}

static void describe(struct lb_fused *self)
{
    const struct lb_fused_choice *c = &self->choice;
    self->description[0] = '\0';
    describe_plan(self, &c->forward);
    lb_append(self->description, TEXT_SIZE, ", the lowest of %d", c->fitting);
    if (c->others[0] && !c->forward.tuned)
        lb_append(self->description, TEXT_SIZE, " (%s)", c->others);
    if (lb_has_backward(self->problem)) {
        lb_append(self->description, TEXT_SIZE, "; backward ");
        describe_plan(self, &c->backward);
    }
    if (self->chunk < self->problem->seq_len)
        lb_append(self->description, TEXT_SIZE,
                  self->problem->layers > 1
                      ? "; layers in a wavefront, %lld steps apart"
                      : "; GEMMs beside the recurrence, in chunks of %lld steps",
                  (long long)self->chunk);
    if (c->note[0])
        lb_append(self->description, TEXT_SIZE, "; %s", c->note);
}

/* Replaces a pass's predicted plan by a measured one. Where the file of measurements cannot be
 * used, the description says why and the predicted plan stays. */
static enum lb_status use_tuned(struct lb_fused *self, const struct lb_fused_view *view,
                                const char *variant, bool backward, struct lb_error *err)
{
    struct lb_fused_choice *c = &self->choice;
    struct lb_error why;
    enum lb_status st =
        lb_fused_tune(view, variant, backward, backward ? &c->backward : &c->forward, &why);
    if (st == LB_INVALID || st == LB_IO)
        snprintf(c->note, sizeof(c->note), "%.*s", (int)sizeof(c->note) - 1, why.text);
    else if (st != LB_OK && st != LB_ABSENT)
        return lb_fail(err, st, "tuning: %.400s", why.text);
    return LB_OK;
}

/* Readies a pass's plan, or the next best one that the device does not refuse. The first reason for
 * a refusal is noted, or is the error where it refuses all. */
static enum lb_status ready_best(struct lb_fused *self, const struct lb_fused_view *view,
                                 const char *variant, bool backward, struct lb_error *err)
{
    struct lb_fused_choice *c = &self->choice;
    struct lb_fused_plan *plan = backward ? &c->backward : &c->forward;
    struct lb_fused_plan plans[LB_FUSED_FAMILIES_MAX * LB_FUSED_PLANS_MAX];
    const struct lb_fused_family *refused = plan->family;
    struct lb_error ignored;
    enum lb_status st = plan->family->ready(self->problem, plan, err);
    int count = st == LB_UNSUPPORTED ? lb_fused_plans(view, variant, backward, plans, NULL) : 0;
    for (; st == LB_UNSUPPORTED && count > 0; count--) {
        int best = 0;
        for (int i = 1; i < count; i++)
            best = plans[i].step_ns < plans[best].step_ns ? i : best;
        *plan = plans[best];
        plans[best] = plans[count - 1];
        st = plan->family->ready(self->problem, plan, &ignored);
        if (st == LB_OK)
            snprintf(c->note, sizeof(c->note), "%s was refused: %.150s", refused->name, err->text);
        else if (st != LB_UNSUPPORTED)
            *err = ignored;
    }
    return st;
}

/* Works without a device too, for --explain. Where a device is known, only plans that it can run
 * are kept. */
static enum lb_status fused_create(void *state, const struct lb_problem *problem,
                                   const struct lb_exec_config *config, struct lb_error *err)
{
    struct lb_fused *self = state;
    const struct lb_device_info *device = lb_device_known(NULL);
    const char *variant = variant_of(config);
    int passes = lb_has_backward(problem) ? 2 : 1;
    bool present = device && !device->modelled;
    struct lb_fused_view view;
    self->problem = problem;
    self->stream = config->stream;
    LB_CHECK(lb_fused_choose(problem, device, variant, &self->choice, err));
    LB_CHECK(lb_fused_view_make(problem, device, &view, err));
    view.graph = config->graph;
    for (int pass = 0; present && pass < passes; pass++)
        LB_CHECK(use_tuned(self, &view, variant, pass == 1, err));
    for (int pass = 0; present && pass < passes; pass++)
        LB_CHECK(ready_best(self, &view, variant, pass == 1, err));
    self->chunk = lb_fused_chunk(&view, &self->choice);
    self->layers = calloc((size_t)problem->layers, sizeof(*self->layers));
    if (!self->layers)
        return lb_fail(err, LB_OOM, "out of memory");
    for (int64_t i = 0; i < problem->layers; i++)
        self->layers[i].input = lb_layer_input(problem, i);
    describe(self);
    return LB_OK;
}

static size_t scratch_bytes(const struct lb_problem *p, const struct lb_fused_plan *plan)
{
    return plan->family && plan->family->scratch_bytes ? plan->family->scratch_bytes(p, plan) : 0;
}

/* Carves the state that one launch of a layer leaves for the next, and the buffers through which
 * blocks exchange data. */
static void carve_between(struct lb_fused *self, struct lb_gpu_parts *parts,
                          struct lb_fused_layer *l)
{
    const struct lb_problem *p = self->problem;
    size_t states = (size_t)(p->directions * p->batch * p->hidden);
    size_t forward = scratch_bytes(p, &self->choice.forward);
    size_t backward = scratch_bytes(p, &self->choice.backward);
    l->carry = lb_arena_take(&parts->workspace, 2 * states * lb_dtype_size(lb_fused_real(p)));
    l->scratch = lb_arena_take(&parts->workspace, forward > backward ? forward : backward);
}

static void carve_layer(struct lb_fused *self, struct lb_gpu_parts *parts, int64_t i)
{
    const struct lb_problem *p = self->problem;
    struct lb_fused_layer *l = &self->layers[i];
    bool trains = lb_trains(p), top = i + 1 == p->layers, apart = self->chunk < p->seq_len;
    struct lb_arena *keep = trains ? &parts->reserve : &parts->workspace;
    size_t directions = (size_t)p->directions, storage = lb_dtype_size(p->dtype);
    size_t rows = 4 * directions * (size_t)p->hidden, real = lb_dtype_size(lb_fused_real(p));
    size_t cells = (size_t)(p->seq_len * p->batch) * directions * (size_t)p->hidden;
    l->w_ih = lb_arena_take(&parts->weights, rows * (size_t)l->input * storage);
    l->bias = lb_arena_take(&parts->weights, rows * real);
    l->w_hh = lb_arena_take(&parts->weights,
                            directions * lb_fused_weight_bytes(p, &self->choice.forward));
    carve_between(self, parts, l);
    /* In inference, layers that follow each other share one buffer of pre-activations and two of
     * outputs. */
    l->gates =
        trains || apart || i == 0 ? lb_arena_take(keep, 4 * cells * real) : self->layers[0].gates;
    l->cells = trains ? lb_arena_take(keep, cells * real) : NULL;
    if (!top)
        l->y =
            trains || apart || i < 2 ? lb_arena_take(keep, cells * storage) : self->layers[i - 2].y;
    if (!lb_has_backward(p))
        return;
    l->w_hh_t = lb_arena_take(&parts->weights,
                              directions * lb_fused_weight_bytes(p, &self->choice.backward));
    l->dgates = apart || i == 0 ? lb_arena_take(&parts->workspace, 4 * cells * storage)
                                : self->layers[0].dgates;
    l->sums = apart || i == 0 ? lb_arena_take(&parts->workspace, LB_CELL_PARTS * rows * real)
                              : self->layers[0].sums;
    if (!top)
        l->dy = lb_arena_take(&parts->workspace, cells * storage);
    l->dw_ih = lb_arena_take(&parts->gradients, rows * (size_t)l->input * real);
    l->dw_hh = lb_arena_take(&parts->gradients, rows * (size_t)p->hidden * real);
    l->db = lb_arena_take(&parts->gradients, rows * storage);
}

static int stream_count(const struct lb_fused *self)
{
    const struct lb_problem *p = self->problem;
    if (self->chunk == p->seq_len)
        return 1;
    if (p->layers == 1)
        return 2; /* GEMMs and the recurrence */
    return p->layers < LB_STREAMS_MAX ? (int)p->layers : LB_STREAMS_MAX;
}

/* lb_gpu_carve */
static void *carve(void *state, struct lb_gpu_parts *parts)
{
    struct lb_fused *self = state;
    const struct lb_problem *p = self->problem;
    void *scratch =
        lb_arena_take(&parts->workspace, (size_t)stream_count(self) * lb_stream_scratch_bytes());
    self->fault = lb_arena_take(&parts->weights, sizeof(*self->fault));
    if (p->ragged)
        self->device_lengths =
            lb_arena_take(&parts->weights, (size_t)p->batch * sizeof(*self->device_lengths));
    for (int64_t i = 0; i < p->layers; i++)
        carve_layer(self, parts, i);
    return scratch;
}

static enum lb_status fused_sizes(void *state, struct lb_sizes *sizes, struct lb_error *err)
{
    (void)err;
    *sizes = lb_gpu_network_sizes(state, carve);
    return LB_OK;
}

static enum lb_status fused_prepare(void *state, const struct lb_buffers *buffers,
                                    const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_fused *self = state;
    const struct lb_problem *p = self->problem;
    const struct lb_fused_fault none = {0};
    struct lb_fused_view view;
    struct lb_gpu_parts parts = lb_gpu_parts_of(buffers);
    LB_CHECK(self->choice.forward.family->ready(p, &self->choice.forward, err));
    if (lb_has_backward(p))
        LB_CHECK(self->choice.backward.family->ready(p, &self->choice.backward, err));
    void *scratch = carve(self, &parts);
    LB_CHECK(lb_fused_view_make(p, lb_device_known(NULL), &view, err));
    if (lb_fused_chunk(&view, &self->choice) == p->seq_len)
        self->chunk = p->seq_len; /* the device has less room than was expected */
    describe(self);
    LB_CHECK(lb_streams_create(stream_count(self), self->stream, &self->streams, err));
    LB_CHECK(lb_streams_set_workspace(self->streams, scratch, err));
    for (int64_t i = 0; i < p->layers; i++)
        LB_CHECK(lb_fused_upload(self, i, weights, err));
    LB_CHECK(lb_device_space.upload(self->fault, &none, sizeof(none), err));
    self->lengths = buffers->lengths;
    if (p->ragged)
        LB_CHECK(lb_device_space.upload(self->device_lengths, buffers->lengths,
                                        (size_t)p->batch * sizeof(*self->lengths), err));
    return LB_OK;
}

static enum lb_status fused_gradients(void *state, const struct lb_gradients *gradients,
                                      struct lb_error *err)
{
    const struct lb_fused *self = state;
    for (int64_t i = 0; i < self->problem->layers; i++)
        LB_CHECK(lb_fused_download(self, i, gradients, err));
    return LB_OK;
}

static enum lb_status fused_check(const void *state, struct lb_error *err)
{
    const struct lb_fused *self = state;
    struct lb_fused_fault fault;
    LB_CHECK(lb_device_space.download(&fault, self->fault, sizeof(fault), err));
    if (fault.raised)
        return lb_fail(err, LB_FAILED,
                       "at step %d block %d gave up waiting for block %d: not all blocks of the "
                       "launch run at the same time, or one has stopped",
                       fault.step, fault.block, fault.awaited);
    return LB_OK;
}

static const char *fused_describe(const void *state)
{
    const struct lb_fused *self = state;
    return self->description;
}

static void fused_destroy(void *state)
{
    struct lb_fused *self = state;
    lb_streams_destroy(self->streams);
    free(self->layers);
}

const struct lb_impl lb_impl_fused = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "fused",
    .summary = "own kernels: weights stay in registers, or GEMM and cell in one kernel",
    .memory = LB_DEVICE,
    .traits = LB_DETERMINISTIC | LB_CAPTURABLE | LB_PLANS_ALONE,
    .state_size = sizeof(struct lb_fused),
    .variants = lb_fused_variants,
    .supports = fused_supports,
    .create = fused_create,
    .sizes = fused_sizes,
    .prepare = fused_prepare,
    .forward = lb_fused_run_forward,
    .backward = lb_fused_run_backward,
    .gradients = fused_gradients,
    .describe = fused_describe,
    .destroy = fused_destroy,
    .check = fused_check,
    .update = lb_fused_update,
};
