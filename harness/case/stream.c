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

struct lb_inputs lb_case_chunk_inputs(const struct lb_case_context *context)
{
    struct lb_inputs inputs = context->inputs[context->held[0]];
    inputs.at[LB_X] =
        (char *)inputs.at[LB_X] + (size_t)context->chunk * context->tensors.bytes[LB_X];
    if (context->chunk > 0)
        inputs.at[LB_H0] = inputs.at[LB_C0] = NULL;
    return inputs;
}

enum lb_status lb_case_next_chunk(struct lb_case_context *context, struct lb_error *err)
{
    const int buffer = 1 - context->last_buffer;
    if (context->chunk + 1 == context->plan.chunks)
        lb_case_begin_stream(context, (int)(lb_random_next(&context->checks.state) >> 20 & 1));
    context->chunk++;
    lb_case_set_order(context, buffer == 0 ? 0 : UINT64_MAX, 1);
    const struct lb_inputs inputs = lb_case_chunk_inputs(context);
    return lb_tensors_upload(&context->tensors, buffer, &inputs, err);
}

const struct lb_results *lb_case_whole_results(struct lb_case_context *context)
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
