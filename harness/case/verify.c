/* The step before any timing: one call on each input set, whose results are compared with the
 * oracle's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "case/context.h"
#include "model/tensor_files.h"
#include "reference/loss_scale.h"

/* Writes y of the latest call to the file that the options name. */
static enum lb_status write_outputs(struct lb_case_context *context, struct lb_error *err)
{
    const struct lb_problem *p = &context->plan.whole;
    int64_t width = p->directions * lb_h_size(p);
    size_t count = (size_t)(p->seq_len * p->batch * width);
    double *y = malloc(count * sizeof(*y));
    if (!y)
        return lb_fail(err, LB_OOM, "out of memory for y");
    lb_load(p->dtype, lb_case_collect_results(context)->at[LB_Y], y, count);
    enum lb_status st =
        lb_sequence_file_write(context->options->outputs, p->seq_len, p->batch, width, y, err);
    free(y);
    return st;
}

/* Makes one call on an input set, of a stream the next one, on poisoned outputs, notes its time and
 * fetches its results. memory: a hash of what it wrote. */
static enum lb_status call_on_set(struct lb_case_context *context, int set, uint64_t *memory,
                                  struct lb_error *err)
{
    bool unwritten = false;
    lb_case_phase(context, "verify");
    LB_CHECK(lb_case_next_calls(context, context->held[0] == set ? 0 : UINT64_MAX, 1, err));
    LB_CHECK(lb_case_poison(context, err));
    LB_CHECK(lb_case_call_before(context, true, err));
    LB_CHECK(context->space->synchronize(err));
    double start = lb_now_ns();
    LB_CHECK(lb_case_call(context, err));
    LB_CHECK(context->space->synchronize(err));
    context->verified_ns[set] = lb_now_ns() - start;
    LB_CHECK(lb_case_check_written(context, &unwritten)); /* the comparison says what is NaN */
    LB_CHECK(lb_case_call_after(context, err));
    LB_CHECK(lb_case_written_hash(context, memory, err));
    LB_CHECK(lb_case_fetch(context, LB_BY_GRADIENTS_ALONE, err));
    return lb_case_check_finished(context, *memory, err);
}

/* lb_loss_trial: a step whose gradients are finite must be right, or an overflow was hidden. */
static enum lb_status try_loss_scale(void *user, double scale, int set, bool *overflow,
                                     struct lb_error *err)
{
    struct lb_case_context *context = user;
    struct lb_check check;
    uint64_t memory;
    if (context->loss_scale != scale)
        LB_CHECK(lb_case_scale_inputs(context, scale, err));
    LB_CHECK(call_on_set(context, set, &memory, err));
    lb_case_phase(context, "oracle");
    *overflow = lb_gradients_non_finite(&context->c->problem, &context->results) > 0;
    if (*overflow)
        return LB_OK;
    lb_reference_check(context->reference, set, &context->results, context->impl->traits, &check);
    if (check.right || check.coarse)
        return LB_OK;
    if (!check.in_gradient)
        return lb_case_wrong(context, "%s", check.reason);
    return lb_case_wrong(
        context, "at loss scale %g no gradient is infinite or NaN, as after an overflow, but %s",
        scale, check.reason);
}

/* Finds the loss scale of the timed calls: the given one, or that at the end of a schedule. */
static enum lb_status settle_loss_scale(struct lb_case_context *context, struct lb_error *err)
{
    struct lb_loss_schedule schedule;
    if (lb_case_has_dynamic_scale(context)) {
        LB_CHECK(
            lb_loss_schedule_run(context->loss_scale, try_loss_scale, context, &schedule, err));
        context->row->overflow_share = schedule.skipped;
        lb_row_append(&context->row->description, "%sloss scale %g, %.2g %% of steps skipped",
                      context->row->description[0] ? ", " : "", schedule.scale,
                      100 * schedule.skipped);
        if (context->loss_scale != schedule.scale)
            LB_CHECK(lb_case_scale_inputs(context, schedule.scale, err));
    }
    if (context->plan.has_backward)
        context->row->loss_scale = context->loss_scale > 0 ? context->loss_scale : 1;
    return LB_OK;
}

static uint64_t gradients_hash(const struct lb_results *results)
{
    const struct lb_gradients *gradients = &results->gradients;
    return gradients->dw_ih ? lb_hash_bytes(0, gradients->dw_ih[0],
                                            results->weight_count * results->element_bytes)
                            : 0;
}

/* After the first verified call: keeps the weight gradients as backward left them. */
static enum lb_status keep_gradients(struct lb_case_context *context, struct lb_error *err)
{
    const size_t bytes = context->sizes.gradients;
    if (!lb_trains(&context->c->problem) || bytes == 0)
        return LB_OK;
    context->first_gradients = malloc(bytes);
    if (!context->first_gradients)
        return lb_fail(err, LB_OOM, "out of memory for a copy of the gradients");
    return context->space->download(context->first_gradients, context->buffers.gradients, bytes,
                                    err);
}

/* Where there is no gradients buffer, gradients may take about as long as copies of what it writes
 * take, or a transposition: else it does a part of backward's work, which is not timed. Other
 * programs make a call or a copy longer, so the shortest of several counts, and on the host no more
 * than a call's CPU time. */
