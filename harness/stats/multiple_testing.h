/* Correction of p-values for the number of comparisons that were made. */
#ifndef LB_MULTIPLE_TESTING_H
#define LB_MULTIPLE_TESTING_H

#include <stddef.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Benjamini and Hochberg's step-up procedure. When every case with adjusted[i] <= q is reported as
 * different, the expected share of false ones among those reported is at most q. When no case
 * differs at all, anything is reported with a probability of at most q.
 * p [n] in 0..1; adjusted [n] may be the same array as p. LB_OOM.
 * Source: Benjamini & Hochberg, J. R. Statist. Soc. B 57 (1995) 289-300. */
enum lb_status lb_adjust(const double *p, size_t n, double *adjusted, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
