/* What would run, without running it: --list, --plan, --explain and --version, on stdout. */
#ifndef LB_LIST_H
#define LB_LIST_H

#include "run/sweep.h"

/* Prints one line per case: its text, and "ok" or why it can't run. If the command line gives no
 * sizes, comment lines above list the implementations and their variants. */
enum lb_status lb_list_print(const struct lb_session *session, const struct lb_plan *plan);

/* Prints how many cases each implementation has, the largest memory, and the time to expect. */
void lb_plan_print(const struct lb_session *session, const struct lb_plan *plan);

/* Prints on stderr why the plan has no case. */
void lb_plan_say_empty(const struct lb_plan *plan);

/* Explains the case options->subject, on every implementation when it names none. LB_INVALID. */
enum lb_status lb_explain_print(const struct lb_session *session, struct lb_error *err);

void lb_version_print(void);

#endif
