/* The step that takes the samples: calls on two sets of inputs in random order, of which some are
 * checked (TIMING.md). */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/random.h"
#include "case/context.h"
#include "device/device.h"
#include "stats/order_stats.h"

/* Lets the two input sets change places, so that what is remembered by address is wrong too. */
static enum lb_status swap_inputs(struct lb_case_context *context, struct lb_error *err)
{
    double start = lb_now_ns();
    LB_CHECK(context->space->synchronize(err));
    LB_CHECK(lb_case_check_inputs(context, err));
    int first = context->held[0];
    context->held[0] = context->held[1];
    context->held[1] = first;
    LB_CHECK(lb_case_upload_inputs(context, err));
    context->checks.swap_ns = lb_now_ns() - start;
    return LB_OK;
}

/* Begins to measure: the clock is read before the CPU times, and by clocks_since after them. So a
 * thread that is alone never seems to use more than one CPU in a call, however short that is. */
static struct lb_case_clocks read_clocks(void)
{
    struct lb_case_clocks now = {.clock_ns = lb_now_ns()};
    now.own_cpu_ns = lb_thread_cpu_ns();
    now.cpu_ns = lb_process_cpu_ns();
    return now;
}

static struct lb_case_clocks clocks_since(const struct lb_case_clocks *start)
{
    struct lb_case_clocks since = {.cpu_ns = lb_process_cpu_ns() - start->cpu_ns};
    since.own_cpu_ns = lb_thread_cpu_ns() - start->own_cpu_ns;
    since.clock_ns = lb_now_ns() - start->clock_ns;
    return since;
}

/* Makes as many calls as one sample times. Before the first one some results become NaN, whether
 * they are checked afterwards or not. *checked: whether the call will be; becomes true where it
 * left something unwritten. */
static enum lb_status time_calls(struct lb_case_context *context, bool *checked, double *ns,
                                 struct lb_error *err)
{
    const bool poisons = !context->options->profile;
    const int rate = context->c->rate;
    LB_CHECK(
        lb_case_next_calls(context, lb_call_checks_order(&context->checks), context->calls, err));
    if (poisons)
        LB_CHECK(lb_case_poison_some(context, err));
    LB_CHECK(lb_case_call_before(context, *checked, err));
    const double late = rate > 0 ? lb_stream_clock_wait(&context->clock, rate) : 0;
    const struct lb_case_clocks start = read_clocks();
    LB_CHECK(lb_timer_measure(&context->timer, lb_case_call, context, context->calls, ns, err));
    lb_stream_clock_note(&context->clock, late, *ns);
    *ns += late;
    const struct lb_case_clocks took = clocks_since(&start);
    context->calls_took.cpu_ns += took.cpu_ns;
    context->calls_took.own_cpu_ns += took.own_cpu_ns;
    context->calls_took.clock_ns += took.clock_ns;
    if (poisons)
        LB_CHECK(lb_case_check_written(context, checked));
    return LB_OK;
}

/* Compares the fetched results of the latest call, whose hash differs from the verified one's. */
static enum lb_status check_results(struct lb_case_context *context, uint64_t hash,
                                    struct lb_error *err)
{
    if (context->ready)
        lb_case_take_turn(context);
    enum lb_status st = lb_case_fetch(context, LB_BY_GRADIENTS, err);
    if (st == LB_OK)
        st = lb_case_check_finished(context, hash, err);
    if (st == LB_OK)
        st = lb_case_check_repeats(context, "sample");
    if (context->ready)
        lb_case_give_turn(context);
    return st;
}

/* Compares what the latest call wrote with the verified call of the same inputs: by a hash that is
 * computed where the results lie, and where that differs, by the fetched results. */
static enum lb_status check_call(struct lb_case_context *context, struct lb_error *err)
{
    uint64_t hash;
    double start = lb_now_ns();
    LB_CHECK(lb_case_call_after(context, err));
    LB_CHECK(lb_case_written_hash(context, &hash, err));
    if (hash != lb_case_verified_bits(context)->memory)
        LB_CHECK(check_results(context, hash, err));
    lb_call_checks_note_check(&context->checks, lb_now_ns() - start);
    return LB_OK;
}

