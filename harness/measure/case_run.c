/* Runs one case in this process, from supports to destroy, and fills one row with the outcome. */
#include "measure/case_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "device/cpu_affinity.h"
#include "device/device.h"
#include "device/memory.h"
#include "device/nvml.h"
#include "device/timer.h"
#include "measure/case_lower_bound.h"
#include "measure/case_probe.h"
#include "measure/kernel_trace.h"
#include "measure/nvtx.h"
#include "reference/case_tensors.h"
#include "reference/loss_scale.h"

/* Everything that one case holds while it runs. The implementation keeps pointers to the plan's
 * config and to the buffers, so the context stays where it is until close_case, which releases all
 * of it in reverse order. */
struct case_context {
    const struct lb_impl *impl;
    const struct lb_case *c;
    const struct lb_run_options *options;
    const struct lb_run_observer *observer;
    struct lb_row *row;
    struct lb_nvtx nvtx;

    struct lb_case_plan plan;
    void *self; /* the implementation's state, zeroed before create; NULL until then */
    struct lb_sizes sizes;
    struct lb_buffers buffers; /* of those sizes, in plan.space */
    char cpus[64];             /* the CPUs that the case is pinned to; "" on a device */
    double available_before;   /* bytes that plan.space had left before create */

    struct lb_reference *reference; /* inputs and expected results */
    struct lb_results results;      /* of the last checked call, on the host */
    struct lb_tensors tensors;      /* inputs and outputs in plan.space */
    struct lb_forward_io forward;   /* these tensors as arguments */
    struct lb_backward_io backward;
    struct lb_timer timer;
    int calls; /* per sample: 1 when timed in isolation, more when batched */
};

static void phase(const struct case_context *context, const char *name)
{
    if (context->observer->phase)
        context->observer->phase(context->observer->user, name);
}

/* Raises the row's peak to the device memory that is now in use beyond what was before create,
 * whoever allocated it, because libraries may allocate more than they said. On the host only the
 * harness's own buffers are known. */
static void note_peak(struct case_context *context)
{
    if (context->impl->memory == LB_DEVICE)
        context->row->peak_bytes = fmax(
            context->row->peak_bytes, context->available_before - context->plan.space->available());
}

/* Bytes of what the implementation asked for. */
static double buffer_bytes(const struct case_context *context)
{
    const struct lb_sizes *s = &context->sizes;
    return (double)s->weights + (double)s->gradients + (double)s->reserve + (double)s->workspace;
}

/* Calls create and sizes, and checks that the memory suffices. */
static enum lb_status open_implementation(struct case_context *context, struct lb_error *err)
{
    const struct lb_impl *impl = context->impl;
    enum lb_status st = LB_OK;
    phase(context, "create");
    context->self = calloc(1, impl->state_size);
    if (!context->self)
        return lb_fail(err, LB_OOM, "allocating %zu bytes of state failed", impl->state_size);
    context->available_before = context->plan.space->available();
    if (impl->memory == LB_HOST)
        lb_pin(context->plan.config.threads, context->cpus, sizeof(context->cpus));

    double start = lb_now_ns();
    LB_TRY(impl->create(context->self, &context->c->problem, &context->plan.config, err));
    LB_TRY(impl->sizes(context->self, &context->sizes, err));
    context->row->prepare_ns = lb_now_ns() - start;

    const struct lb_sizes *s = &context->sizes;
    context->row->weights_bytes = (double)s->weights;
    context->row->gradients_bytes = (double)s->gradients;
    context->row->reserve_bytes = (double)s->reserve;
    context->row->workspace_bytes = (double)s->workspace;
    LB_TRY(lb_check_memory(context->plan.space_bytes + buffer_bytes(context),
                           context->plan.space->available(), context->plan.space->name, err));
done:
    return st;
}

