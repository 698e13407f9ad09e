/* The step after the samples: checks the last timed call, and finds what explains the times. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "case/context.h"
#include "device/device.h"
#include "device/nvml.h"
#include "measure/case_lower_bound.h"
#include "reference/loss_scale.h"
#include "stats/order_stats.h"
#include "trace/kernel_trace.h"

/* Makes 1 to 200 more calls of the pass, or of the stream, which take about `ns` together, and
 * returns how many it made until one failed. On a device it enqueues them without waiting. */
static int go_on(struct lb_case_context *context, double ns)
{
    struct lb_error why;
    int made = 0, calls = (int)fmin(fmax(ns / fmax(context->row->median_ns, 1), 1), 200);
    while (made < calls && lb_case_next_calls(context, 0, 1, &why) == LB_OK &&
           lb_case_call_before(context, false, &why) == LB_OK &&
           lb_case_call(context, &why) == LB_OK)
        made++;
    return made;
}

/* Notes clocks, temperature and what held clocks down. mhz: the clock during the samples, for which
 * NVML's stands in where the device can't read its own. */
static void note_device_state(struct lb_row *row, double mhz)
{
    struct lb_gpu_state state;
    char why[160];
    const struct lb_device_info *device = lb_device_known(NULL);
    row->sm_mhz = mhz;
    if (!device || !lb_nvml_read(device->uuid, &state))
        return;
    if (isnan(mhz))
        row->sm_mhz = state.sm_mhz;
    row->memory_mhz = state.memory_mhz;
    row->temperature_c = state.temperature_c;
    lb_throttle_text(state.throttle & ~1ull /* idle, once short work is done */, why, sizeof(why));
    if (why[0])
        lb_row_warn(row, "clocks were held down: %s", why);
}

/* Whether memory goes on growing in more calls, time and again, by half of so many bytes per call.
 * What was taken once does not, such as the code that CUDA loads when it first needs it, nor does
 * an allocator of a framework that is still filling its lists. */
static bool goes_on_growing(struct lb_case_context *context, double bytes_call)
{
    enum { TIMES = 3 };
    bool grows = true;
    for (int i = 0; i < TIMES && grows; i++) {
        double before = lb_holdings_read().memory_bytes;
        int calls = go_on(context, 2e8);
        grows = lb_holdings_read().memory_bytes - before >= bytes_call / 2 * calls;
    }
    return grows;
}

/* Warns of what n timed calls left behind; `held` is what the process held after them. Named are
 * memory that grew by at least 16 MiB and by 1 KiB per call and that goes on growing, file
 * descriptors that grew by at least 8 and by one in ten calls, and threads that grew by at least 8.
 */
static void note_leaks(struct lb_case_context *context, const struct lb_holdings *held, double n)
{
    const double least_bytes = 16 << 20, least_bytes_call = 1024, least = 8;
    const struct lb_holdings before = context->holdings, now = *held;
    const struct {
        const char *name;
        double grown, least_call;
    } counted[] = {{"file descriptors", now.descriptors - before.descriptors, 0.1},
                   {"threads", now.threads - before.threads, 0}};
    double bytes = now.memory_bytes - before.memory_bytes;
    if (bytes >= least_bytes && bytes >= least_bytes_call * n &&
        goes_on_growing(context, bytes / n)) {
        char each[32], all[32];
        lb_format_bytes(bytes / n, each);
        lb_format_bytes(bytes, all);
        lb_row_warn(context->row, "its calls leak memory: %s each, %s in all", each, all);
    }
    for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
        if (counted[i].grown >= least && counted[i].grown >= counted[i].least_call * n)
            lb_row_warn(context->row, "its calls leave %s behind: %.3g each, %.0f in all",
                        counted[i].name, counted[i].grown / n, counted[i].grown);
}

/* More CPUs than --threads gives it make a time doubtful: by threads that toggle their affinity or
 * live for one call, or by child processes. On a device the host's threads do not compute. The
 * system counts the time of a thread on another CPU at its ticks alone, which are up to 10 ms apart
 * (CONFIG_HZ=100). So up to 10 ms that each further thread ran before the samples may be counted in
 * them. */
