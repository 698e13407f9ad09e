/* Correction of p-values for how many were looked at. */
#ifndef LB_MULTIPLE_TESTING_H
#define LB_MULTIPLE_TESTING_H

#include <stddef.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Benjamini and Hochberg's step-up: adjusted[i] <= q exactly when case i is among those that are
 * named while at most a share q of the named is expected to be false; when nothing differs, at most
 * a share q of all comparisons names anything.
 * p [n] in 0..1; adjusted [n] may be p itself. LB_OOM.
 * Source: Benjamini & Hochberg, J. R. Statist. Soc. B 57 (1995) 289-300. */
enum lb_status lb_adjust(const double *p, size_t n, double *adjusted, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
