/* --cross-check: the differences between implementations and precisions on the same problem. */
#ifndef LB_CROSS_CHECK_H
#define LB_CROSS_CHECK_H

#include "cli/plan.h"
#include "run/session.h"

/* Runs each case of the plan once, verified but not timed, and prints for each problem the
 * largest difference between the outputs y of any two implementations and precisions, with y of
 * options->outputs among them where it is given. Inputs and weights are rounded to each case's
 * precision, as a user of that precision would round them. *exit_code: LB_EXIT_FAILED when a
 * case is wrong or failed, or when that y is further from every output than rounding to their
 * precisions explains; LB_EXIT_NOTHING when no two outputs could be compared. LB_INVALID:
 * the file of options->outputs can't be read, or its sizes are not those of a problem. LB_IO,
 * LB_OOM, LB_INTERRUPTED. */
enum lb_status lb_cross_check(const struct lb_session *session, const struct lb_plan *plan,
                              int *exit_code, struct lb_error *err);

#endif
