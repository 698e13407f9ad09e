/* Starting other programs: workers, gnuplot. */
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

#endif
