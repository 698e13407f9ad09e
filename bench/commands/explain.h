/* --explain CASE: why a case can or can not run, its floor, and what would run. */
#ifndef LB_EXPLAIN_H
#define LB_EXPLAIN_H

#include "sweep/sweep.h"

/* Explains the case options->subject, on every implementation when it names none. LB_INVALID: it is
 * no case. */
enum lb_status lb_explain_print(const struct lb_session *session, struct lb_error *err);

#endif
