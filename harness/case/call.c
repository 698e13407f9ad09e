/* Makes calls of the implementation, on the input buffers that are in order. */
#include <string.h>

#include "base/random.h"
#include "case/context.h"

enum lb_status lb_case_call(void *user, struct lb_error *err)
{
    struct lb_case_context *context = user;
    uint64_t buffer = context->order & 1;
    context->order = context->order >> 1 | context->order << 63;
    if (context->c->problem.pass != LB_BACKWARD)
        LB_CHECK(context->impl->forward(context->self, &context->forward[buffer], err));
    if (context->plan.has_backward)
        LB_CHECK(context->impl->backward(context->self, &context->backward[buffer], err));
    return LB_OK;
}

enum lb_status lb_case_call_update(void *user, struct lb_error *err)
{
    struct lb_case_context *context = user;
    return context->impl->update(context->self, &context->update.io, err);
}

void lb_case_set_order(struct lb_case_context *context, uint64_t order, int calls)
{
    context->order = context->timer.order = order;
    context->tensors.buffer = (int)(order >> (calls - 1) % 64 & 1);
    context->last_set = context->held[context->tensors.buffer];
    context->calls_made += (size_t)calls;
    context->followed = false;
}

enum lb_status lb_case_call_before(struct lb_case_context *context, bool checked,
                                   struct lb_error *err)
{
    const int buffer = (int)(context->order & 1);
    const struct lb_tensors *tensors = &context->tensors;
    const struct lb_inputs *inputs = &context->inputs[context->held[buffer]];
    if (context->c->problem.pass != LB_BACKWARD)
        return LB_OK;
    for (int t = LB_DY; checked && t <= LB_DCN; t++)
        LB_CHECK(context->space->poison(tensors->at[buffer][t], tensors->bytes[t], err));
    LB_CHECK(context->impl->forward(context->self, &context->forward[buffer], err));
    if (checked)
        LB_CHECK(context->space->synchronize(err));
    for (int t = LB_DY; checked && t <= LB_DCN; t++)
        LB_CHECK(
            context->space->upload(tensors->at[buffer][t], inputs->at[t], tensors->bytes[t], err));
    return LB_OK;
}

enum lb_status lb_case_call_after(struct lb_case_context *context, struct lb_error *err)
{
    if (context->c->problem.pass != LB_FORWARD || context->followed)
        return LB_OK;
    context->followed = true;
    return context->impl->backward(context->self, &context->backward[context->tensors.buffer], err);
}

enum lb_status lb_case_poison(struct lb_case_context *context, struct lb_error *err)
{
    const struct lb_tensors *tensors = &context->tensors;
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++)
        LB_CHECK(context->space->poison(tensors->at[tensors->buffer][t], tensors->bytes[t], err));
    return context->space->poison(context->buffers.gradients, context->sizes.gradients, err);
}

enum lb_status lb_case_poison_some(struct lb_case_context *context, struct lb_error *err)
{
    uint64_t *random = &context->checks.state;
    const struct lb_tensors *tensors = &context->tensors;
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++)
        LB_CHECK(lb_poison_some(context->space, tensors->at[tensors->buffer][t], tensors->bytes[t],
                                random, err));
    return lb_poison_some(context->space, context->buffers.gradients, context->sizes.gradients,
                          random, err);
}

/* ---- Streams: calls of T steps that carry their state. A number of calls are verified as one long
 * sequence; then the stream begins again with the state at its beginning, so that every timed call
 * has a verified call with the same inputs. ---- */

bool lb_case_streams(const struct lb_case_context *context)
{
    return context->c->timing == LB_STREAMING;
}

void lb_case_begin_stream(struct lb_case_context *context, int set)
{
    context->chunk = -1;
    for (int i = 0; i < LB_TIMED_SETS; i++)
        context->held[i] = set;
}

struct lb_inputs lb_case_held_inputs(const struct lb_case_context *context, int buffer)
{
    struct lb_inputs inputs = context->inputs[context->held[buffer]];
    if (!lb_case_streams(context))
        return inputs;
    const size_t bytes = context->tensors.bytes[LB_X];
    inputs.at[LB_X] = buffer == context->tensors.buffer
                          ? (char *)inputs.at[LB_X] + (size_t)context->chunk * bytes
                          : NULL;
    inputs.at[LB_H0] = inputs.at[LB_C0] = NULL;
    return inputs;
}

/* Brings the next call of a stream in place: its steps of x and, at the beginning of the stream, h0
 * and c0. */
static enum lb_status next_chunk(struct lb_case_context *context, struct lb_error *err)
{
    const int buffer = 1 - context->tensors.buffer;
    if (context->chunk + 1 == context->plan.chunks)
        lb_case_begin_stream(context, (int)(lb_random_next(&context->checks.state) >> 20 & 1));
    context->chunk++;
    lb_case_set_order(context, buffer == 0 ? 0 : UINT64_MAX, 1);
    struct lb_inputs inputs = lb_case_held_inputs(context, buffer);
    for (int t = LB_H0; t <= LB_C0 && context->chunk == 0; t++)
        inputs.at[t] = context->inputs[context->held[buffer]].at[t];
    return lb_tensors_upload(&context->tensors, buffer, &inputs, err);
}

enum lb_status lb_case_next_calls(struct lb_case_context *context, uint64_t order, int calls,
                                  struct lb_error *err)
{
    if (lb_case_streams(context))
        return next_chunk(context, err);
    lb_case_set_order(context, order, calls);
    return LB_OK;
}

const struct lb_results *lb_case_collect_results(struct lb_case_context *context)
{
    struct lb_results *whole = &context->whole[context->last_set];
    const size_t *bytes = context->tensors.bytes;
    if (!lb_case_streams(context))
        return &context->results;
    memcpy((char *)whole->at[LB_Y] + (size_t)context->chunk * bytes[LB_Y],
           context->results.at[LB_Y], bytes[LB_Y]);
    for (int t = LB_HN; t <= LB_CN && context->chunk + 1 == context->plan.chunks; t++)
        memcpy(whole->at[t], context->results.at[t], bytes[t]);
    return whole;
}

struct lb_case_bits *lb_case_verified_bits(const struct lb_case_context *context)
{
    return &context->bits[context->last_set * context->plan.chunks + context->chunk];
}