static enum lb_status allocate_buffers(struct case_context *context, struct lb_error *err)
{
    const struct lb_space *space = context->plan.space;
    enum lb_status st = LB_OK;
    LB_TRY(space->allocate(context->sizes.weights, &context->buffers.weights, err));
    LB_TRY(space->allocate(context->sizes.gradients, &context->buffers.gradients, err));
    LB_TRY(space->allocate(context->sizes.reserve, &context->buffers.reserve, err));
    LB_TRY(space->allocate(context->sizes.workspace, &context->buffers.workspace, err));
    LB_TRY(lb_tensors_create(&context->c->problem, space, &context->tensors, err));
    LB_TRY(lb_results_create(&context->c->problem, &context->results, err));
    context->forward = lb_tensors_forward(&context->tensors);
    context->backward = lb_tensors_backward(&context->tensors);
    context->row->peak_bytes = (double)lb_tensors_bytes(&context->tensors) + buffer_bytes(context);
    LB_TRY(
        lb_timer_create(context->impl->memory, context->c->cache == LB_COLD, &context->timer, err));
    note_peak(context);
done:
    return st;
}

static void set_lower_bound(const struct lb_impl *impl, struct lb_row *row, const int32_t *lengths)
{
    if (impl->memory == LB_DEVICE)
        lb_case_lower_bound(row, lengths);
    else
        lb_case_cpu_lower_bound(row, lengths);
}

/* Brings everything in place for calls: expected results, buffers, inputs and converted weights. */
static enum lb_status prepare(struct case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    void *scaled = NULL;
    double start = lb_now_ns();
    phase(context, "oracle");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_ORACLE);
    if (context->options->kernels) /* a trace needs inputs alone */
        LB_TRY(lb_reference_open_inputs(&context->c->problem, context->options->seed,
                                        &context->reference, err));
    else
        LB_TRY(lb_reference_open(context->options->cache, &context->c->problem,
                                 context->options->seed, &context->reference, err));
    context->row->verify_ns = lb_now_ns() - start;

    phase(context, "upload");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_PREPARE);
    LB_TRY(allocate_buffers(context, err));
    struct lb_inputs inputs = *lb_reference_inputs(context->reference);
    context->buffers.lengths = inputs.lengths;
    if (inputs.lengths)
        set_lower_bound(context->impl, context->row, inputs.lengths);
    LB_TRY(
        lb_loss_scale(&context->c->problem, context->options->loss_scale, &inputs, &scaled, err));
    LB_TRY(lb_tensors_upload(&context->tensors, &inputs, err));

    phase(context, "prepare");
    start = lb_now_ns();
    LB_TRY(context->impl->prepare(context->self, &context->buffers, &inputs.weights, err));
    LB_TRY(context->plan.space->synchronize(err));
    context->row->prepare_ns += lb_now_ns() - start;
    if (context->impl->describe) {
        const char *description = context->impl->describe(context->self);
        snprintf(context->row->description, sizeof(context->row->description), "%s%s%s",
                 description ? description : "", context->cpus[0] ? ", on " : "", context->cpus);
    }
done:
    free(scaled);
    return st;
}

/* lb_call: one call of the pass. This is what is timed. */
static enum lb_status call_once(void *user, struct lb_error *err)
{
    struct case_context *context = user;
    enum lb_status st = LB_OK;
    if (context->c->problem.pass != LB_BACKWARD)
        LB_TRY(context->impl->forward(context->self, &context->forward, err));
    if (context->plan.has_backward)
        LB_TRY(context->impl->backward(context->self, &context->backward, err));
done:
    return st;
}

/* The untimed work that a call needs before it: backward alone needs a reserve that a forward has
 * just filled. */
static enum lb_status call_before(struct case_context *context, struct lb_error *err)
{
    if (context->c->problem.pass != LB_BACKWARD)
        return LB_OK;
    return context->impl->forward(context->self, &context->forward, err);
}

/* lb_measure: takes one sample. */
static enum lb_status measure(void *user, double *ns, struct lb_error *err)
{
    struct case_context *context = user;
    enum lb_status st = call_before(context, err);
    return st == LB_OK
               ? lb_timer_measure(&context->timer, call_once, context, context->calls, ns, err)
               : st;
}

