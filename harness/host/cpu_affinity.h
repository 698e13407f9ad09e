/* Which CPUs a case runs on. */
#ifndef LB_CPU_AFFINITY_H
#define LB_CPU_AFFINITY_H

#include <stdbool.h>
#include <stddef.h>

/* Pins the calling thread, and threads that it starts later, to `count` of the CPUs that it could
 * use at the first call: each of another core, as long as there are cores, and the last ones,
 * because the first CPUs take most interrupts. Hyper-threads of the same core serve only when there
 * are fewer cores than count. When there are fewer CPUs, or the system refuses, the thread may use
 * all of them. Describes the choice in text: "CPU 3", "CPUs 2-3", "any CPU". To be called on one
 * thread only. */
void lb_pin(int count, char *text, size_t size);

/* Lets the calling thread use all CPUs again. */
void lb_unpin(void);

/* Calls work while the calling thread may use all CPUs, and then pins it as it was. Threads that
 * work starts stay unpinned. */
void lb_while_unpinned(void (*work)(void *user), void *user);

/* The CPU time in ns, until now, of those threads of this process that are not bound to the CPUs
 * that lb_pin gave to the case. 0 where nothing is pinned or the system does not say. */
double lb_cpu_ns_elsewhere(void);

/* Runs on a CPU. last: no CPU that shares its third-level cache is visited after it. */
typedef void lb_cpu_visit(void *user, bool last);

/* Calls visit on each CPU that lb_pin gave to the case, even if the thread was bound to fewer of
 * them since, and on the current CPU last. Restores the thread's binding. Where nothing is pinned,
 * or to one CPU only, it calls visit once, on the current CPU. */
void lb_visit_cpus(lb_cpu_visit *visit, void *user);

#endif
