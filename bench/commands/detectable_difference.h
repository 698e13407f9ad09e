/* What difference a comparison could have found, had there been one. */
#ifndef LB_DETECTABLE_DIFFERENCE_H
#define LB_DETECTABLE_DIFFERENCE_H

#include "report/compare.h"

/* The smallest shift of log times which, added to the times of pair->now, is named slower: beyond
 * the margin, and with a p-value of at most p_limit. The pair was compared. Infinite where its
 * units are too few for such a p-value, whatever the shift; LB_OOM. */
enum lb_status lb_least_named(const struct lb_pair *pair, bool interleaved, double p_limit,
                              double margin, double *least, struct lb_error *err);

#endif
