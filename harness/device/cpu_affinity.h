/* Which CPUs a case runs on. */
#ifndef LB_CPU_AFFINITY_H
#define LB_CPU_AFFINITY_H

#include <stdbool.h>
#include <stddef.h>

/* Confines the calling thread, and threads that it starts from now on, to `count` CPUs: the last of
 * those that it could use when this was first called, since the first take most interrupts. With
 * fewer there, or where the system refuses, it may use them all. Describes them in text: "CPU 3",
 * "CPUs 2-3", "any CPU". Call it on one thread only. */
void lb_pin(int count, char *text, size_t size);

/* Lets the calling thread use all of them again. */
void lb_unpin(void);

/* On a CPU; last: no other that shares its third-level cache comes after it. */
typedef void lb_cpu_visit(void *user, bool last);

/* Calls visit on each CPU that lb_pin gave to the case, whatever threads were bound to since, and
 * then leaves the calling thread where it was; on that CPU alone where there are no more. */
void lb_visit_cpus(lb_cpu_visit *visit, void *user);

#endif
