/* The life of one case in this process: from supports to destroy, with one row as its outcome. */
#include "case_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinity.h"
#include "case_floor.h"
#include "case_probe.h"
#include "device.h"
#include "kernel_trace.h"
#include "loss_scale.h"
#include "memory.h"
#include "meter.h"
#include "nvml.h"
#include "nvtx.h"
#include "registry.h"
#include "tensors.h"
#include "text.h"

/* Everything that one case holds while it lives. Released in reverse by close_life. */
struct life {
    const struct lb_impl *impl;
    const struct lb_case *c;
    const struct lb_run_options *options;
    const struct lb_run_observer *observer;
    const struct lb_space *space;
    struct lb_row *row;

    void *self; /* the implementation's state, zeroed before create */
    struct lb_sizes sizes;
    struct lb_buffers buffers;
    struct lb_place place;
    struct lb_reference *reference;
    struct lb_results results;
    struct lb_tensors tensors;
    struct lb_forward_io forward;
    struct lb_backward_io backward;
    struct lb_meter meter;
    int calls;           /* timed together: 1 isolated, more batched */
    double before_bytes; /* of the space that were free before create */
    struct lb_nvtx nvtx;
    char cpus[64]; /* what the case is pinned to; "" where it is not */
};

static void phase(const struct life *life, const char *name)
{
    if (life->observer->phase)
        life->observer->phase(life->observer->user, name);
}

/* Notes the most memory that was gone from the device, whoever took it: libraries may allocate more
 * than they said. On the host the harness's own buffers are all that is known. */
static void note_peak(struct life *life)
{
    if (life->impl->memory == LB_DEVICE)
        life->row->peak_bytes =
            fmax(life->row->peak_bytes, life->before_bytes - life->space->available());
}

/* create, sizes, memory check. */
static enum lb_status open_implementation(struct life *life, struct lb_error *err)
{
    const struct lb_impl *impl = life->impl;
    enum lb_status st = LB_OK;
    phase(life, "create");
    life->self = calloc(1, impl->state_size);
    if (!life->self)
        return lb_fail(err, LB_OOM, "allocating %zu bytes of state failed", impl->state_size);
    life->place = lb_case_place(impl, life->c);
    LB_TRY(lb_pick_variant(impl->variants, life->c->variant, &life->place.variant, err));
    life->before_bytes = life->space->available();
    if (impl->memory == LB_HOST)
        lb_pin(life->place.threads, life->cpus, sizeof(life->cpus));

    double start = lb_now_ns();
    LB_TRY(impl->create(life->self, &life->c->problem, &life->place, err));
    LB_TRY(impl->sizes(life->self, &life->sizes, err));
    life->row->prepare_ns = lb_now_ns() - start;

    const struct lb_sizes *s = &life->sizes;
    life->row->weights_bytes = (double)s->weights;
    life->row->gradients_bytes = (double)s->gradients;
    life->row->reserve_bytes = (double)s->reserve;
    life->row->workspace_bytes = (double)s->workspace;
    double buffers = life->row->weights_bytes + life->row->gradients_bytes +
                     life->row->reserve_bytes + life->row->workspace_bytes;
    double needed = buffers + (impl->memory == LB_DEVICE ? lb_case_tensor_bytes(&life->c->problem)
                                                         : lb_case_bytes(&life->c->problem));
    needed += (double)lb_meter_bytes(impl->memory, life->c->cache == LB_COLD);
    LB_TRY(lb_check_memory(needed, life->space->available(), life->space->name, err));
done:
    return st;
}

static enum lb_status allocate_buffers(struct life *life, struct lb_error *err)
{
    const struct lb_space *space = life->space;
    enum lb_status st = LB_OK;
    LB_TRY(space->allocate(life->sizes.weights, &life->buffers.weights, err));
    LB_TRY(space->allocate(life->sizes.gradients, &life->buffers.gradients, err));
    LB_TRY(space->allocate(life->sizes.reserve, &life->buffers.reserve, err));
    LB_TRY(space->allocate(life->sizes.workspace, &life->buffers.workspace, err));
    LB_TRY(lb_tensors_create(&life->c->problem, space, &life->tensors, err));
    LB_TRY(lb_results_create(&life->c->problem, &life->results, err));
    life->forward = lb_tensors_forward(&life->tensors);
    life->backward = lb_tensors_backward(&life->tensors);
    life->row->peak_bytes = (double)lb_tensors_bytes(&life->tensors) + (double)life->sizes.weights +
                            (double)life->sizes.gradients + (double)life->sizes.reserve +
                            (double)life->sizes.workspace;
    LB_TRY(lb_meter_create(life->impl->memory, life->c->cache == LB_COLD, &life->meter, err));
    note_peak(life);
done:
    return st;
}

