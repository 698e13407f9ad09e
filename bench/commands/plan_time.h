/* --plan: how many cases a sweep would run, and how much memory and time they need. */
#ifndef LB_PLAN_TIME_H
#define LB_PLAN_TIME_H

#include "sweep/sweep.h"

/* Prints how many cases each implementation has, the memory of the largest problem, and the
 * predicted time of the whole plan. */
void lb_plan_print(const struct lb_session *session, const struct lb_plan *plan);

/* Prints on stderr why the plan has no case. */
void lb_plan_print_empty(const struct lb_plan *plan);

/* Prints which part of the plan this is, behind start; nothing for a whole plan. */
void lb_print_shard(const char *start, const struct lb_plan *plan);

#endif
