/* The first and the last step of a case: brings everything in place for calls, and releases it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "case/context.h"
#include "device/device.h"
#include "device/weight_packing.h"
#include "host/cpu_affinity.h"
#include "measure/case_lower_bound.h"
#include "reference/loss_scale.h"
#include "reference/rounded_lstm.h"

/* Notes how much memory the implementation allocated itself on the host, where that is plenty. What
 * the harness uses may be resident for the first time since prepare began: its tensors, buffers and
 * results, and a copy of inputs and gradients. */
static void note_host_peak(struct lb_case_context *context)
{
    static const double unnoticed = 4 << 20;
    if (context->resident_prepared == 0)
        return;
    double results = (double)lb_tensors_bytes(&context->tensors) +
                     (double)context->results.weight_count * sizeof(double);
    double since = lb_peak_resident_bytes() - context->resident_prepared;
    double own = context->create_bytes + fmax(0, since - context->own_bytes - 3 * results);
    if (own > unnoticed)
        context->used_bytes = fmax(context->used_bytes, context->own_bytes + own);
    context->row->peak_bytes = fmax(context->own_bytes, context->used_bytes);
}

void lb_case_note_peak(struct lb_case_context *context)
{
    if (!context->on_device) {
        if (!context->together || !context->ready) /* the others have allocated theirs since */
            note_host_peak(context);
        return;
    }
    double used = context->available_before - context->space->available();
    if (context->update.io.weights.w_ih) /* an optimizer's tensors, which no call reads */
        used -= lb_case_update_bytes(&context->c->problem);
    context->used_bytes = fmax(context->used_bytes, used);
    context->row->peak_bytes = fmax(context->own_bytes, context->used_bytes);
}

/* Takes what stayed in use after the case was closed off its peak. Only the first case that needs
 * such handles would count them. */
static void leave_out_retained(struct lb_case_context *context)
{
    if (context->used_bytes == 0 || (context->on_device && lb_device()->lost()))
        return;
    double retained = context->on_device ? context->available_before - context->space->available()
                                         : lb_resident_bytes(getpid()) - context->resident_before;
    context->row->peak_bytes = fmax(context->own_bytes, context->used_bytes - fmax(retained, 0));
}

/* Bytes of what the implementation asked for. */
static double buffer_bytes(const struct lb_case_context *context)
{
    const struct lb_sizes *s = &context->sizes;
    return (double)s->weights + (double)s->gradients + (double)s->reserve + (double)s->workspace;
}

enum lb_status lb_case_open(struct lb_case_context *context, struct lb_error *err)
{
    const struct lb_impl *impl = context->impl;
    const struct lb_sizes *s = &context->sizes;
    const struct lb_problem *problem = &context->plan.problem;
    context->available_before = context->space->available();
    if (!context->on_device || context->together)
        lb_pin(context->plan.config.threads, context->instance, context->cpus,
               sizeof(context->cpus));
    if (context->together && strncmp(context->cpus, "any", 3) == 0)
        return lb_fail(err, LB_UNSUPPORTED,
                       "instance %d has no CPU of its own: this process may use too few",
                       context->instance + 1);
    context->self = calloc(1, impl->state_size);
    if (!context->self)
        return lb_fail(err, LB_OOM, "allocating %zu bytes of state failed", impl->state_size);
    lb_restart_peak();
    context->resident_before = lb_resident_bytes(getpid());
    lb_case_phase(context, "create");
    double start = lb_now_ns();
    LB_CHECK(impl->create(context->self, problem, &context->plan.config, err));
    context->row->prepare_ns = lb_now_ns() - start;
    lb_case_phase(context, "sizes");
    start = lb_now_ns();
    LB_CHECK(impl->sizes(context->self, &context->sizes, err));
    context->row->prepare_ns += lb_now_ns() - start;
    context->create_bytes = fmax(0, lb_peak_resident_bytes() - context->resident_before);

    context->row->weights_bytes = (double)s->weights;
    context->row->gradients_bytes = (double)s->gradients;
    context->row->reserve_bytes = (double)s->reserve;
    context->row->workspace_bytes = (double)s->workspace;
    return lb_check_memory(context->plan.space_bytes + buffer_bytes(context),
                           context->space->available(), context->space->name, err);
}