static void judge_cpus(struct lb_case_context *context)
{
    static const double unnoticed = 0.05 /* of a CPU */, least_ns = 1e5 /* in all */, tick_ns = 1e7;
    const int threads = context->all_threads;
    double more = context->cpus_used - threads;
    if (!context->on_device && more > unnoticed &&
        more * context->calls_took.clock_ns > least_ns + tick_ns * (threads - 1))
        lb_row_suspect(context->row,
                       "it used %.2f CPUs while it was timed, and --threads gives it %d",
                       context->cpus_used, threads);
}

/* Checks the results of the last timed call as well. */
static enum lb_status check_last_call(struct lb_case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    lb_case_phase(context, "recheck");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_RECHECK);
    LB_TRY(lb_case_call_after(context, err));
    LB_TRY(lb_case_fetch(context, LB_BY_GRADIENTS, err));
    LB_TRY(lb_case_check_guards(context));
    LB_TRY(lb_case_check_repeats(context, "recheck"));
    LB_TRY(lb_case_check_inputs(context, err));
done:
    context->row->verify_ns += lb_now_ns() - start;
    return st;
}

/* The flops of one call, of ragged rows with their lengths. */
static double call_flops(const struct lb_case_context *context)
{
    const struct lb_problem *p = &context->c->problem;
    double steps = 0, all = (double)p->seq_len * (double)p->batch;
    for (int64_t b = 0; context->buffers.lengths && b < p->batch; b++)
        steps += context->buffers.lengths[b];
    return context->row->flops * (context->buffers.lengths ? steps / all : 1);
}

/* Flops per second that the case can't exceed; NaN: not known. again: measures the limit once more,
 * with more care. */
static double peak_flops_s(const struct lb_case_context *context, bool again)
{
    const struct lb_problem *problem = &context->c->problem;
    bool bound = strncmp(context->cpus, "any", 3) != 0;
    double cpus = bound ? context->c->threads : (double)sysconf(_SC_NPROCESSORS_ONLN);
    return context->on_device ? lb_gpu_peak_flops_s(problem)
                              : cpus * lb_cpu_peak_flops_s(problem, again);
}

/* A rate that the machine cannot reach is wrong, however the results came about. */
static enum lb_status check_rate(struct lb_case_context *context)
{
    double rate = call_flops(context) / context->row->median_ns * 1e9;
    if (!(rate > peak_flops_s(context, false)))
        return LB_OK;
    double most = peak_flops_s(context, true);
    return rate > most ? lb_case_wrong(context,
                                       "faster than this machine can compute it: %.3g GFLOP/s "
                                       "measured, at most %.3g",
                                       rate / 1e9, most / 1e9)
                       : LB_OK;
}

/* Takes a few samples of update, launched or replayed as the calls are, and notes their median.
 * Before every second one the weights are the right ones, and before the others a few of them are
 * NaN, so that an update which finds nothing changed since the last one is wrong. Afterwards the
 * gradients must be those of the last call. */
static enum lb_status time_update(struct lb_case_context *context, struct lb_error *err)
{
    enum { FEWEST = 3, MOST = 11 };
    static const double enough_ns = 2e7;
    enum lb_status st = LB_OK;
    struct lb_timer timer = {.memory = context->impl->memory};
    double ns[MOST], spent = 0;
    const struct lb_case_update *update = &context->update;
    uint64_t *random = &context->checks.state;
    int count = 0;
    lb_case_phase(context, "update");
    LB_TRY(lb_timer_create(context->impl->memory, false, &timer, err));
    LB_TRY(lb_case_call_update(context, err)); /* loads what is loaded lazily */
    if (context->c->launch == LB_GRAPH)
        LB_TRY(lb_timer_capture(&timer, lb_case_call_update, context, err));
    while (count < FEWEST || (count < MOST && spent < enough_ns) || count % 2 == 0) {
        if (count % 2 == 0) {
            LB_TRY(lb_case_update_renew(update, &context->inputs[0].weights, err));
        } else {
            LB_TRY(lb_poison_some(context->space, update->weights, update->bytes, random, err));
            LB_TRY(lb_poison_some(context->space, update->gradients, update->bytes, random, err));
        }
        LB_TRY(lb_timer_measure(&timer, lb_case_call_update, context, 1, &ns[count], err));
        spent += ns[count++];
    }
    LB_TRY(lb_case_check_update(context, err));
    LB_TRY(lb_case_check_guards(context));
    lb_sort(ns, (size_t)count);
    context->row->update_ns = lb_median(ns, (size_t)count);
done:
    lb_timer_destroy(&timer);
    return st;
}

