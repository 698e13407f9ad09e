/* Looks at what a call did: its results, and what it may only read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case/context.h"
#include "device/weight_packing.h"
#include "reference/loss_scale.h"
#include "reference/rounded_lstm.h"

/* Whether something wrote to the copy of the weights that prepare read, which is all ones since. */
static bool wrote_to_weights(const struct lb_case_context *context)
{
    const struct lb_problem *p = &context->c->problem;
    const unsigned char *copy = context->weights_copy;
    size_t bytes = copy ? lb_packed_bytes(p, p->dtype) : 0;
    return bytes > 0 && (copy[0] != 0xff || memcmp(copy, copy + 1, bytes - 1) != 0);
}

/* *changed: whether an input in a buffer is not what was copied into it. */
static enum lb_status compare_input(const struct lb_case_context *context, const void *at,
                                    const void *expected, size_t bytes, bool *changed,
                                    struct lb_error *err)
{
    enum lb_status st = LB_OK;
    void *copy = context->on_device ? malloc(bytes) : NULL;
    if (context->on_device && !copy)
        return lb_fail(err, LB_OOM, "out of memory for a copy of the inputs");
    if (copy)
        st = context->space->download(copy, at, bytes, err);
    *changed = st == LB_OK && memcmp(copy ? copy : at, expected, bytes) != 0;
    free(copy);
    return st;
}

enum lb_status lb_case_check_inputs(struct lb_case_context *context, struct lb_error *err)
{
    const struct lb_tensors *tensors = &context->tensors;
    const char *name = wrote_to_weights(context)                          ? "the canonical weights"
                       : !lb_reference_lengths_intact(context->reference) ? "the lengths"
                                                                          : NULL;
    for (int i = 0; i < LB_TIMED_SETS * LB_Y && !name; i++) {
        const struct lb_inputs inputs = lb_case_held_inputs(context, i / LB_Y);
        const int t = i % LB_Y;
        bool changed = false;
        if (tensors->bytes[t] > 0 && inputs.at[t])
            LB_CHECK(compare_input(context, tensors->at[i / LB_Y][t], inputs.at[t],
                                   tensors->bytes[t], &changed, err));
        name = changed ? lb_tensor_name((enum lb_tensor)t) : NULL;
    }
    if (name)
        return lb_case_wrong(context, "it wrote to %s, which it may only read", name);
    return LB_OK;
}

/* Calls gradients while the inputs are NaN, and on the host the workspace as well, whose contents
 * do not survive a call. Gradients that are computed there, instead of in the timed call, become
 * NaN. */
static enum lb_status fetch_gradients_alone(struct lb_case_context *context, struct lb_error *err)
{
    LB_CHECK(lb_case_check_inputs(context, err)); /* which could not be seen afterwards */
    for (int t = LB_X; t <= LB_DCN; t++)
        for (int buffer = 0; buffer < LB_TIMED_SETS; buffer++)
            LB_CHECK(context->space->poison(context->tensors.at[buffer][t],
                                            context->tensors.bytes[t], err));
    if (!context->on_device)
        LB_CHECK(context->space->poison(context->buffers.workspace, context->sizes.workspace, err));
    lb_case_phase(context, "gradients");
    LB_CHECK(context->impl->gradients(context->self, &context->results.gradients, err));
    lb_case_phase(context, "verify");
    return lb_case_upload_inputs(context, err);
}

enum lb_status lb_case_fetch(struct lb_case_context *context, enum lb_gradient_source source,
                             struct lb_error *err)
{
    const struct lb_problem *p = &context->c->problem;
    LB_CHECK(context->space->synchronize(err));
    if (context->impl->check)
        LB_CHECK(context->impl->check(context->self, err));
    lb_results_poison(&context->results);
    LB_CHECK(lb_tensors_download(&context->tensors, &context->results, err));
    if (source == LB_BY_UPDATE)
        LB_CHECK(lb_packed_download(p, context->space, p->dtype, context->update.gradients,
                                    &context->results.gradients, err));
    else if (lb_trains(&context->c->problem) && source == LB_BY_GRADIENTS_ALONE)
        LB_CHECK(fetch_gradients_alone(context, err));
    else if (lb_trains(&context->c->problem))
        LB_CHECK(context->impl->gradients(context->self, &context->results.gradients, err));
    lb_loss_unscale(&context->plan.problem, context->loss_scale, &context->results);
    lb_case_note_peak(context);
    return LB_OK;
}

