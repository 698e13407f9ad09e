/* The sampler repeats a measurement until its median is known precisely enough; and the clock by
 * which the calls of a stream are due. */
#include "measure/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stats/order_stats.h"

enum { INTERVAL_MIN = 6 }; /* the fewest samples with a 95 % interval of the median */

/* Precision and plateau stop no case before its timed calls took this long together, so that slow
 * first calls and drift are among the samples of short calls too. */
static const double least_sampling_ns = 50e6;

struct lb_sampler_options lb_sampler_defaults(void)
{
    return (struct lb_sampler_options){
        .min_samples = 20, .max_samples = 5000, .precision = 0.01, .max_ns = 10e9};
}

/* Makes calls until two in a row were less than 1 % faster than the fastest before them, but for at
 * most a tenth of max_ns, and at least two, unless the first alone takes that long. The calls of
 * made_ns are the first of them. */
static enum lb_status warm_up(lb_measure *measure, void *user,
                              const struct lb_sampler_options *options, size_t *calls,
                              struct lb_error *err)
{
    double start = lb_now_ns(), best = INFINITY;
    int since_best = 0;
    for (*calls = 0; *calls < 2 || since_best < 2;) {
        double ns;
        if (*calls < options->made) {
            ns = options->made_ns[*calls];
            start -= ns;
        } else {
            LB_CHECK(measure(user, &ns, err));
        }
        ++*calls;
        since_best = ns < best * 0.99 ? 0 : since_best + 1;
        best = fmin(best, ns);
        /* A call that alone takes this long is warm after the first. */
        if (lb_now_ns() - start > options->max_ns / 10)
            break;
    }
    return LB_OK;
}

/* Half width of the interval of *median, at 95 %, over it; infinity where there is none. */
static double relative_half_width(const double *ns, size_t count, double *scratch, double *median)
{
    double lo, hi;
    lb_sort_copy(ns, count, scratch);
    *median = lb_median(scratch, count);
    if (lb_quantile_interval(scratch, count, 0.5, 0.95, &lo, &hi) != LB_OK || !(*median > 0))
        return (double)INFINITY;
    return (hi - lo) / 2 / *median;
}

/* The state of the stop rule between its computations of the interval. */
struct stop_rule {
    size_t next_look;    /* the count at which the interval is computed next */
    size_t anchor_count; /* the count at which the interval had anchor_width */
    double anchor_width;
};

static enum lb_stop_reason look(struct stop_rule *rule, const struct lb_sampler_options *options,
                                const double *ns, size_t count, double *scratch)
{
    double median, calls = options->calls > 1 ? options->calls : 1;
    if (count >= options->max_samples)
        return LB_STOP_COUNT_LIMIT;
    if (count < rule->next_look)
        return LB_STOP_NONE;
    double width = relative_half_width(ns, count, scratch, &median);
    rule->next_look = count + count / 4 + 1;
    /* By the median, because a machine with other work adds to single samples. */
    if (median * calls * (double)count < least_sampling_ns)
        return LB_STOP_NONE;
    if (width <= options->precision)
        return LB_STOP_PRECISION;
    if (count >= 2 * rule->anchor_count) {
        if (rule->anchor_count > 0 && width > 0.9 * rule->anchor_width)
            return LB_STOP_PLATEAU;
        rule->anchor_count = count;
        rule->anchor_width = width;
    }
    return LB_STOP_NONE;
}

enum lb_status lb_sample(lb_measure *measure, void *user, const struct lb_sampler_options *options,
                         struct lb_samples *samples, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    double *scratch = lb_needed(malloc(options->max_samples * sizeof(*scratch)));
    struct stop_rule rule = {.next_look = options->min_samples};

    *samples =
        (struct lb_samples){.ns = lb_needed(malloc(options->max_samples * sizeof(*samples->ns)))};
    LB_TRY(warm_up(measure, user, options, &samples->warmup, err));
    double warm = lb_now_ns();
    if (options->warm)
        options->warm(user);
    start += lb_now_ns() - warm; /* where it waits for others, that is no time for samples */
    for (size_t made = samples->warmup; samples->stop_reason == LB_STOP_NONE;) {
        if (made < options->made)
            samples->ns[samples->count] = options->made_ns[made++];
        else
            LB_TRY(measure(user, &samples->ns[samples->count], err));
        samples->count++;
        double elapsed = lb_now_ns() - start;
        if ((elapsed > options->max_ns && samples->count >= INTERVAL_MIN) ||
            elapsed > 3 * options->max_ns)
            samples->stop_reason = LB_STOP_TIME;
        else
            samples->stop_reason = look(&rule, options, samples->ns, samples->count, scratch);
        if (samples->stop_reason == LB_STOP_NONE && options->stop)
            samples->stop_reason = options->stop(user);
    }
    if (options->done)
        options->done(user);
done:
    free(scratch);
    if (st != LB_OK)
        lb_samples_free(samples);
    return st;
}

void lb_samples_free(struct lb_samples *samples)
{
    free(samples->ns);
    *samples = (struct lb_samples){0};
}

double lb_stream_clock_wait(struct lb_stream_clock *clock, double rate)
{
    static const double spun_ns = 1e5; /* a sleeping thread wakes up later than it asked for */
    double now = lb_now_ns() - clock->paused_ns;
    clock->due_ns = clock->due_ns > 0 ? clock->due_ns + 1e9 / rate : now;
    const double begin = fmax(clock->due_ns, clock->end_ns);
    const double sleep_ns = begin - now - spun_ns;
    if (sleep_ns > 0) {
        const struct timespec pause = {.tv_sec = (time_t)(sleep_ns / 1e9),
                                       .tv_nsec = (long)fmod(sleep_ns, 1e9)};
        nanosleep(&pause, NULL);
    }
    while ((now = lb_now_ns() - clock->paused_ns) < begin)
        continue;
    clock->paused_ns += now - begin;
    return begin - clock->due_ns;
}

void lb_stream_clock_note(struct lb_stream_clock *clock, double late_ns, double took_ns)
{
    clock->end_ns = clock->due_ns + late_ns + took_ns;
}
