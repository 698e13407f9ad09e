/* The sampler: when it stops, and what it keeps. The times of calls are made up. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "measure/sampler.h"

#include "base/clock.h"
#include "tests/helpers/test.h"

enum { DAY_S = 86400 };

static struct timespec held; /* the time of the stopped clock; tv_sec 0: it runs */

/* Replaces the system's clock: it can be stopped, and the machine seems to be up 200 days longer.
 */
int clock_gettime(clockid_t id, struct timespec *now)
{
    if (held.tv_sec > 0) {
        *now = held;
        return 0;
    }
    int result = (int)syscall(SYS_clock_gettime, id, now);
    now->tv_sec += 200 * DAY_S;
    return result;
}

TEST(the_clock_resolves_nanoseconds_however_long_the_machine_is_up)
{
    double start = lb_now_ns(), last;
    clock_gettime(CLOCK_MONOTONIC, &held);
    held.tv_nsec = 123456789;
    last = lb_now_ns();
    for (int i = 0; i < 100; i++, held.tv_nsec++) {
        double now = lb_now_ns();
        assert_true(now - last == (i > 0));
        last = now;
    }
    held.tv_sec++;
    held.tv_nsec = 0;
    assert_true(lb_now_ns() > last);
    held.tv_sec = 0;
    assert_true(start >= 0 && lb_now_ns() - start < 60e9);
}

/* A source of sample times: base plus a uniform random part of at most spread. */
struct source {
    double base, spread;
    double slope; /* added per call: drift */
    long call_ns; /* the duration of a call by the stopped clock */
    uint32_t state;
    size_t calls;
    size_t fail_at; /* 0: never */
    double first;   /* output: the first sample */
};

static enum lb_status next(void *user, double *ns, struct lb_error *err)
{
    struct source *source = user;
    source->calls++;
    if (source->calls == source->fail_at)
        return lb_fail(err, LB_FAILED, "planted");
    held.tv_nsec += source->call_ns;
    source->state = source->state * 1664525U + 1013904223U; /* Numerical Recipes' quick generator */
    double unit = (double)(source->state >> 8) / 0x1p24;
    *ns = source->base + source->spread * unit + source->slope * (double)source->calls;
    return LB_OK;
}

/* Samples the source. What is returned has no times. */
static struct lb_samples sample(struct source *source, const struct lb_sampler_options *options)
{
    struct lb_samples samples, kept;
    source->state = 1;
    assert_int_equal(lb_sample(next, source, options, &samples, NULL), LB_OK);
    kept = samples;
    source->first = samples.ns[0];
    kept.ns = NULL;
    lb_samples_free(&samples);
    return kept;
}

/* The defaults for samples of so many calls: with 10000, 50 ms are over at once. */
static struct lb_sampler_options options_for(int calls)
{
    struct lb_sampler_options options = lb_sampler_defaults();
    options.calls = calls;
    return options;
}

TEST(steady_times_stop_at_the_minimum_for_precision)
{
    struct source source = {.base = 1000, .spread = 5};
    const struct lb_sampler_options options = options_for(10000);
    const struct lb_samples samples = sample(&source, &options);
    assert_int_equal(samples.stop_reason, LB_STOP_PRECISION);
    assert_int_equal(samples.count, options.min_samples);
    assert_int_equal(samples.count + samples.warmup, source.calls);
}

TEST(short_calls_are_sampled_for_50_ms)
{
    struct source source = {.base = 1000, .spread = 5};
    const struct lb_sampler_options options = options_for(100);
    const struct lb_samples samples = sample(&source, &options);
    assert_int_equal(samples.stop_reason, LB_STOP_PRECISION);
    assert_in_range(samples.count, 498, 650); /* looked at each time a quarter more were taken */
}

