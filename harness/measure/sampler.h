/* The sampler repeats a measurement until its median is known precisely enough; and the clock by
 * which the calls of a stream are due. */
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
                              warm-up; those that it does not need are the first samples */
    size_t made;
    void (*warm)(void *user); /* (optional) called between warm-up and the first sample */
    void (*done)(void *user); /* (optional) called after the last sample */
    int calls;                /* (optional) number of calls that one sample times; 0 stands for 1 */
    enum lb_stop_reason (*stop)(void *user); /* (optional) asked after each sample for another
                                                reason to stop */
};

/* 20 to 5000 samples, precision 1 %, at most 10 s. */
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
 * - plateau: doubling the samples narrowed the interval by less than a tenth (independent samples
 *   would narrow it by 29 %).
 * - time: max_ns ran out. Sampling still goes on up to 6 samples, the fewest that give an interval,
 *   but not beyond three times max_ns.
 * Returns what measure returned; on failure samples is empty. */
enum lb_status lb_sample(lb_measure *measure, void *user, const struct lb_sampler_options *options,
                         struct lb_samples *samples, struct lb_error *err);

void lb_samples_free(struct lb_samples *samples); /* accepts a zeroed one */

/* A short run for profilers, which are told to collect during its calls only:
 *   CUDA       cuProfilerStart and cuProfilerStop, where the process has loaded the driver, for
 *              nsys --capture-range=cudaProfilerApi and ncu --profile-from-start off
 *   callgrind  client requests, where the process runs under valgrind with --instr-atstart=no */
struct lb_profile {
    size_t calls;  /* at least 1 */
    char told[64]; /* output: which were told to collect, "CUDA, callgrind"; "": none */
};

/* Runs in place of lb_sample: three warm-up calls, then profile->calls samples. Of hooks only warm
 * and done are used, while profilers collect, so that the range that they open and close is
 * recorded in full. LB_FAILED when CUDA refuses, or what measure returned; samples is then empty.
 */
enum lb_status lb_profile(lb_measure *measure, void *user, const struct lb_sampler_options *hooks,
                          struct lb_profile *profile, struct lb_samples *samples,
                          struct lb_error *err);

/* The clock by which the calls of a stream are due. It stands still while the harness works between
 * two calls, so that only the calls can make the next one late. Zeroed before the first call. */
struct lb_stream_clock {
    double due_ns;    /* when the latest call was due, by this clock; 0: no call was */
    double end_ns;    /* when it had returned */
    double paused_ns; /* how far this clock is behind lb_now_ns */
};

/* Waits until the next call is due, at `rate` calls per second, and the call before it has
 * returned. Returns how late the call begins, in ns. What counts from when a call was due hides no
 * wait ("coordinated omission"). */
double lb_stream_clock_wait(struct lb_stream_clock *clock, double rate);

/* Notes that the call took that long. late_ns: what lb_stream_clock_wait returned. */
void lb_stream_clock_note(struct lb_stream_clock *clock, double late_ns, double took_ns);

#endif