void lb_case_set_arguments(struct lb_case_context *context)
{
    for (int i = 0; i < LB_TIMED_SETS; i++) {
        context->forward[i] = lb_forward_io(context->tensors.at[i]);
        context->backward[i] = lb_backward_io(context->tensors.at[i]);
    }
}

static enum lb_status allocate_buffers(struct lb_case_context *context, struct lb_error *err)
{
    const struct lb_space *space = context->space;
    struct lb_row *row = context->row;
    LB_CHECK(space->allocate(context->sizes.weights, &context->buffers.weights, err));
    LB_CHECK(space->allocate(context->sizes.gradients, &context->buffers.gradients, err));
    LB_CHECK(space->allocate(context->sizes.reserve, &context->buffers.reserve, err));
    LB_CHECK(space->allocate(context->sizes.workspace, &context->buffers.workspace, err));
    LB_CHECK(lb_tensors_create(&context->plan.problem, space, &context->tensors, err));
    LB_CHECK(lb_results_create(&context->plan.problem, &context->results, err));
    context->bits = lb_needed(
        calloc((size_t)LB_TIMED_SETS * (size_t)context->plan.chunks, sizeof(*context->bits)));
    if (lb_case_streams(context)) {
        lb_tensors_carry_state(&context->tensors);
        for (int i = 0; i < LB_INPUT_SETS; i++)
            LB_CHECK(lb_results_create(&context->plan.whole, &context->whole[i], err));
    }
    lb_case_set_arguments(context);
    context->own_bytes = (double)lb_tensors_bytes(&context->tensors) + buffer_bytes(context);
    row->peak_bytes = context->own_bytes;
    row->input_sets = LB_TIMED_SETS;
    row->working_set_bytes = row->peak_bytes;
    row->call_bytes = row->peak_bytes - (double)lb_tensors_input_bytes(&context->tensors);
    LB_CHECK(
        lb_timer_create(context->impl->memory, context->c->cache == LB_COLD, &context->timer, err));
    context->timer.never_hold = context->options->kernels || context->options->profile;
    context->timer.until_seen = lb_case_streams(context);
    lb_case_note_peak(context);
    return LB_OK;
}

enum lb_status lb_case_upload_inputs(struct lb_case_context *context, struct lb_error *err)
{
    for (int i = 0; i < LB_TIMED_SETS; i++)
        LB_CHECK(lb_tensors_upload(&context->tensors, i, &context->inputs[context->held[i]], err));
    return LB_OK;
}

enum lb_status lb_case_scale_inputs(struct lb_case_context *context, double scale,
                                    struct lb_error *err)
{
    context->loss_scale = scale;
    for (int i = 0; i < LB_INPUT_SETS; i++) {
        free(context->scaled[i]);
        context->inputs[i] = *lb_reference_inputs(context->reference, i);
        LB_CHECK(lb_loss_scale(&context->plan.problem, scale, &context->inputs[i],
                               &context->scaled[i], err));
    }
    return lb_case_upload_inputs(context, err);
}

bool lb_case_has_dynamic_scale(const struct lb_case_context *context)
{
    return context->options->dynamic_loss_scale && context->plan.has_backward &&
           context->c->problem.dtype == LB_F16;
}

bool lb_case_updates(const struct lb_case_context *context)
{
    return context->plan.calls_updates && !context->options->kernels && !context->options->profile;
}

/* Calls the implementation's prepare with a copy of the weights. Where it has update, the copy is
 * NaN and update gets the weights: what update does not convert, or converts to the wrong place,
 * makes the results of all later calls wrong. Afterwards the copy, or what update read, is NaN: an
 * implementation that converts weights in a later call, which prepare_ns does not include, computes
 * NaN. The copy stays allocated until the case is closed. */