/* Fills everything that the pass must write with NaN, so that the next check finds what a call
 * leaves unwritten. */
static enum lb_status poison(const struct case_context *context, struct lb_error *err)
{
    enum lb_status st = lb_tensors_poison(&context->tensors, err);
    return st == LB_OK ? context->plan.space->poison(context->buffers.gradients,
                                                     context->sizes.gradients, err)
                       : st;
}

/* Waits for the last call and brings its results to the host, unscaled. */
static enum lb_status fetch_results(struct case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(context->plan.space->synchronize(err));
    if (context->impl->check)
        LB_TRY(context->impl->check(context->self, err));
    lb_results_poison(&context->results);
    LB_TRY(lb_tensors_download(&context->tensors, &context->results, err));
    if (context->plan.has_backward)
        LB_TRY(context->impl->gradients(context->self, &context->results.gradients, err));
    lb_loss_unscale(&context->c->problem, context->options->loss_scale, &context->results);
    note_peak(context);
done:
    return st;
}

/* Compares the fetched results with the expected ones and notes the errors in the row. False when
 * they are wrong; the row then has the verdict and the reason. */
static bool results_right(struct case_context *context)
{
    struct lb_check check;
    struct lb_row *row = context->row;
    lb_reference_check(context->reference, &context->results, &check);
    row->err_max_abs = check.err_max_abs;
    row->err_max_rel = check.err_max_rel;
    row->err_norm = check.err_norm;
    if (!check.right) {
        row->verdict = LB_VERDICT_WRONG;
        if (!check.in_gradient ||
            !lb_loss_overflow(&context->c->problem, context->options->loss_scale, &context->results,
                              row->reason, sizeof(row->reason)))
            snprintf(row->reason, sizeof(row->reason), "%s", check.reason);
    }
    return check.right;
}

/* False when the implementation wrote before the start or past the end of a buffer; the row then
 * has the verdict and names the buffer. */
static bool guards_intact(struct case_context *context)
{
    const struct {
        const char *name;
        const void *memory;
    } others[] = {
        {"the packed weights", context->buffers.weights},
        {"its gradients", context->buffers.gradients},
        {"the reserve", context->buffers.reserve},
        {"the workspace", context->buffers.workspace},
    };
    const struct lb_gradients *gradients = &context->results.gradients;
    const char *side, *name = NULL;
    if (!context->plan.space->overrun)
        return true;
    enum lb_tensor tensor = lb_tensors_overrun(&context->tensors, &side);
    if (side)
        name = lb_tensor_name(tensor);
    for (size_t i = 0; !side && i < sizeof(others) / sizeof(others[0]); i++)
        if ((side = context->plan.space->overrun(others[i].memory)))
            name = others[i].name;
    if (!side && gradients->dw_ih && (side = context->plan.space->overrun(gradients->dw_ih[0])))
        name = "the weight gradients";
    if (side) {
        context->row->verdict = LB_VERDICT_WRONG;
        snprintf(context->row->reason, sizeof(context->row->reason), "%s was written %s", name,
                 side);
    }
    return !side;
}

/* Makes one call on poisoned outputs and checks its results. */
static enum lb_status verify(struct case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    phase(context, "verify");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_VERIFY);
    LB_TRY(poison(context, err));
    LB_TRY(call_before(context, err));
    LB_TRY(call_once(context, err));
    LB_TRY(fetch_results(context, err));
    phase(context, "oracle");
    bool right = results_right(context);
    context->row->hash = lb_results_hash(&context->results);
    phase(context, "verify");
    if (right && guards_intact(context))
        context->row->verdict = LB_VERDICT_OK;
done:
    context->row->verify_ns += lb_now_ns() - start;
    return st;
}

/* Checks the results of the last timed call as well: it must have computed right results too, and
 * the same bits as the first call where the implementation says that it is deterministic. */