enum lb_status lb_case_written_hash(const struct lb_case_context *context, uint64_t *hash,
                                    struct lb_error *err)
{
    const struct lb_tensors *tensors = &context->tensors;
    *hash = 0;
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++)
        if (tensors->bytes[t] > 0)
            LB_CHECK(context->space->hash(tensors->at[tensors->buffer][t], tensors->bytes[t], hash,
                                          err));
    if (context->buffers.gradients)
        LB_CHECK(
            context->space->hash(context->buffers.gradients, context->sizes.gradients, hash, err));
    return LB_OK;
}

/* The last output whose last element is still NaN; LB_TENSOR_COUNT when there is none. */
static enum lb_tensor find_unwritten(const struct lb_case_context *context)
{
    static const unsigned char poison[sizeof(double)] = {0xff, 0xff, 0xff, 0xff,
                                                         0xff, 0xff, 0xff, 0xff};
    const struct lb_tensors *tensors = &context->tensors;
    const size_t size = lb_dtype_size(context->c->problem.dtype);
    for (int t = context->plan.has_backward ? LB_DC0 : LB_CN; t >= LB_Y; t--) {
        const char *at = tensors->at[tensors->buffer][t];
        if (at && memcmp(at + tensors->bytes[t] - size, poison, size) == 0)
            return (enum lb_tensor)t;
    }
    return LB_TENSOR_COUNT;
}

enum lb_status lb_case_check_written(struct lb_case_context *context, bool *unwritten)
{
    enum lb_tensor first = LB_TENSOR_COUNT;
    if (!context->on_device)
        first = find_unwritten(context);
    if (first == LB_TENSOR_COUNT)
        return LB_OK;
    usleep(20000); /* enough for what was left to a thread or a timer */
    if (find_unwritten(context) == first) {
        *unwritten = true;
        if (context->c->problem.pass == LB_FORWARD) /* the backward that follows could write it */
            return lb_case_wrong(context, "forward had returned without %s", lb_tensor_name(first));
        return LB_OK;
    }
    return lb_case_wrong(context,
                         "call %zu was not finished when it had returned: the end of %s was "
                         "written afterwards",
                         context->calls_made, lb_tensor_name(first));
}

enum lb_status lb_case_check_finished(struct lb_case_context *context, uint64_t returned,
                                      struct lb_error *err)
{
    uint64_t now;
    LB_CHECK(lb_case_written_hash(context, &now, err));
    if (now == returned)
        return LB_OK;
    return lb_case_wrong(
        context, "call %zu was not finished when it had returned: its results changed afterwards",
        context->calls_made);
}

/* Keeps the finding that right results have less precision than the dtype and math promise. */
static void note_precision(struct lb_case_context *context, const struct lb_check *check)
{
    const struct lb_problem *p = &context->c->problem;
    bool by_math = p->math != LB_IEEE;
    if ((!check->coarse && check->error_ratio <= check->usual_error_ratio) ||
        context->low_precision[0])
        return;
    snprintf(context->low_precision, sizeof(context->low_precision),
             "low precision: the error is %.2g times what %s gives%s%s", check->error_ratio,
             by_math ? lb_math_name(p->math) : lb_dtype_name(p->dtype),
             check->coarse ? ", no more than with " : "",
             check->coarse ? lb_coarse_arithmetic(p) : "");
}