static enum lb_status time_gradients(struct lb_case_context *context, struct lb_error *err)
{
    enum { TIMES = 3 };
    static const double copies = 30, noticed_ns = 5e5, share = 0.2; /* share of the call */
    const double call = fmin(context->verified_ns[0], context->verified_ns[1]);
    const struct lb_results *results = &context->results;
    const size_t bytes = results->weight_count * results->element_bytes;
    double own = (double)INFINITY, as_copy = (double)INFINITY;
    void *copy = malloc(bytes);
    if (!copy)
        return lb_fail(err, LB_OOM, "out of memory for a copy of the gradients");
    memset(copy, 1, bytes);
    enum lb_status st = LB_OK;
    for (int i = 0; i < TIMES && st == LB_OK; i++) {
        double start = lb_now_ns(), cpu = lb_process_cpu_ns();
        st = context->impl->gradients(context->self, &results->gradients, err);
        double took = lb_now_ns() - start, worked = lb_process_cpu_ns() - cpu;
        own = fmin(own, context->on_device ? took : fmin(took, worked));
        start = lb_now_ns();
        memcpy(copy, results->gradients.dw_ih[0], bytes);
        __asm__ volatile("" : : "r"(copy) : "memory"); /* else the compiler leaves the copy out */
        as_copy = fmin(as_copy, lb_now_ns() - start);
    }
    free(copy);
    LB_CHECK(st);
    if (own > copies * as_copy + noticed_ns && own > share * call)
        context->slow_gradients = own / call;
    return LB_OK;
}

/* After the second verified call: puts those of the first one back. gradients must convert them;
 * where it gives others, it computes them from what the implementation keeps elsewhere. */
static enum lb_status convert_first_gradients(struct lb_case_context *context, struct lb_error *err)
{
    if (!lb_trains(&context->c->problem))
        return LB_OK;
    if (!context->first_gradients)
        return time_gradients(context, err);
    LB_CHECK(context->space->upload(context->buffers.gradients, context->first_gradients,
                                    context->sizes.gradients, err));
    free(context->first_gradients);
    context->first_gradients = NULL;
    LB_CHECK(lb_case_fetch(context, LB_BY_GRADIENTS_ALONE, err));
    if (gradients_hash(&context->results) != context->bits[0].gradients)
        return lb_case_wrong(context,
                             "gradients does more than convert what backward wrote to the "
                             "gradients buffer: from that of the first call it makes others "
                             "than it made after that call");
    return LB_OK;
}

/* Makes one call on an input set, or all verified calls of a stream, and keeps what they wrote. */
static enum lb_status call_and_keep(struct lb_case_context *context, int set, struct lb_error *err)
{
    if (lb_case_streams(context))
        lb_case_begin_stream(context, set);
    for (int i = 0; i < context->plan.chunks; i++) {
        uint64_t memory;
        LB_CHECK(call_on_set(context, set, &memory, err));
        *lb_case_verified_bits(context) =
            (struct lb_case_bits){.results = lb_results_hash(&context->results),
                                  .gradients = gradients_hash(&context->results),
                                  .memory = memory};
        lb_case_collect_results(context);
    }
    return LB_OK;
}

/* In int8, the implementation's own scheme: what it promises to compute in whole numbers. */
static enum lb_status check_scheme(struct lb_case_context *context, int set, struct lb_error *err)
{
    struct lb_row *row = context->row;
    double error;
    if (context->plan.whole.dtype != LB_INT8 || context->plan.whole.layers > 1 ||
        !(context->impl->traits & LB_QUANTISES_PLAINLY))
        return LB_OK;
    lb_case_phase(context, "oracle");
    LB_CHECK(lb_reference_scheme_error(context->reference, set, lb_case_collect_results(context),
                                       &error, err));
    row->scheme_error = row->scheme_error > error ? row->scheme_error : error;
    if (!(error <= LB_INT8_ROUNDING))
        return lb_case_wrong(context,
                             "int8: off by %.3g from the network quantised as int8.h says, where "
                             "rounding allows %.3g",
                             error, LB_INT8_ROUNDING);
    return LB_OK;
}

/* Verifies the calls on an input set, makes one update after them, and checks what that wrote. */
static enum lb_status verify_set(struct lb_case_context *context, int set, struct lb_error *err)
{
    LB_CHECK(call_and_keep(context, set, err));
    LB_CHECK(check_scheme(context, set, err));
    lb_case_phase(context, "oracle");
    if (set == 0)
        LB_CHECK(keep_gradients(context, err));
    if (set == 0)
        context->row->hash = lb_case_verified_bits(context)->results;
    LB_CHECK(lb_case_check_results(context));
    lb_case_phase(context, "verify");
    if (set == 0 && context->options->outputs)
        LB_CHECK(write_outputs(context, err));
    if (lb_case_updates(context)) {
        LB_CHECK(lb_case_update_renew(&context->update, &context->inputs[0].weights, err));
        LB_CHECK(lb_case_call_update(context, err));
        LB_CHECK(lb_case_check_update(context, err));
    }
    if (set > 0)
        LB_CHECK(convert_first_gradients(context, err));
    return lb_case_check_guards(context);
}

enum lb_status lb_case_verify(struct lb_case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    lb_nvtx_phase(&context->nvtx, LB_NVTX_VERIFY);
    LB_TRY(settle_loss_scale(context, err));
    for (int set = 0; set < LB_TIMED_SETS; set++)
        LB_TRY(verify_set(context, set, err));
    context->verified = true;
    LB_TRY(lb_case_check_inputs(context, err));
    context->row->verdict = LB_VERDICT_OK;
    if (context->low_precision[0])
        lb_row_suspect(context->row, "%s", context->low_precision);
    if (context->slow_gradients > 0)
        lb_row_suspect(context->row,
                       "gradients, which is not timed, takes %.2g times as long as a call",
                       context->slow_gradients);
done:
    context->row->verify_ns += lb_now_ns() - start;
    return st;
}
