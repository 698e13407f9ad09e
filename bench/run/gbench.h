/* Google Benchmark behind a C interface: registration, filters, repetitions, random interleaving.
 * It only schedules; the functions that it calls take the samples. */
#ifndef LB_GBENCH_H
#define LB_GBENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs one repetition of case index. Returns its time in seconds, for Google Benchmark's own
 * bookkeeping; negative when there is none. */
typedef double lb_gbench_call(void *user, size_t index);

/* Hands the arguments that start with --benchmark_ to Google Benchmark. LB_INVALID names the first
 * that it refuses. */
enum lb_status lb_gbench_configure(size_t argc, char *const *argv, struct lb_error *err);

/* Sets keep[i] to whether the filter that configure was given matches names[i]. Google Benchmark
 * appends "/iterations:1/manual_time" to the name before it matches. LB_INVALID: the filter is no
 * regular expression. */
enum lb_status lb_gbench_filter(const char *const *names, size_t count, bool *keep,
                                struct lb_error *err);

/* Registers the named cases, runs them all, and forgets them. Registration is quadratic in the
 * number of cases, so callers hand over a few hundred at a time. Each case is called once per
 * repetition, in the order that Google Benchmark chooses. */
enum lb_status lb_gbench_run(const char *const *names, size_t count, lb_gbench_call *call,
                             void *user, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
