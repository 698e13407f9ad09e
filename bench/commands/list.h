/* --list and --plan: what a sweep would run, which of it can run here, and what it would need. */
#ifndef LB_LIST_H
#define LB_LIST_H

#include "case/probe.h"
#include "sweep/sweep.h"

/* Prints one line per case: its text, and "ok" or why it can't run. If the command line gives no
 * sizes, comment lines above list the implementations and their variants. With --format json it is
 * one document: {"implementations":[{"name","summary","absent","variants"}],
 * "cases":[{"case","status","reason"}]}. LB_INVALID for another format, LB_OOM, LB_INTERRUPTED. */
enum lb_status lb_list_print(const struct lb_session *session, const struct lb_plan *plan,
                             struct lb_error *err);

/* Whether a case can run. A plug-in is asked in its worker process, and so is an implementation
 * that is to use more threads than there are CPUs, which its `create` refuses. probe may be NULL.
 * The status is that of the row, and why says the reason. */
enum lb_status lb_ask(const struct lb_session *session, const struct lb_impl_entry *impl_entry,
                      const struct lb_case *c, double available, struct lb_probe *probe,
                      struct lb_error *why);

/* --plan: prints how many cases each implementation has, the memory of the largest problem, and the
 * predicted time of the whole plan. */
void lb_plan_print(const struct lb_session *session, const struct lb_plan *plan);

/* Prints on stderr why the plan has no case. */
void lb_plan_print_empty(const struct lb_plan *plan);

#endif
