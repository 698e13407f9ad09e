/* The smallest slowdown that a comparison would have found. */
#ifndef LB_DETECTABLE_DIFFERENCE_H
#define LB_DETECTABLE_DIFFERENCE_H

#include "report/compare.h"

/* Computes the smallest shift of log time which, added to the times of pair->now, gives the verdict
 * slower: the estimate is larger than the margin, and the p-value is at most p_limit. The pair must
 * have been compared. Of the comparison only `interleaved`, `times` and `margin` are read. *least
 * is infinite when the pair has too few processes or blocks for such a p-value. LB_OOM, or
 * LB_INVALID as of lb_log_times. */
enum lb_status lb_detectable_slowdown(const struct lb_run_comparison *comparison,
                                      const struct lb_pair *pair, double p_limit, double *least,
                                      struct lb_error *err);

#endif