/* lb_measure: takes one sample, for a profiler without any checks. */
static enum lb_status measure(void *user, double *ns, struct lb_error *err)
{
    struct lb_case_context *context = user;
    struct lb_call_checks *checks = &context->checks;
    bool checks_calls = context->options->profile == NULL;
    if (context->until_new_inputs > 0 && --context->until_new_inputs == 0)
        return lb_case_sample_new_inputs(context, ns, err);
    if (checks_calls && !lb_case_streams(context) && lb_call_checks_swap_due(checks))
        LB_CHECK(swap_inputs(context, err));
    bool due = checks_calls && lb_call_checks_due(checks);
    LB_CHECK(time_calls(context, &due, ns, err));
    checks->sample_ns = *ns * context->calls;
    if (due)
        LB_CHECK(check_call(context, err));
    return LB_OK;
}

/* Chooses how many calls one sample times. Batched timing takes as many as last 100 us together,
 * because the clock cannot resolve shorter ones. */
static enum lb_status choose_calls(struct lb_case_context *context, struct lb_error *err)
{
    double ns;
    if (context->c->timing != LB_BATCHED)
        return LB_OK;
    LB_CHECK(measure(context, &ns, err));
    context->calls = (int)fmin(fmax(ceil(1e5 / ns), 1), 10000);
    return LB_OK;
}

/* Whether the verified calls are like those that will be timed, so that they are calls of the
 * warm-up. A profiler's calls are all made where it can see them. */
static bool verified_calls_warm_up(const struct lb_case_context *context)
{
    const struct lb_case *c = context->c;
    return c->launch == LB_STREAM && c->cache == LB_HOT && c->timing == LB_ISOLATED &&
           !context->options->profile;
}

/* Whether one of the samples is the call on inputs that were in no call before. */
static bool samples_new_inputs(const struct lb_case_context *context)
{
    double shorter = fmin(context->verified_ns[0], context->verified_ns[1]);
    return verified_calls_warm_up(context) && shorter >= LB_LONG_CALL_NS &&
           !lb_case_has_dynamic_scale(context);
}

static bool reads_clocks(const struct lb_case_context *context)
{
    return context->on_device && lb_device()->clock_begin && !context->timer.never_hold;
}

/* lb_sampler_options.warm */
static void samples_begin(void *user)
{
    enum { WITHIN = 4 }; /* it is one of the first samples; at least 6 are taken */
    struct lb_case_context *context = user;
    lb_case_start_samples(context);
    context->checks.check_next = true;
    if (samples_new_inputs(context))
        context->until_new_inputs = 1 + (int)(lb_random_next(&context->checks.state) % WITHIN);
    context->calls_before = context->calls_made;
    if (reads_clocks(context)) /* what fails here fails again in the calls */
        (void)lb_device()->clock_begin(NULL);
    if (!context->options->profile) { /* which is to see the calls alone */
        context->holdings = lb_holdings_read();
        context->children_ns = lb_children_cpu_ns();
    }
    context->calls_took = (struct lb_case_clocks){0};
    context->clock = (struct lb_stream_clock){0};
    context->first = read_clocks();
    lb_nvtx_phase(&context->nvtx, LB_NVTX_TIMED);
}

/* The CPUs that the timed calls used. The system counts the time of threads on other CPUs at its
 * ticks alone, so that time in which they wait between two calls may be counted in a call. All CPU
 * time since the first sample, less that of this thread between the calls and less what the other
 * threads of the case may have used there, has no such error. */
static double cpus_used(const struct lb_case_context *context)
{
    const struct lb_case_clocks all = clocks_since(&context->first), *calls = &context->calls_took;
    double between = all.clock_ns - calls->clock_ns;
    double others = (context->all_threads - 1) * between;
    double own = all.own_cpu_ns - calls->own_cpu_ns;
    double in_calls = fmin(calls->cpu_ns, all.cpu_ns - own - others);
    return (in_calls + lb_children_cpu_ns() - context->children_ns) / calls->clock_ns;
}

/* lb_sampler_options.done */
static void samples_end(void *user)
{
    struct lb_case_context *context = user;
    if (!context->options->profile)
        context->cpus_used = cpus_used(context);
    context->sm_mhz = (double)NAN;
    if (reads_clocks(context))
        (void)lb_device()->clock_end(&context->sm_mhz, NULL);
    lb_nvtx_phase(&context->nvtx, LB_NVTX_NONE);
}

