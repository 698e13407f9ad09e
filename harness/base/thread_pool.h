/* Threads for two uses: work that falls into independent parts (the oracle's large matrix
 * products), and step loops in which pinned threads meet at barriers (cpu_simd). They sleep between
 * calls. Those for parts are started when first needed and end with the process. */
#ifndef LB_THREAD_POOL_H
#define LB_THREAD_POOL_H

#include <stddef.h>

#include "api/status.h"

/* How many threads are worth having for independent parts: the CPUs that the calling thread may
 * run on, at most 16. A case on the host is pinned to its CPUs, so the oracle uses no more. */
size_t lb_thread_pool_size(void);

/* Calls work(user, i, parts) once for every i below parts, on up to `parts` threads, the caller's
 * among them, and returns when all have returned. Where the system gives fewer threads, those do
 * all parts; while another call has them, the caller alone does. */
void lb_thread_pool_run(void (*work)(void *user, size_t part, size_t parts), void *user,
                        size_t parts);

/* How many threads were started for that. */
size_t lb_thread_pool_started(void);

/* Threads that are pinned to one CPU each. */
struct lb_pinned_threads;

enum { LB_MAX_PINNED_THREADS = 255 };

/* The CPU of a thread, and a number that it has in common with the CPUs that share its third-level
 * cache. */
struct lb_pinned_place {
    int cpu, domain;
};

/* Starts `threads` - 1 threads beside the caller and pins thread i to places[i], where the threads
 * of a domain are neighbours. Where places name a CPU twice, threads sleep at barriers at once.
 * With NULL the places are the first of the CPUs that the caller may use. LB_UNSUPPORTED when there
 * are fewer of these than threads, or more threads than LB_MAX_PINNED_THREADS; LB_FAILED when a
 * thread does not start. */
enum lb_status lb_pinned_threads_open(int threads, const struct lb_pinned_place *places,
                                      struct lb_pinned_threads **out, struct lb_error *err);

/* Divides the threads into teams of `size` consecutive threads, which meet at barriers of their
 * own; the last team may be smaller. At first there is one team. Not for use inside work. Accepts
 * NULL. */
void lb_pinned_threads_divide(struct lb_pinned_threads *pinned, size_t size);

/* Ends the threads and undoes the pinning of the caller. Accepts NULL. */
void lb_pinned_threads_close(struct lb_pinned_threads *pinned);

/* Calls work(arg, thread) on all threads at once, 0 being the caller, and returns when all have
 * returned. With NULL only the caller works. */
void lb_pinned_threads_run(struct lb_pinned_threads *pinned, void (*work)(void *arg, size_t thread),
                           void *arg);

/* For use inside work: returns when all threads have called it, a fraction of a microsecond after
 * the last. What any of them wrote before is visible to all afterwards. With NULL it does
 * nothing. */
void lb_pinned_threads_barrier(struct lb_pinned_threads *pinned);

/* The same for the threads of the calling thread's team alone. */
void lb_pinned_threads_team_barrier(struct lb_pinned_threads *pinned);
#endif
