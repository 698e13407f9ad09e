/* Looking before running: --list, --plan, --explain, --version, on stdout. */
#ifndef LB_LIST_H
#define LB_LIST_H

#include "run/sweep.h"

/* A line a case: its text, and "ok" or why it can't run. Where no sizes were asked for, comments
 * above them list the implementations and their variants. */
enum lb_status lb_list_print(const struct lb_session *session, const struct lb_plan *plan);

/* How many cases by implementation, the largest memory, about how long. */
void lb_plan_print(const struct lb_session *session, const struct lb_plan *plan);

/* Says on stderr why the plan has no case. */
void lb_plan_say_empty(const struct lb_plan *plan);

/* One case (options->subject), or the problem on every implementation when it names none. */
enum lb_status lb_explain_print(const struct lb_session *session, struct lb_error *err);

void lb_version_print(void);

#endif
