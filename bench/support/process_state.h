/* What an implementation may leave behind in its worker process that would slow or change the next
 * one: threads, child processes, memory, open files, and the settings of the process. */
#ifndef LB_PROCESS_STATE_H
#define LB_PROCESS_STATE_H

#include <stdbool.h>
#include <stddef.h>

enum { LB_STATE_FILES = 1024 /* file descriptors that are looked at */ };

/* A reading of this process. It is large; its content is process_state.c's own. */
struct lb_process_state;

struct lb_process_state *lb_process_state_create(void); /* NULL when memory runs out */

/* Reads everything that lb_process_state_compare compares. */
void lb_process_state_read(struct lb_process_state *state);

/* Reads threads, child processes, memory and open files, but not the settings. */
void lb_process_state_read_resources(struct lb_process_state *state);

/* Reads again what belongs to the calling thread and to the process as such: CPU affinity,
 * priority, floating-point modes, signal handlers, working directory, locale, umask, limits. */
void lb_process_state_read_settings(struct lb_process_state *state);

/* What may be left without a word. */
struct lb_state_allowance {
    double bytes;         /* of memory */
    bool descriptors;     /* of the kinds that libraries keep: pipes, sockets, /dev, anonymous */
    bool all_descriptors; /* of any kind, as the driver of a device keeps them */
    size_t threads;       /* that are idle */
};

/* How many threads the process had. */
size_t lb_process_state_threads(const struct lb_process_state *state);

/* Writes what differs into text [size], as a list: "flush-to-zero on, the working directory /"; ""
 * when nothing does. */
void lb_process_state_compare(const struct lb_process_state *before,
                              const struct lb_process_state *after,
                              const struct lb_state_allowance *allowance, char *text, size_t size);

/* Whether a thread of the process, other than the calling one, runs or waits for a CPU. */
bool lb_threads_run(long pid);

/* Waits until all threads but the calling one are idle, at most limit_s. Returns 0 when they are,
 * else the share of a CPU that they used meanwhile: about 2 when two of them spin. */
double lb_await_idle_threads(double limit_s);

/* Waits up to limit_s for the child processes of this one to end, and kills those that remain.
 * Returns how many those were. */
int lb_end_children(double limit_s);

#endif
