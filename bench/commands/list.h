/* --list: the implementations and the cases, and which of them can run here. */
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

#endif
