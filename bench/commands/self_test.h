/* --self-test: how reliable the program's verdicts are on this machine. */
#ifndef LB_SELF_TEST_H
#define LB_SELF_TEST_H

#include "sweep/sweep.h"

/* Compares the plan's quickest cases with themselves in fresh processes, and a case with the same
 * case slowed down on purpose. Prints the rate of false alarms, the smallest difference found, the
 * machine's timer and noise, and advice. --quick does a tenth of the comparisons. *exit_code is
 * LB_EXIT_FAILED when the full test shows that verdicts can't be trusted here. */
enum lb_status lb_self_test(const struct lb_session *session, const struct lb_plan *plan,
                            int *exit_code, struct lb_error *err);

#endif
