/* The smallest slowdown that a comparison would have found. */
#ifndef LB_DETECTABLE_DIFFERENCE_H
#define LB_DETECTABLE_DIFFERENCE_H

#include "report/compare.h"

/* The smallest shift of log time which, added to the times of pair->now, gives the verdict slower:
 * larger than the margin, with a p-value of at most p_limit. The pair must have been compared; of
 * the comparison, `interleaved`, `times` and `margin` count. *least is infinite where the pair has
 * too few units for such a p-value. LB_OOM. */
enum lb_status lb_least_named(const struct lb_run_comparison *comparison,
                              const struct lb_pair *pair, double p_limit, double *least,
                              struct lb_error *err);

#endif
