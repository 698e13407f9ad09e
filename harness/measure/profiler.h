/* A short, clean run for profilers: warm-up, then the calls to look at, collected and nothing else.
 */
#ifndef LB_PROFILER_H
#define LB_PROFILER_H

#include "measure/sampler.h"

/* Profilers that are attached to the process collect during the calls only:
 *   CUDA       cuProfilerStart and cuProfilerStop, where the process has loaded the driver, for
 *              nsys --capture-range=cudaProfilerApi and ncu --profile-from-start off
 *   callgrind  client requests, where it runs under valgrind with --instr-atstart=no
 *   perf       messages through the pipes of perf record --delay=-1 --control=fifo:CTL[,ACK] */
struct lb_profile {
    size_t calls;             /* at least 1 */
    const char *perf_control; /* "CTL" or "CTL,ACK", two named pipes; NULL: no perf */
    char told[64];            /* written: who was told to collect, "CUDA, callgrind"; "" nobody */
};

/* In lb_sample's place: three calls to warm up, then profile->calls samples without a look at any
 * of them. hooks->warm and hooks->done lie within the collection, so that its range is whole.
 * LB_IO when perf does not answer or is gone (no SIGPIPE comes of it), LB_FAILED when CUDA refuses,
 * LB_OOM. On failure samples is empty. */
enum lb_status lb_profile(lb_measure *measure, void *user, const struct lb_sampler_options *hooks,
                          struct lb_profile *profile, struct lb_samples *samples,
                          struct lb_error *err);

#endif
