/* Google Benchmark behind a C interface: filters, repetitions, random interleaving. It only decides
 * what runs in which order; the sweep runs it. */
#ifndef LB_GBENCH_H
#define LB_GBENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Hands the arguments that start with --benchmark_ to Google Benchmark. LB_INVALID names the first
 * that it refuses. */
enum lb_status lb_gbench_configure(size_t argc, char *const *argv, struct lb_error *err);

/* Sets keep[i] to whether the filter that configure was given matches names[i]. Google Benchmark
 * appends "/iterations:1/manual_time" to the name before it matches. LB_INVALID: the filter is no
 * regular expression. */
enum lb_status lb_gbench_filter(const char *const *names, size_t count, bool *keep,
                                struct lb_error *err);

/* The order in which Google Benchmark runs the named cases [count], with one iteration each:
 * *order [*length] has the index of a case once per repetition. The caller frees it. Registration
 * is quadratic in the number of cases, so callers hand over a few hundred at a time. LB_OOM. */
enum lb_status lb_gbench_order(const char *const *names, size_t count, size_t **order,
                               size_t *length, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
