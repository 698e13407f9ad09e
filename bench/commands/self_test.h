/* --self-test: what the tool's own verdicts are worth on this machine. */
#ifndef LB_SELF_TEST_H
#define LB_SELF_TEST_H

#include "run/sweep.h"

/* Compares the plan's quickest cases with themselves, in fresh processes, and a planted slowdown
 * with none; prints rate of false alarms, smallest difference found, timer and noise of the
 * machine, with advice. --quick does a tenth of it. *exit_code: LB_EXIT_FAILED when the full test
 * shows that verdicts can't be trusted here. */
enum lb_status lb_self_test(const struct lb_session *session, const struct lb_plan *plan,
                            int *exit_code, struct lb_error *err);

#endif
