/* Threads that share work which falls into independent parts. */
#ifndef LB_THREAD_POOL_H
#define LB_THREAD_POOL_H

#include <stddef.h>

/* How many threads are worth having: the CPUs that the calling thread may run on, at most 16. A
 * case on the host is pinned to its CPUs, so its harness works with no more than these. */
size_t lb_thread_pool_size(void);

/* Calls work(user, i, parts) for every i below parts, on as many threads, the caller's among them,
 * and returns when all have returned. Fewer threads where the system gives no more. One call at a
 * time. */
void lb_thread_pool_run(void (*work)(void *user, size_t part, size_t parts), void *user,
                        size_t parts);

#endif