/* The oracle's answer, buffers, weights and inputs in place. */
static enum lb_status prepare(struct life *life, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    void *scaled = NULL;
    double start = lb_now_ns();
    phase(life, "oracle");
    lb_nvtx_phase(&life->nvtx, LB_NVTX_ORACLE);
    LB_TRY(lb_reference_open(life->options->cache, &life->c->problem, life->options->seed,
                             &life->reference, err));
    life->row->verify_ns = lb_now_ns() - start;

    lb_nvtx_phase(&life->nvtx, LB_NVTX_PREPARE);
    LB_TRY(allocate_buffers(life, err));
    struct lb_inputs inputs = *lb_reference_inputs(life->reference);
    life->buffers.lengths = inputs.lengths;
    if (inputs.lengths && life->impl->memory == LB_DEVICE)
        lb_case_floor(life->row, inputs.lengths);
    LB_TRY(lb_loss_scale(&life->c->problem, life->options->loss_scale, &inputs, &scaled, err));
    LB_TRY(lb_tensors_upload(&life->tensors, &inputs, err));

    phase(life, "prepare");
    start = lb_now_ns();
    LB_TRY(life->impl->prepare(life->self, &life->buffers, &inputs.weights, err));
    LB_TRY(life->space->synchronize(err));
    life->row->prepare_ns += lb_now_ns() - start;
    if (life->impl->chosen) {
        const char *chosen = life->impl->chosen(life->self);
        snprintf(life->row->chosen, sizeof(life->row->chosen), "%s%s%s", chosen ? chosen : "",
                 life->cpus[0] ? ", on " : "", life->cpus);
    }
done:
    free(scaled);
    return st;
}

/* One call of the pass, as it is timed. */
static enum lb_status call_once(void *user, struct lb_error *err)
{
    struct life *life = user;
    enum lb_status st = LB_OK;
    if (life->c->problem.pass != LB_BACKWARD)
        LB_TRY(life->impl->forward(life->self, &life->forward, err));
    if (lb_has_backward(&life->c->problem))
        LB_TRY(life->impl->backward(life->self, &life->backward, err));
done:
    return st;
}

/* What a call needs before it and is not timed: backward alone needs a fresh reserve. */
static enum lb_status call_before(struct life *life, struct lb_error *err)
{
    if (life->c->problem.pass != LB_BACKWARD)
        return LB_OK;
    return life->impl->forward(life->self, &life->forward, err);
}

/* lb_measure: one sample. */
static enum lb_status measure(void *user, double *ns, struct lb_error *err)
{
    struct life *life = user;
    enum lb_status st = call_before(life, err);
    return st == LB_OK ? lb_meter_time(&life->meter, call_once, life, life->calls, ns, err) : st;
}

/* Fills all that the pass is to write with NaN: what a checked call leaves as it was is found. */
static enum lb_status poison(const struct life *life, struct lb_error *err)
{
    enum lb_status st = lb_tensors_poison(&life->tensors, err);
    return st == LB_OK ? life->space->poison(life->buffers.gradients, life->sizes.gradients, err)
                       : st;
}

static enum lb_status fetch_results(struct life *life, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(life->space->synchronize(err));
    if (life->impl->check)
        LB_TRY(life->impl->check(life->self, err));
    lb_results_poison(&life->c->problem, &life->results);
    LB_TRY(lb_tensors_download(&life->tensors, &life->results, err));
    if (lb_has_backward(&life->c->problem))
        LB_TRY(life->impl->gradients(life->self, &life->results.gradients, err));
    LB_TRY(lb_loss_unscale(&life->c->problem, life->options->loss_scale, &life->results, err));
    note_peak(life);
done:
    return st;
}

/* Compares the fetched results with the oracle into the row; false when they are wrong. */
static bool results_right(struct life *life)
{
    struct lb_check check;
    struct lb_row *row = life->row;
    lb_reference_check(life->reference, &life->results, &check);
    row->err_max_abs = check.err_max_abs;
    row->err_max_rel = check.err_max_rel;
    row->err_norm = check.err_norm;
    if (!check.right) {
        row->verdict = LB_VERDICT_WRONG;
        if (!check.in_gradient ||
            !lb_loss_overflow(&life->c->problem, life->options->loss_scale, &life->results,
                              row->reason, sizeof(row->reason)))
            snprintf(row->reason, sizeof(row->reason), "%s", check.reason);
    }
    return check.right;
}

/* False when the implementation wrote beside something that it was given; the row says beside what.
 */
