/* Google Benchmark behind a C interface: filters, repetitions, random interleaving. It only decides
 * what runs in which order; the sweep runs it. */
#ifndef LB_GBENCH_H
#define LB_GBENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "model/case.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Hands Google Benchmark arguments, the filter (NULL: none), and how often it repeats each case;
 * shuffled: in random order. LB_INVALID names the first argument that it refuses. */
enum lb_status lb_gbench_configure(size_t argc, char *const *argv, const char *filter,
                                   int repetitions, bool shuffled, struct lb_error *err);

enum { LB_GBENCH_MAX = 256 }; /* cases at a time: registration is quadratic */

/* The order in which Google Benchmark runs the cases [count, at most LB_GBENCH_MAX], with one
 * iteration each: *order [*length] has the index of a case once per repetition. The caller frees
 * it. filter: only those that the filter given to configure matches; Google Benchmark appends
 * "/iterations:1/manual_time" to a case's text before it matches. LB_INVALID: the filter is no
 * regular expression. LB_OOM. */
enum lb_status lb_gbench_order(const struct lb_case *cases, size_t count, bool filter,
                               size_t **order, size_t *length, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
