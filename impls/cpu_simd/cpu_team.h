/* Threads that share the steps of one call: they live as long as the process, are pinned to a CPU
 * each, and meet at barriers that cost a fraction of a microsecond. */
#ifndef LB_CPU_TEAM_H
#define LB_CPU_TEAM_H

#include <stddef.h>

#include "api/status.h"

struct lb_team;

/* A team of `threads`, the caller among them: the process's own, one at a time. Pins the caller to
 * the first of the CPUs that it may use, the others to those that follow. LB_UNSUPPORTED when there
 * are fewer CPUs than threads, LB_FAILED when a thread does not start. */
enum lb_status lb_team_open(int threads, struct lb_team **team, struct lb_error *err);

/* Lets the caller use all its CPUs again. The threads sleep until the next open. Accepts NULL. */
void lb_team_close(struct lb_team *team);

/* Calls work(arg, thread) for each thread 0 .. threads - 1 at once, 0 on the caller; returns when
 * all have. A team of NULL is the caller alone. */
void lb_team_run(struct lb_team *team, void (*work)(void *arg, size_t thread), void *arg);

/* Inside work: returns when all threads of the team have called it. What they wrote before is
 * visible to all after. */
void lb_team_meet(struct lb_team *team);

#endif
