/* A short run for profilers: warm-up calls, then the calls to profile and nothing else. */
#ifndef LB_PROFILER_H
#define LB_PROFILER_H

#include "measure/sampler.h"

/* Profilers that are attached to the process are told to collect during these calls only:
 *   CUDA       cuProfilerStart and cuProfilerStop, where the process has loaded the driver, for
 *              nsys --capture-range=cudaProfilerApi and ncu --profile-from-start off
 *   callgrind  client requests, where the process runs under valgrind with --instr-atstart=no */
struct lb_profile {
    size_t calls;  /* at least 1 */
    char told[64]; /* output: which were told to collect, "CUDA, callgrind"; "": none */
};

/* Runs in place of lb_sample: three warm-up calls, then profile->calls samples, whatever their
 * times are. Of hooks only warm and done are used. Both are called while profilers collect, so that
 * the range that they open and close is recorded in full. LB_FAILED when CUDA refuses, LB_OOM, or
 * what measure returned. On failure samples is empty. */
enum lb_status lb_profile(lb_measure *measure, void *user, const struct lb_sampler_options *hooks,
                          struct lb_profile *profile, struct lb_samples *samples,
                          struct lb_error *err);

#endif
