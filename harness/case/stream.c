/* Streams: calls of T steps that carry their state. A number of calls are verified as one long
 * sequence; then the stream begins again with the state at its beginning, so that every timed call
 * has a verified call with the same inputs. */
#include <string.h>

#include "base/random.h"
#include "case/context.h"

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
    inputs.at[LB_X] = buffer == context->last_buffer
                          ? (char *)inputs.at[LB_X] + (size_t)context->chunk * bytes
                          : NULL;
    inputs.at[LB_H0] = inputs.at[LB_C0] = NULL;
    return inputs;
}

/* Brings the next call of a stream in place: its steps of x and, at the beginning of the stream, h0
 * and c0. */
static enum lb_status next_chunk(struct lb_case_context *context, struct lb_error *err)
{
    const int buffer = 1 - context->last_buffer;
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