static bool bands_whole(struct life *life)
{
    const struct {
        const char *name;
        const void *memory;
    } others[] = {
        {"the packed weights", life->buffers.weights},
        {"its gradients", life->buffers.gradients},
        {"the reserve", life->buffers.reserve},
        {"the workspace", life->buffers.workspace},
    };
    const struct lb_gradients *gradients = &life->results.gradients;
    const char *side, *name = NULL;
    if (!life->space->overrun)
        return true;
    enum lb_tensor tensor = lb_tensors_overrun(&life->tensors, &side);
    if (side)
        name = lb_tensor_name(tensor);
    for (size_t i = 0; !side && i < sizeof(others) / sizeof(others[0]); i++)
        if ((side = life->space->overrun(others[i].memory)))
            name = others[i].name;
    if (!side && gradients->dw_ih && (side = life->space->overrun(gradients->dw_ih[0])))
        name = "the weight gradients";
    if (side) {
        life->row->verdict = LB_VERDICT_WRONG;
        snprintf(life->row->reason, sizeof(life->row->reason), "%s was written %s", name, side);
    }
    return !side;
}

/* A checked call on poisoned outputs. */
static enum lb_status verify(struct life *life, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    phase(life, "verify");
    lb_nvtx_phase(&life->nvtx, LB_NVTX_VERIFY);
    LB_TRY(poison(life, err));
    LB_TRY(call_before(life, err));
    LB_TRY(call_once(life, err));
    LB_TRY(fetch_results(life, err));
    phase(life, "oracle");
    if (results_right(life) && bands_whole(life))
        life->row->verdict = LB_VERDICT_OK;
    life->row->hash = lb_results_hash(&life->c->problem, &life->results);
done:
    life->row->verify_ns += lb_now_ns() - start;
    return st;
}

/* Holds the results of the last timed call to the same standard: what was timed must have computed
 * the same answer, to the bit where the implementation says that it is deterministic. */
static enum lb_status verify_again(struct life *life, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    lb_nvtx_phase(&life->nvtx, LB_NVTX_RECHECK);
    LB_TRY(fetch_results(life, err));
    phase(life, "oracle");
    uint64_t hash = lb_results_hash(&life->c->problem, &life->results);
    if (!bands_whole(life))
        goto done;
    if (hash != life->row->hash && results_right(life) && (life->impl->traits & LB_DETERMINISTIC)) {
        life->row->verdict = LB_VERDICT_WRONG;
        snprintf(life->row->reason, sizeof(life->row->reason),
                 "says it is deterministic, but the last timed call gave other bits (hash %016llx) "
                 "than the first (%016llx)",
                 (unsigned long long)hash, (unsigned long long)life->row->hash);
    }
done:
    life->row->verify_ns += lb_now_ns() - start;
    return st;
}

/* Calls to time together in batched mode: as many as take 100 us, for what the clock can't
 * resolve. */
static enum lb_status choose_calls(struct life *life, struct lb_error *err)
{
    double ns;
    life->calls = 1;
    if (life->c->timing == LB_ISOLATED)
        return LB_OK;
    enum lb_status st = measure(life, &ns, err);
    if (st == LB_OK)
        life->calls = (int)fmin(fmax(ceil(1e5 / ns), 1), 10000);
    return st;
}

/* Clocks and temperature right after the samples, and a warning when something held them down. */
static void note_device_state(struct life *life)
{
    struct lb_gpu_state state;
    char why[160];
    const struct lb_device_info *device = lb_device_known(NULL);
    if (life->impl->memory != LB_DEVICE || !device || !lb_nvml_read(device->uuid, &state))
        return;
    life->row->sm_mhz = state.sm_mhz;
    life->row->memory_mhz = state.memory_mhz;
    life->row->temperature_c = state.temperature_c;
    lb_throttle_text(state.throttle & ~1ull /* idle, now that the samples are over */, why,
                     sizeof(why));
    if (why[0])
        snprintf(life->row->warning, sizeof(life->row->warning), "clocks were held down: %s", why);
}

/* lb_sampler_options.warm */
static void samples_begin(void *user)
{
    struct life *life = user;
    lb_nvtx_phase(&life->nvtx, LB_NVTX_TIMED);
}

/* lb_sampler_options.done */
static void samples_end(void *user)
{
    struct life *life = user;
    lb_nvtx_phase(&life->nvtx, LB_NVTX_NONE);
}

