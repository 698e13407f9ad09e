/* The sampler repeats a measurement until its median is known precisely enough. */
#ifndef LB_SAMPLER_H
#define LB_SAMPLER_H

#include <stddef.h>

#include "record/record.h"

/* Takes one sample: *ns is the time of one call. */
typedef enum lb_status lb_measure(void *user, double *ns, struct lb_error *err);

struct lb_sampler_options {
    size_t min_samples; /* at least this many, unless max_ns runs out first */
    size_t max_samples;
    double precision;      /* stop when the half width of the median's 95 % interval, divided by the
                              median, is at most this */
    double max_ns;         /* wall time for warm-up and samples together */
    const double *made_ns; /* [made] times of earlier calls, which count as the first calls of the
                              warm-up */
    size_t made;
    void (*warm)(void *user); /* (optional) called between warm-up and the first sample */
    void (*done)(void *user); /* (optional) called after the last sample */
    int calls;                /* (optional) number of calls that one sample times; 0 stands for 1 */
};

/* Returns the defaults: 20 to 5000 samples, precision 1 %, at most 10 s. */
struct lb_sampler_options lb_sampler_defaults(void);

struct lb_samples {
    double *ns; /* [count] in the order taken; owned */
    size_t count;
    size_t warmup; /* number of warm-up calls, with those of made_ns that were needed */
    enum lb_stop_reason stop_reason;
};

/* Warms up until the calls no longer get faster, beginning with those of made_ns. Then samples
 * until one of lb_stop_reason applies. The interval is computed after min_samples and 50 ms of
 * timed calls, and again each time the number of samples has grown by a quarter. Only max_samples
 * and max_ns stop sampling earlier.
 * - precision: the interval is narrow enough.
 * - plateau: doubling the samples narrowed the interval by less than a tenth (independent samples
 *   would narrow it by 29 %).
 * - time: max_ns ran out. Sampling still goes on up to 6 samples, the fewest that give an interval,
 *   but not beyond three times max_ns.
 * Outliers are kept. LB_OOM, or what measure returned; on failure samples is empty. */
enum lb_status lb_sample(lb_measure *measure, void *user, const struct lb_sampler_options *options,
                         struct lb_samples *samples, struct lb_error *err);

void lb_samples_free(struct lb_samples *samples); /* accepts a zeroed one */

#endif
