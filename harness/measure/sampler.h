/* Repeated measurement of one thing until its median is known well enough. */
#ifndef LB_SAMPLER_H
#define LB_SAMPLER_H

#include <stddef.h>

#include "record/record.h"

/* Takes one sample: *ns is the time of one call. */
typedef enum lb_status lb_measure(void *user, double *ns, struct lb_error *err);

struct lb_sampler_options {
    size_t min_samples; /* at least this many, unless max_ns runs out first */
    size_t max_samples;
    double precision; /* half width of the median's 95 % interval over the median to stop at */
    double max_ns;    /* wall time for warm-up and samples together */
    void (*warm)(void *user); /* (optional) told between warm-up and the first sample */
    void (*done)(void *user); /* (optional) told after the last sample */
};

/* 20 to 5000 samples, 1 %, 10 s. */
struct lb_sampler_options lb_sampler_defaults(void);

struct lb_samples {
    double *ns; /* [count] in the order taken; owned */
    size_t count;
    size_t warmup; /* calls before them */
    enum lb_stop_reason stop_reason;
};

/* Warms up until the calls no longer get faster, then samples until one of lb_stop_reason.
 *
 * The stop rule looks at the interval after min_samples and then each time that the count has grown
 * by a quarter; it is a plateau when twice the samples narrowed the interval by less than a tenth
 * (independent samples narrow it by 29 %). When max_ns runs out, samples go on up to 6, the fewest
 * that give an interval at all, but not beyond three times max_ns.
 * Outliers are kept: nothing is dropped. LB_OOM, or what measure answers; on failure samples is
 * empty. */
enum lb_status lb_sample(lb_measure *measure, void *user, const struct lb_sampler_options *options,
                         struct lb_samples *samples, struct lb_error *err);

void lb_samples_free(struct lb_samples *samples); /* accepts a zeroed one */

#endif
