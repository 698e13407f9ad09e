/* Which CPUs a case runs on. */
#ifndef LB_AFFINITY_H
#define LB_AFFINITY_H

#include <stddef.h>

/* Confines the calling thread, and threads that it starts from now on, to `count` CPUs: the last of
 * those that it could use when this was first called, since the first take most interrupts. With
 * fewer there, or where the system refuses, it may use them all. Describes them in text: "CPU 3",
 * "CPUs 2-3", "any CPU". Call it on one thread only. */
void lb_pin(int count, char *text, size_t size);

/* Lets the calling thread use all of them again. */
void lb_unpin(void);

#endif