static enum lb_status sample(struct life *life, struct lb_error *err)
{
    struct lb_samples samples = {0};
    struct lb_sampler_options sampler = life->options->sampler;
    enum lb_status st = LB_OK;
    phase(life, "sample");
    lb_nvtx_phase(&life->nvtx, LB_NVTX_WARM_UP);
    LB_TRY(poison(life, err));
    if (life->c->launch == LB_GRAPH) {
        LB_TRY(call_before(life, err));
        LB_TRY(lb_meter_capture(&life->meter, call_once, life, err));
    }
    LB_TRY(choose_calls(life, err));
    sampler.warm = samples_begin;
    sampler.done = samples_end;
    if (life->options->profile)
        LB_TRY(lb_profile(measure, life, &sampler, life->options->profile, &samples, err));
    else
        LB_TRY(lb_sample(measure, life, &sampler, &samples, err));
    note_device_state(life);
    life->row->calls_per_sample = life->calls;
    life->row->stop_reason = samples.stop_reason;
    LB_TRY(lb_row_add_block(life->row, samples.ns, samples.count, err));
    LB_TRY(lb_row_summarize(life->row, err));
    LB_TRY(verify_again(life, err));
done:
    lb_samples_free(&samples);
    return st;
}

/* lb_traced_call */
static enum lb_status call_for_trace(void *user, struct lb_error *err)
{
    double ns;
    struct life *life = user;
    return lb_meter_time(&life->meter, call_once, life, 1, &ns, err);
}

/* Traces the kernels of one more call, and warns when they are not what the case is called. */
static void trace_kernels(struct life *life)
{
    struct lb_row *row = life->row;
    struct lb_error why = {""};
    enum lb_status st = LB_OK;
    lb_nvtx_phase(&life->nvtx, LB_NVTX_NONE);
    if (life->impl->memory != LB_DEVICE)
        LB_TRY(lb_fail(&why, LB_ABSENT, "it runs on the host, without GPU kernels"));
    LB_TRY(call_before(life, &why));
    LB_TRY(life->space->synchronize(&why));
    LB_TRY(lb_kernel_trace(call_for_trace, life, &row->kernels, &why));
    char *warning = row->warning + strlen(row->warning);
    if (warning > row->warning && warning < row->warning + sizeof(row->warning) - 2)
        warning = stpcpy(warning, "; ");
    lb_kernels_contradict(life->c, &row->kernels, warning,
                          (size_t)(row->warning + sizeof(row->warning) - warning));
done:
    if (st != LB_OK)
        snprintf(row->kernels_reason, sizeof(row->kernels_reason), "%.*s",
                 (int)sizeof(row->kernels_reason) - 1, why.text);
}

static void close_life(struct life *life)
{
    lb_nvtx_phase(&life->nvtx, LB_NVTX_TEARDOWN);
    if (life->self) {
        phase(life, "destroy");
        life->impl->destroy(life->self);
        free(life->self);
    }
    lb_meter_destroy(&life->meter);
    lb_unpin();
    lb_tensors_destroy(&life->tensors);
    lb_results_destroy(&life->results);
    life->space->release(life->buffers.workspace);
    life->space->release(life->buffers.reserve);
    life->space->release(life->buffers.gradients);
    life->space->release(life->buffers.weights);
    lb_reference_close(life->reference);
    lb_nvtx_end(&life->nvtx);
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
    struct life life = {
        .impl = impl,
        .c = c,
        .options = options,
        .observer = observer,
        .space = impl->memory == LB_DEVICE ? &lb_device_space : &lb_host_space,
        .meter = {.memory = impl->memory},
        .row = row,
        .calls = 1,
    };

    lb_nvtx_begin(&life.nvtx, c);
    lb_nvtx_phase(&life.nvtx, LB_NVTX_PLAN);
    *row = lb_row_make(c);
    row->flops = lb_problem_flops(&c->problem);
    row->bytes = lb_problem_bytes(&c->problem);
    /* Without a device that is the reason, whatever else the implementation could not do. */
    if (impl->memory == LB_DEVICE && !lb_device_known(&err))
        LB_TRY(LB_ABSENT);
    LB_TRY(lb_case_supported(impl, c, lb_host_available(), &err));
    if (impl->memory == LB_DEVICE)
        lb_case_floor(row, NULL);
    LB_TRY(open_implementation(&life, &err));
    LB_TRY(prepare(&life, &err));
    LB_TRY(verify(&life, &err));
    if (row->verdict == LB_VERDICT_OK)
        LB_TRY(sample(&life, &err));
    if (row->verdict == LB_VERDICT_OK && options->kernels)
        trace_kernels(&life);
done:
    if (st != LB_OK) {
        row->verdict = verdict_of(st);
        snprintf(row->reason, sizeof(row->reason), "%s",
                 err.text[0] ? err.text : "the implementation gave no reason");
    }
    if (row->verdict != LB_VERDICT_OK)
        lb_row_drop_samples(row);
    lb_clean_text(row->reason);
    lb_clean_text(row->chosen);
    row->elapsed_ns = lb_now_ns() - start;
    observer->result(observer->user, row);
    close_life(&life);
}