/* Captures one graph per buffer of inputs. */
static enum lb_status capture(struct lb_case_context *context, struct lb_error *err)
{
    for (int i = 0; i < LB_TIMED_SETS; i++) {
        lb_case_set_order(context, i == 0 ? 0 : UINT64_MAX, 1);
        LB_CHECK(lb_case_call_before(context, false, err));
        LB_CHECK(lb_timer_capture(&context->timer, lb_case_call, context, err));
    }
    return LB_OK;
}

/* lb_call: nothing. */
static enum lb_status make_no_call(void *user, struct lb_error *err)
{
    (void)user;
    (void)err;
    return LB_OK;
}

/* What timing adds to a call of a stream: the median time of calls that do nothing. */
static enum lb_status time_harness(const struct lb_case_context *context, double *ns,
                                   struct lb_error *err)
{
    enum { CALLS = 1001 };
    struct lb_timer timer = {.memory = context->impl->memory, .until_seen = true};
    double times[CALLS];
    for (int i = 0; i < CALLS; i++)
        LB_CHECK(lb_timer_measure(&timer, make_no_call, NULL, 1, &times[i], err));
    lb_sort(times, CALLS);
    *ns = lb_median(times, CALLS);
    return LB_OK;
}

/* Adds to the row of a stream what its times hold beside the calls. */
static enum lb_status describe_stream(struct lb_case_context *context, struct lb_error *err)
{
    struct lb_row *row = context->row;
    double call_ns = context->calls_took.clock_ns / (double)row->samples;
    row->stream_calls = context->plan.chunks;
    if (context->c->rate * call_ns > 1e9)
        lb_row_warn(row,
                    "a call takes %.3g ms on average, too long for %d calls per second: the calls "
                    "wait for each other, ever longer",
                    call_ns / 1e6, context->c->rate);
    return time_harness(context, &row->harness_ns, err);
}

enum lb_status lb_case_sample(struct lb_case_context *context, struct lb_error *err)
{
    struct lb_samples samples = {0};
    struct lb_sampler_options sampler = context->options->sampler;
    struct lb_row *row = context->row;
    enum lb_status st = LB_OK;
    lb_case_phase(context, "sample");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_WARM_UP);
    LB_TRY(lb_case_poison(context, err));
    if (context->c->launch == LB_GRAPH)
        LB_TRY(capture(context, err));
    LB_TRY(choose_calls(context, err));
    /* The threads of a library's pool spin for a while after they were created or had work, as
     * OpenBLAS's do for 27 ms and libgomp's longer; that would count as CPUs which the case used.
     * Those that never stop do count. */
    if (!context->on_device)
        lb_await_idle_threads(context->plan.config.threads, 0.5);
    sampler.warm = samples_begin;
    sampler.done = samples_end;
    sampler.calls = context->calls;
    if (lb_case_streams(context))
        sampler.min_samples = sampler.max_samples; /* the rarest calls are what is looked for */
    sampler.stop = lb_case_stop_samples;
    sampler.made_ns = context->verified_ns;
    sampler.made = verified_calls_warm_up(context) ? LB_TIMED_SETS : 0;
    if (context->options->profile)
        st = lb_profile(measure, context, &sampler, context->options->profile, &samples, err);
    else
        st = lb_sample(measure, context, &sampler, &samples, err);
    /* The next steps look at what a call on a timed set wrote. Where there are few samples, all may
     * be verified calls, whose results are poisoned, or the last is that on new inputs. */
    bool due = false, none = context->calls_made == context->calls_before;
    double ns;
    if (st == LB_OK && (none || context->last_set == LB_NEW_SET))
        st = time_calls(context, &due, &ns, err);
    lb_case_end_samples(context, samples.stop_reason);
    if (st != LB_OK)
        goto done;
    for (size_t i = 0; i < sampler.made; i++)
        row->verify_ns -= context->verified_ns[i]; /* they are of the warm-up or samples */
    row->calls_per_sample = context->calls;
    row->checked_calls = (double)context->checks.checked;
    row->stop_reason = samples.stop_reason;
    lb_row_add_block(row, samples.ns, samples.count);
    lb_row_summarize(row);
    if (lb_case_streams(context))
        LB_TRY(describe_stream(context, err));
done:
    lb_samples_free(&samples);
    return st;
}