static enum lb_status verify_again(struct case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    phase(context, "recheck");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_RECHECK);
    LB_TRY(fetch_results(context, err));
    if (!guards_intact(context))
        goto done;
    phase(context, "oracle");
    uint64_t hash = lb_results_hash(&context->results);
    if (hash != context->row->hash && results_right(context) &&
        (context->impl->traits & LB_DETERMINISTIC)) {
        context->row->verdict = LB_VERDICT_WRONG;
        snprintf(context->row->reason, sizeof(context->row->reason),
                 "says it is deterministic, but the last timed call gave other bits (hash %016llx) "
                 "than the first (%016llx)",
                 (unsigned long long)hash, (unsigned long long)context->row->hash);
    }
done:
    context->row->verify_ns += lb_now_ns() - start;
    return st;
}

/* Chooses how many calls one sample times. Batched timing takes as many as last 100 us together,
 * because the clock cannot resolve shorter ones. */
static enum lb_status choose_calls(struct case_context *context, struct lb_error *err)
{
    double ns;
    context->calls = 1;
    if (context->c->timing == LB_ISOLATED)
        return LB_OK;
    enum lb_status st = measure(context, &ns, err);
    if (st == LB_OK)
        context->calls = (int)fmin(fmax(ceil(1e5 / ns), 1), 10000);
    return st;
}

/* Notes clocks and temperature right after the samples, and a warning when something lowered the
 * clocks. */
static void note_device_state(struct case_context *context)
{
    struct lb_gpu_state state;
    char why[160];
    const struct lb_device_info *device = lb_device_known(NULL);
    if (context->impl->memory != LB_DEVICE || !device || !lb_nvml_read(device->uuid, &state))
        return;
    context->row->sm_mhz = state.sm_mhz;
    context->row->memory_mhz = state.memory_mhz;
    context->row->temperature_c = state.temperature_c;
    lb_throttle_text(state.throttle & ~1ull /* idle, now that the samples are over */, why,
                     sizeof(why));
    if (why[0])
        snprintf(context->row->warning, sizeof(context->row->warning), "clocks were held down: %s",
                 why);
}

/* lb_sampler_options.warm */
static void samples_begin(void *user)
{
    struct case_context *context = user;
    lb_nvtx_phase(&context->nvtx, LB_NVTX_TIMED);
}

/* lb_sampler_options.done */
static void samples_end(void *user)
{
    struct case_context *context = user;
    lb_nvtx_phase(&context->nvtx, LB_NVTX_NONE);
}

/* Times the case: captures a graph if asked for, warms up, takes samples, checks the last call. */
static enum lb_status sample(struct case_context *context, struct lb_error *err)
{
    struct lb_samples samples = {0};
    struct lb_sampler_options sampler = context->options->sampler;
    enum lb_status st = LB_OK;
    phase(context, "sample");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_WARM_UP);
    LB_TRY(poison(context, err));
    if (context->c->launch == LB_GRAPH) {
        LB_TRY(call_before(context, err));
        LB_TRY(lb_timer_capture(&context->timer, call_once, context, err));
    }
    LB_TRY(choose_calls(context, err));
    sampler.warm = samples_begin;
    sampler.done = samples_end;
    if (context->options->profile)
        LB_TRY(lb_profile(measure, context, &sampler, context->options->profile, &samples, err));
    else
        LB_TRY(lb_sample(measure, context, &sampler, &samples, err));
    note_device_state(context);
    context->row->calls_per_sample = context->calls;
    context->row->stop_reason = samples.stop_reason;
    LB_TRY(lb_row_add_block(context->row, samples.ns, samples.count, err));
    LB_TRY(lb_row_summarize(context->row, err));
    LB_TRY(verify_again(context, err));
done:
    lb_samples_free(&samples);
    return st;
}

/* lb_traced_call */
static enum lb_status call_for_trace(void *user, struct lb_error *err)
{
    double ns;
    struct case_context *context = user;
    return lb_timer_measure(&context->timer, call_once, context, 1, &ns, err);
}

/* Traces the GPU kernels of one call into the row, and warns when they contradict the case's name.
 * A call before it loads what is loaded lazily. */
