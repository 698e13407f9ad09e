/* What would run, without running it: --list, --plan, --explain and --version, on stdout. */
#ifndef LB_LIST_H
#define LB_LIST_H

#include "sweep/sweep.h"

/* Prints one line per case: its text, and "ok" or why it can't run. If the command line gives no
 * sizes, comment lines above list the implementations and their variants. With --format json it is
 * one document: {"implementations":[{"name","summary","absent","variants"}],
 * "cases":[{"case","status","reason"}]}. LB_INVALID for another format, LB_OOM, LB_INTERRUPTED. */
enum lb_status lb_list_print(const struct lb_session *session, const struct lb_plan *plan,
                             struct lb_error *err);

/* Prints how many cases each implementation has, the memory of the largest problem, and the
 * predicted time of the whole plan. */
void lb_plan_print(const struct lb_session *session, const struct lb_plan *plan);

/* Prints on stderr why the plan has no case. */
void lb_plan_say_empty(const struct lb_plan *plan);

/* Explains the case options->subject, on every implementation when it names none. LB_INVALID: it is
 * no case. */
enum lb_status lb_explain_print(const struct lb_session *session, struct lb_error *err);

/* Prints the program's version and commit, and the libraries that it uses. */
void lb_version_print(void);

#endif
