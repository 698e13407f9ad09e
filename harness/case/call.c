/* Makes calls of the implementation, on the input buffers that are in order. */
#include "case/context.h"

enum lb_status lb_case_call(void *user, struct lb_error *err)
{
    struct lb_case_context *context = user;
    enum lb_status st = LB_OK;
    uint64_t buffer = context->order & 1;
    context->order = context->order >> 1 | context->order << 63;
    if (context->c->problem.pass != LB_BACKWARD)
        LB_TRY(context->impl->forward(context->self, &context->forward[buffer], err));
    if (context->plan.has_backward)
        LB_TRY(context->impl->backward(context->self, &context->backward[buffer], err));
done:
    return st;
}

enum lb_status lb_case_call_update(void *user, struct lb_error *err)
{
    struct lb_case_context *context = user;
    return context->impl->update(context->self, &context->update.io, err);
}

void lb_case_set_order(struct lb_case_context *context, uint64_t order, int calls)
{
    context->order = context->timer.order = order;
    context->last_set = context->held[order >> (calls - 1) % 64 & 1];
    context->calls_made += (size_t)calls;
}

enum lb_status lb_case_call_before(struct lb_case_context *context, struct lb_error *err)
{
    if (context->c->problem.pass != LB_BACKWARD)
        return LB_OK;
    return context->impl->forward(context->self, &context->forward[context->order & 1], err);
}

enum lb_status lb_case_poison(struct lb_case_context *context, struct lb_error *err)
{
    enum lb_status st = lb_tensors_poison(&context->tensors, err);
    return st == LB_OK
               ? context->space->poison(context->buffers.gradients, context->sizes.gradients, err)
               : st;
}

enum lb_status lb_case_poison_some(struct lb_case_context *context, struct lb_error *err)
{
    uint64_t *random = &context->checks.state;
    enum lb_status st = lb_tensors_poison_some(&context->tensors, random, err);
    return st == LB_OK ? lb_poison_some(context->space, context->buffers.gradients,
                                        context->sizes.gradients, random, err)
                       : st;
}
