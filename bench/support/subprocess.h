/* Starting other programs: workers, gnuplot; and ending workers with all that they have started. */
#ifndef LB_SUBPROCESS_H
#define LB_SUBPROCESS_H

#include <spawn.h>
#include <sys/types.h>

/* Starts a program, given as a path or as a name in PATH, with default signals and in a process
 * group of its own, whose id is the child's. So a Ctrl-C in the terminal reaches only this program,
 * which then decides when to end its children. argv ends with NULL. Returns 0, or the errno of the
 * failure. */
int lb_spawn(const char *program, const posix_spawn_file_actions_t *actions, char *const argv[],
             pid_t *child);

/* From the first such child on, what one leaves behind becomes a child of this process. To be
 * called by the main thread, which starts all children. */
void lb_watch_child(pid_t child);

/* Kills a watched child with its process group, and whatever else watched children have left
 * behind, which it says on stderr. Returns the child's wait status. A child that is stuck in a
 * driver may not end: after some seconds it is left to itself, with a warning. */
int lb_end_child(pid_t child);

/* Waits up to limit_s for the other children of this process to end, those that it has adopted
 * among them, and kills those that remain. Returns how many it killed. */
int lb_end_children(double limit_s);

#endif
