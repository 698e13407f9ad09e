/* Google Benchmark behind a C interface: registration, filters, repetitions, random interleaving.
 * It schedules; what it calls takes the samples. */
#ifndef LB_GBENCH_H
#define LB_GBENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs one repetition of case index and returns its time in seconds for Google Benchmark's own
 * bookkeeping; negative when it has none. */
typedef double lb_gbench_call(void *user, size_t index);

/* Hands the arguments that start with --benchmark_ to Google Benchmark. LB_INVALID names the first
 * that it does not take. */
enum lb_status lb_gbench_configure(size_t argc, char *const *argv, struct lb_error *err);

/* keep[i] = whether the filter given to configure lets names[i] pass. Google Benchmark matches
 * against the name with "/iterations:1/manual_time" behind it. LB_INVALID: it can't be read. */
enum lb_status lb_gbench_filter(const char *const *names, size_t count, bool *keep,
                                struct lb_error *err);

/* Registers the named cases, runs them all, and forgets them: registration is quadratic in the
 * number of cases, so a caller hands over a few hundred at a time. Each case is called once a
 * repetition, in the order that Google Benchmark chooses. */
enum lb_status lb_gbench_run(const char *const *names, size_t count, lb_gbench_call *call,
                             void *user, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