TEST(calls_made_before_are_the_first_of_the_warm_up_and_then_samples)
{
    const double like[] = {1000, 1000}, slow[] = {3e8, 3e8}, cold[] = {9000, 5000};
    const struct {
        const double *made_ns;
        size_t warmup, sampled, measured;
    } cases[] = {{like, 3, 0, 1}, {slow, 1, 1, 0}, {cold, 5, 0, 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct source source = {.base = 1000, .spread = 5};
        struct lb_sampler_options options = options_for(10000);
        options.max_ns = 2e9;
        options.made_ns = cases[i].made_ns;
        options.made = 2;
        const struct lb_samples samples = sample(&source, &options);
        assert_int_equal(samples.warmup, cases[i].warmup);
        assert_int_equal(source.calls + cases[i].sampled - samples.count, cases[i].measured);
        assert_true((source.first == 3e8) == (cases[i].sampled > 0));
    }
}

TEST(wide_times_are_sampled_until_the_interval_is_narrow)
{
    struct source source = {.base = 1000, .spread = 300};
    const struct lb_sampler_options options = options_for(10000);
    const struct lb_samples samples = sample(&source, &options);
    assert_int_equal(samples.stop_reason, LB_STOP_PRECISION);
    /* For a uniform distribution of width w the median's standard error is w / (2 sqrt n), so 1.96
     * of them are 1 % of the median at n = (1.96 * 300 / 2 / 11.5)^2 = 654. */
    assert_in_range(samples.count, 300, 1400);
}

TEST(drifting_times_end_on_a_plateau)
{
    struct source source = {.base = 1000, .spread = 5, .slope = 50};
    const struct lb_sampler_options options = options_for(10000);
    assert_int_equal(sample(&source, &options).stop_reason, LB_STOP_PLATEAU);
}

TEST(the_largest_count_is_never_exceeded)
{
    struct source source = {.base = 1000, .spread = 1000};
    struct lb_sampler_options options = lb_sampler_defaults();
    options.max_samples = 50;
    options.precision = 1e-6;
    const struct lb_samples samples = sample(&source, &options);
    assert_true(samples.stop_reason == LB_STOP_COUNT_LIMIT ||
                samples.stop_reason == LB_STOP_PLATEAU);
    assert_true(samples.count <= 50);
}

TEST(samples_of_long_calls_are_few_when_time_runs_out)
{
    static const struct {
        long call_ns;
        double max_ns;
        size_t count; /* six, but not beyond three times the time */
    } cases[] = {{10000000, 30e6, 6}, {20000000, 5e6, 1}};
    for (size_t i = 0; i < 2; i++) {
        struct source source = {.base = 1e7, .spread = 1e6, .call_ns = cases[i].call_ns};
        struct lb_sampler_options options = lb_sampler_defaults();
        options.max_ns = cases[i].max_ns;
        held = (struct timespec){.tv_sec = 1};
        const struct lb_samples samples = sample(&source, &options);
        held.tv_sec = 0;
        assert_int_equal(samples.stop_reason, LB_STOP_TIME);
        assert_int_equal(samples.warmup, 1);
        assert_int_equal(samples.count, cases[i].count);
    }
}

/* Time that the hook before the samples waits is not the case's. */
static void wait_for_others(void *user)
{
    (void)user;
    held.tv_sec++;
}

static enum lb_stop_reason stop_after_nine(void *user)
{
    return ((struct source *)user)->calls >= 9 ? LB_STOP_COUNT_LIMIT : LB_STOP_NONE;
}

TEST(a_case_that_waits_for_others_keeps_its_time_and_can_be_stopped)
{
    struct source source = {.base = 1e7, .spread = 1e6, .call_ns = 1000};
    struct lb_sampler_options options = lb_sampler_defaults();
    options.max_ns = 30e6;
    options.min_samples = options.max_samples;
    options.warm = wait_for_others;
    options.stop = stop_after_nine;
    held = (struct timespec){.tv_sec = 1};
    const struct lb_samples samples = sample(&source, &options);
    held.tv_sec = 0;
    assert_int_equal(source.calls, 9);
    assert_int_equal(samples.stop_reason, LB_STOP_COUNT_LIMIT);
}

TEST(a_failure_leaves_no_samples)
{
    struct source source = {.base = 1000, .spread = 5, .state = 1, .fail_at = 10};
    struct lb_sampler_options options = lb_sampler_defaults();
    struct lb_samples samples;
    struct lb_error err;
    assert_int_equal(lb_sample(next, &source, &options, &samples, &err), LB_FAILED);
    assert_string_equal(err.text, "planted");
    assert_null(samples.ns);
    assert_int_equal(samples.count, 0);
}
