/* Runs one case in this process: prepare, verify, sample, diagnose, surprise. TIMING.md explains
 * the steps in the same order. */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "case/context.h"
#include "device/device.h"
#include "measure/case_lower_bound.h"

void lb_case_phase(const struct lb_case_context *context, const char *name)
{
    char text[64];
    snprintf(text, sizeof(text), context->instance > 0 ? "%s of instance %d" : "%s", name,
             context->instance + 1);
    if (context->observer->phase)
        context->observer->phase(context->observer->user, text);
}

enum lb_status lb_case_wrong(struct lb_case_context *context, const char *format, ...)
{
    char reason[LB_ROW_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    context->row->verdict = LB_VERDICT_WRONG;
    lb_row_print(&context->row->reason, "%s", reason);
    return LB_FAILED;
}

/* Gives the row what is known before anything of the implementation was called. */
static void begin(struct lb_case_context *context)
{
    const struct lb_case *c = context->c;
    struct lb_row *row = context->row;
    if (!context->together)
        lb_nvtx_begin(&context->nvtx, c);
    lb_nvtx_phase(&context->nvtx, LB_NVTX_PLAN);
    row->flops = lb_problem_flops(&c->problem);
    row->bytes = lb_problem_bytes(&c->problem);
    row->deterministic = context->impl->traits & LB_DETERMINISTIC ? 1 : 0;
    lb_call_checks_open(&context->checks, context->options->sampler.max_ns);
    row->order_seed = (double)context->checks.seed;
}

/* Finds out whether the case can run, and plans it. A missing device is reported first, whatever
 * else the implementation does not support. */
static enum lb_status plan(struct lb_case_context *context, struct lb_error *err)
{
    lb_case_phase(context, "supports");
    if (context->on_device && !lb_device_known(err))
        return LB_ABSENT;
    LB_CHECK(lb_case_plan(context->impl, context->c, lb_host_available(), &context->plan, err));
    lb_case_lower_bound(context->impl->memory, context->row, NULL);
    return LB_OK;
}

/* Makes a verdict of a failure that no check found. Once calls have given right results, the
 * implementation cannot say any more that it does not support the case. */
static void judge(const struct lb_case_context *context, enum lb_status st,
                  const struct lb_error *err)
{
    bool refused = st == LB_UNSUPPORTED || st == LB_ABSENT;
    bool late = refused && context->verified;
    context->row->verdict = LB_VERDICT_ERROR;
    if (st == LB_OOM)
        context->row->verdict = LB_VERDICT_OOM;
    else if (refused && !late)
        context->row->verdict = st == LB_ABSENT ? LB_VERDICT_ABSENT : LB_VERDICT_UNSUPPORTED;
    lb_row_print(&context->row->reason, "%s%s%.400s", late ? lb_status_name(st) : "",
                 late ? ", after calls that were right: " : "",
                 err->text[0] ? err->text : "the implementation gave no reason");
}

void lb_case_go_through(struct lb_case_context *context)
{
    const struct lb_run_options *options = context->options;
    enum lb_status st = LB_OK;
    struct lb_error err = {""};
    double start = lb_now_ns();
    context->timer.memory = context->impl->memory;
    context->calls = 1;
    begin(context);
    if (context->on_device && context->instance > 0)
        LB_TRY(lb_device()->enter(&err));
    LB_TRY(plan(context, &err));
    LB_TRY(lb_case_open(context, &err));
    LB_TRY(lb_case_prepare(context, &err));
    if (options->kernels) {
        LB_TRY(lb_case_trace(context, &err));
        goto done;
    }
    LB_TRY(lb_case_verify(context, &err));
    if (options->outputs)
        goto done;
    LB_TRY(lb_case_sample(context, &err));
    LB_TRY(lb_case_diagnose(context, &err));
    if (!options->profile)
        LB_TRY(lb_case_surprise(context, &err));
done:
    if (st != LB_OK && context->row->verdict != LB_VERDICT_WRONG)
        judge(context, st, &err);
    if (!lb_verdict_has_samples(context->row->verdict))
        lb_row_drop_samples(context->row);
    context->row->elapsed_ns = lb_now_ns() - start;
    lb_case_close(context);
}

void lb_case_run(const struct lb_impl *impl, const struct lb_case *c,
                 const struct lb_run_options *options, const struct lb_run_observer *observer,
                 struct lb_row *row)
{
    const bool on_device = impl->memory == LB_DEVICE;
    struct lb_case_plan plan;
    struct lb_error why;
    struct lb_case_context context = {.impl = impl,
                                      .c = c,
                                      .options = options,
                                      .observer = observer,
                                      .row = row,
                                      .space = on_device ? &lb_device_space : &lb_host_space,
                                      .on_device = on_device,
                                      .all_threads = c->threads};
    *row = lb_row_make(c);
    if (c->instances > 1 && !options->profile &&
        lb_case_plan(impl, c, lb_host_available(), &plan, &why) == LB_OK)
        lb_case_run_together(&context);
    else
        lb_case_go_through(&context);
}