static enum lb_status trace_kernels(struct case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_row *row = context->row;
    bool graph = context->c->launch == LB_GRAPH;
    phase(context, "trace");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_NONE);
    LB_TRY(poison(context, err));
    LB_TRY(call_before(context, err));
    LB_TRY(call_once(context, err));
    LB_TRY(context->plan.space->synchronize(err));
    if (graph)
        LB_TRY(lb_timer_capture(&context->timer, call_once, context, err));
    LB_TRY(call_before(context, err));
    LB_TRY(context->plan.space->synchronize(err));
    LB_TRY(lb_kernel_trace(call_for_trace, context, graph, &row->kernels, err));
    lb_kernels_contradict(context->c, &row->kernels, row->warning, sizeof(row->warning));
    row->verdict = LB_VERDICT_OK;
done:
    return st;
}

static void close_case(struct case_context *context)
{
    phase(context, "destroy");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_TEARDOWN);
    if (context->self) {
        context->impl->destroy(context->self);
        free(context->self);
    }
    lb_timer_destroy(&context->timer);
    lb_unpin();
    lb_tensors_destroy(&context->tensors);
    lb_results_destroy(&context->results);
    context->plan.space->release(context->buffers.workspace);
    context->plan.space->release(context->buffers.reserve);
    context->plan.space->release(context->buffers.gradients);
    context->plan.space->release(context->buffers.weights);
    lb_reference_close(context->reference);
    lb_nvtx_end(&context->nvtx);
}

static enum lb_verdict verdict_of(enum lb_status st)
{
    switch (st) {
    case LB_UNSUPPORTED: return LB_VERDICT_UNSUPPORTED;
    case LB_ABSENT: return LB_VERDICT_ABSENT;
    case LB_OOM: return LB_VERDICT_OOM;
    default: return LB_VERDICT_ERROR;
    }
}

void lb_case_run(const struct lb_impl *impl, const struct lb_case *c,
                 const struct lb_run_options *options, const struct lb_run_observer *observer,
                 struct lb_row *row)
{
    enum lb_status st = LB_OK;
    struct lb_error err = {""};
    double start = lb_now_ns();
    struct case_context context = {
        .impl = impl,
        .c = c,
        .options = options,
        .observer = observer,
        .row = row,
        .plan = {.space = impl->memory == LB_DEVICE ? &lb_device_space : &lb_host_space},
        .timer = {.memory = impl->memory},
        .calls = 1,
    };

    lb_nvtx_begin(&context.nvtx, c);
    lb_nvtx_phase(&context.nvtx, LB_NVTX_PLAN);
    *row = lb_row_make(c);
    row->flops = lb_problem_flops(&c->problem);
    row->bytes = lb_problem_bytes(&c->problem);
    /* A missing device is reported first, whatever else the implementation does not support. */
    if (impl->memory == LB_DEVICE && !lb_device_known(&err))
        LB_TRY(LB_ABSENT);
    LB_TRY(lb_case_plan(impl, c, lb_host_available(), &context.plan, &err));
    set_lower_bound(impl, row, NULL);
    LB_TRY(open_implementation(&context, &err));
    LB_TRY(prepare(&context, &err));
    if (options->kernels) {
        LB_TRY(trace_kernels(&context, &err));
        goto done;
    }
    LB_TRY(verify(&context, &err));
    if (row->verdict == LB_VERDICT_OK)
        LB_TRY(sample(&context, &err));
done:
    if (st != LB_OK) {
        row->verdict = verdict_of(st);
        snprintf(row->reason, sizeof(row->reason), "%s",
                 err.text[0] ? err.text : "the implementation gave no reason");
    }
    if (row->verdict != LB_VERDICT_OK)
        lb_row_drop_samples(row);
    lb_clean_text(row->reason);
    lb_clean_text(row->description);
    row->elapsed_ns = lb_now_ns() - start;
    observer->result(observer->user, row);
    close_case(&context);
}