/* Times the check for overflow that a dynamic loss scale needs per step, which is no part of the
 * timed calls: of all weight gradients in canonical layout, where the implementation has its
 * memory: on the host one pass of one thread, on a device a kernel and the way of its answer to the
 * host. It is the same for all implementations. Where it fails the time stays unknown. */
static void time_overflow_check(struct lb_case_context *context)
{
    enum { PASSES = 9 };
    double ns[PASSES];
    uint64_t found = 0;
    void *copy = NULL;
    size_t count = context->results.weight_count;
    size_t bytes = context->on_device ? count * lb_dtype_size(context->c->problem.dtype) : 0;
    enum lb_status st = context->space->allocate(bytes, &copy, NULL);
    if (st == LB_OK)
        st = context->space->upload(copy, context->results.gradients.dw_ih[0], bytes, NULL);
    for (int i = 0; i < PASSES && st == LB_OK && found == 0; i++) {
        double start = lb_now_ns();
        if (context->on_device)
            st = lb_device()->overflow(copy, count, &found, NULL);
        else
            found = lb_weight_gradients_non_finite(&context->c->problem, &context->results);
        ns[i] = lb_now_ns() - start;
    }
    context->space->release(copy);
    if (found > 0)
        lb_row_warn(context->row, "the check for overflow finds some in gradients that are right");
    if (st != LB_OK || found > 0)
        return;
    lb_sort(ns, PASSES);
    context->row->overflow_check_ns = lb_median(ns, PASSES);
}

enum lb_status lb_case_diagnose(struct lb_case_context *context, struct lb_error *err)
{
    bool profiles = context->options->profile != NULL; /* which may slow one time or another down */
    const double timed_calls = (double)(context->calls_made - context->calls_before);
    const struct lb_holdings held = lb_holdings_read();
    if (!profiles)
        judge_cpus(context);
    if (context->on_device) { /* which lowers its clocks at once when it is idle */
        /* What fails here fails again in the check of the last call, which reports it. */
        (void)go_on(context, 5e6);
        note_device_state(context->row, context->sm_mhz);
    }
    if (context->timer.hold_expired)
        lb_row_warn(context->row, "launching the graph takes longer than the stream can be held: "
                                  "times include the launch");
    enum lb_status st = check_last_call(context, err);
    if (!profiles) /* which may make more calls, of which none is to be checked for the last */
        note_leaks(context, &held, timed_calls);
    LB_CHECK(st);
    if (!profiles)
        LB_CHECK(check_rate(context));
    if (lb_case_updates(context))
        LB_CHECK(time_update(context, err));
    if (lb_case_has_dynamic_scale(context))
        time_overflow_check(context);
    return LB_OK;
}

/* lb_traced_call */
static enum lb_status call_for_trace(void *user, struct lb_error *err)
{
    double ns;
    struct lb_case_context *context = user;
    lb_case_set_order(context, 0, 1);
    return lb_timer_measure(&context->timer, lb_case_call, context, 1, &ns, err);
}

enum lb_status lb_case_trace(struct lb_case_context *context, struct lb_error *err)
{
    struct lb_row *row = context->row;
    bool graph = context->c->launch == LB_GRAPH;
    char contradiction[256];
    lb_case_phase(context, "trace");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_NONE);
    LB_CHECK(lb_case_poison(context, err));
    lb_case_set_order(context, 0, 1);
    LB_CHECK(lb_case_call_before(context, false, err));
    LB_CHECK(lb_case_call(context, err)); /* loads what is loaded lazily */
    LB_CHECK(context->space->synchronize(err));
    if (graph)
        LB_CHECK(lb_timer_capture(&context->timer, lb_case_call, context, err));
    LB_CHECK(lb_case_call_before(context, false, err));
    LB_CHECK(context->space->synchronize(err));
    LB_CHECK(lb_kernel_trace(call_for_trace, context, graph, &row->kernels, err));
    lb_kernels_contradict(context->c, &row->kernels, contradiction, sizeof(contradiction));
    lb_row_print(&row->warning, "%s", contradiction);
    row->verdict = LB_VERDICT_OK;
    return LB_OK;
}
