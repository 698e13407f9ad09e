/* Makes calls of the implementation, on the input buffers that are in order. */
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
    context->last_buffer = (int)(order >> (calls - 1) % 64 & 1);
    context->last_set = context->held[context->last_buffer];
    context->tensors.buffer = context->last_buffer;
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
    return context->impl->backward(context->self, &context->backward[context->last_buffer], err);
}

bool lb_case_checks_gradients(const struct lb_case_context *context)
{
    return lb_has_backward(&context->plan.problem);
}

enum lb_status lb_case_poison(struct lb_case_context *context, struct lb_error *err)
{
    LB_CHECK(lb_tensors_poison(&context->tensors, err));
    return context->space->poison(context->buffers.gradients, context->sizes.gradients, err);
}

enum lb_status lb_case_poison_some(struct lb_case_context *context, struct lb_error *err)
{
    uint64_t *random = &context->checks.state;
    LB_CHECK(lb_tensors_poison_some(&context->tensors, random, err));
    return lb_poison_some(context->space, context->buffers.gradients, context->sizes.gradients,
                          random, err);
}