static enum lb_status convert_weights(struct lb_case_context *context, struct lb_error *err)
{
    const struct lb_problem *p = &context->c->problem;
    const struct lb_weights *weights = &context->inputs[0].weights;
    const size_t layer_dirs = lb_layer_dir_count(p), bytes = lb_packed_bytes(p, p->dtype);
    const bool updates = lb_case_updates(context);
    struct lb_case_update *update = &context->update;
    enum lb_status st = LB_OK;
    void **table = lb_needed(calloc(LB_WEIGHT_COUNT * layer_dirs, sizeof(*table)));
    context->weights_copy = malloc(bytes);
    if (!context->weights_copy)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory for a copy of the weights"));
    if (updates) {
        lb_poison(context->weights_copy, bytes);
        LB_TRY(lb_case_update_open(p, context->space, weights, update, err));
    } else {
        memcpy(context->weights_copy, weights->w_ih[0], bytes);
    }
    lb_packed_table(p, p->dtype, context->weights_copy, table);
    const struct lb_weights copy = lb_weights_of(table, layer_dirs);
    double start = lb_now_ns();
    LB_TRY(context->impl->prepare(context->self, &context->buffers, &copy, err));
    if (updates)
        LB_TRY(context->impl->update(context->self, &update->io, err));
    LB_TRY(context->space->synchronize(err));
    context->row->prepare_ns += lb_now_ns() - start;
    if (updates)
        LB_TRY(context->space->poison(update->weights, update->bytes, err));
    else if (memcmp(context->weights_copy, weights->w_ih[0], bytes) != 0)
        st = lb_case_wrong(context, "it wrote to the canonical weights, which it may only read");
    else
        lb_poison(context->weights_copy, bytes);
done:
    free(table);
    return st;
}

/* lb_while_unpinned: the lower bound of ragged rows. create may have bound this thread to one CPU,
 * and the machine consists of those that it may use. */
static void find_lower_bound(void *user)
{
    const struct lb_case_context *context = user;
    lb_case_lower_bound(context->impl->memory, context->row, context->buffers.lengths);
}

enum lb_status lb_case_prepare(struct lb_case_context *context, struct lb_error *err)
{
    const struct lb_run_options *options = context->options;
    const struct lb_problem *problem = &context->plan.whole;
    double start = lb_now_ns();
    lb_case_phase(context, "oracle");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_ORACLE);
    size_t carried_every = lb_case_streams(context) ? (size_t)context->c->problem.seq_len : 0;
    LB_CHECK(lb_reference_open(options->cache, problem, carried_every, options->seed,
                               !options->kernels /* a trace needs inputs alone */,
                               &context->reference, err));
    context->row->verify_ns = lb_now_ns() - start;

    lb_case_phase(context, "upload");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_PREPARE);
    LB_CHECK(allocate_buffers(context, err));
    for (int i = 0; i < LB_TIMED_SETS; i++)
        context->held[i] = i;
    bool scaled = !options->dynamic_loss_scale || lb_case_has_dynamic_scale(context);
    LB_CHECK(lb_case_scale_inputs(context, scaled ? options->loss_scale : 1, err));
    context->buffers.lengths = context->inputs[0].lengths;
    context->buffers.x_max = context->inputs[0].x_max;
    if (context->buffers.lengths)
        lb_while_unpinned(find_lower_bound, context);

    lb_restart_peak();
    context->resident_prepared = lb_resident_bytes(getpid());
    lb_case_phase(context, "prepare");
    LB_CHECK(convert_weights(context, err));
    if (context->impl->describe) {
        const char *description = context->impl->describe(context->self);
        lb_row_print(&context->row->description, "%s%s%s", description ? description : "",
                     context->cpus[0] ? ", on " : "", context->cpus);
    }
    if (context->impl->traits & LB_ROUNDS_OPERATIONS && lb_rounds_by_operation(problem))
        lb_row_append(&context->row->description, "%sverified as rounding each operation to %s",
                      context->row->description[0] ? ", " : "", lb_dtype_name(problem->dtype));
    return LB_OK;
}

void lb_case_close(struct lb_case_context *context)
{
    const struct lb_space *space = context->space;
    lb_case_phase(context, "destroy");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_TEARDOWN);
    if (context->self) {
        context->impl->destroy(context->self);
        free(context->self);
    }
    lb_case_phase(context, "release");
    lb_unpin();
    lb_timer_destroy(&context->timer);
    lb_case_update_close(&context->update);
    lb_tensors_destroy(&context->tensors);
    lb_results_destroy(&context->results);
    for (int i = 0; i < LB_INPUT_SETS; i++)
        lb_results_destroy(&context->whole[i]);
    free(context->bits);
    space->release(context->buffers.workspace);
    space->release(context->buffers.reserve);
    space->release(context->buffers.gradients);
    space->release(context->buffers.weights);
    for (int i = 0; i < LB_INPUT_SETS; i++)
        free(context->scaled[i]);
    free(context->first_gradients);
    free(context->weights_copy);
    lb_reference_close(context->reference);
    lb_nvtx_end(&context->nvtx);
    leave_out_retained(context);
}