enum lb_status lb_case_check_results(struct lb_case_context *context)
{
    struct lb_check check;
    struct lb_row *row = context->row;
    lb_reference_check(context->reference, context->last_set, lb_case_collect_results(context),
                       context->impl->traits, &check);
    const struct {
        double *noted, found;
    } errors[] = {
        {&row->err_max_abs, check.err_max_abs}, {&row->err_max_rel, check.err_max_rel},
        {&row->err_norm, check.err_norm},       {&row->tolerance_used, check.tolerance_used},
        {&row->error_ratio, check.error_ratio}, {&row->gradient_err_norm, check.gradient_err_norm}};
    size_t count = sizeof(errors) / sizeof(errors[0]) - (context->plan.has_backward ? 0 : 1);
    bool accepted = check.right || check.coarse;
    for (size_t i = 0; i < count; i++)
        *errors[i].noted = accepted ? fmax(*errors[i].noted, errors[i].found) : errors[i].found;
    if (accepted) {
        note_precision(context, &check);
        return LB_OK;
    }
    char reason[LB_ROW_TEXT_SIZE];
    bool overflows =
        check.in_gradient && lb_loss_overflow(&context->plan.problem, context->loss_scale,
                                              &context->results, reason, sizeof(reason));
    return lb_case_wrong(context, "%s", overflows ? reason : check.reason);
}

enum lb_status lb_case_check_repeats(struct lb_case_context *context, const char *phase)
{
    uint64_t first = lb_case_verified_bits(context)->results;
    uint64_t hash = lb_results_hash(&context->results);
    if (hash == first)
        return LB_OK;
    lb_case_phase(context, "oracle");
    enum lb_status st = lb_case_check_results(context);
    lb_case_phase(context, phase);
    if (st != LB_OK) {
        lb_row_append(&context->row->reason, ", in call %zu; the first calls were right",
                      context->calls_made);
        return st;
    }
    if (!(context->impl->traits & LB_DETERMINISTIC))
        return LB_OK;
    return lb_case_wrong(
        context,
        "says it is deterministic, but call %zu gave other bits (hash %016llx) than the first call "
        "with the same inputs (%016llx)",
        context->calls_made, (unsigned long long)hash, (unsigned long long)first);
}

enum lb_status lb_case_check_guards(struct lb_case_context *context)
{
    const struct lb_gradients *gradients = &context->results.gradients;
    const struct lb_space *space = context->space;
    const struct {
        const char *name;
        const struct lb_space *space;
        const void *memory;
    } blocks[] = {
        {"the packed weights", space, context->buffers.weights},
        {"its gradients", space, context->buffers.gradients},
        {"the reserve", space, context->buffers.reserve},
        {"the workspace", space, context->buffers.workspace},
        {"the updated weights", space, context->update.weights},
        {"the updated gradients", space, context->update.gradients},
        {"the weight gradients", &lb_host_space, gradients->dw_ih ? gradients->dw_ih[0] : NULL},
    };
    const char *side;
    for (int i = 0; i < LB_TENSOR_COUNT * LB_TIMED_SETS && space->overrun; i++) {
        enum lb_tensor t = (enum lb_tensor)(i / LB_TIMED_SETS);
        if ((side = space->overrun(context->tensors.at[i % LB_TIMED_SETS][t])))
            return lb_case_wrong(context, "%s was written %s", lb_tensor_name(t), side);
    }
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        if (blocks[i].space->overrun && (side = blocks[i].space->overrun(blocks[i].memory)))
            return lb_case_wrong(context, "%s was written %s", blocks[i].name, side);
    return LB_OK;
}

enum lb_status lb_case_check_update(struct lb_case_context *context, struct lb_error *err)
{
    const struct lb_case_update *update = &context->update;
    uint64_t weights = 0;
    LB_CHECK(lb_case_fetch(context, LB_BY_UPDATE, err));
    LB_CHECK(context->space->hash(update->weights, update->bytes, &weights, err));
    if (lb_case_check_results(context) != LB_OK) {
        char found[LB_ROW_TEXT_SIZE];
        snprintf(found, sizeof(found), "%s", context->row->reason);
        return lb_case_wrong(context, "after update: %s", found);
    }
    if (weights != update->drawn)
        return lb_case_wrong(context, "it wrote to the weights of update, which it may only read");
    return LB_OK;
}
