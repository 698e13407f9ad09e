/* Starting other programs: workers, gnuplot. */
#ifndef LB_SUBPROCESS_H
#define LB_SUBPROCESS_H

#include <spawn.h>
#include <sys/types.h>

/* Starts a program, a path or a name to look for in PATH, with default signals and in a process
 * group of its own, whose number is the child's: a Ctrl-C in the terminal reaches this program
 * alone, which then decides. argv ends with NULL. 0, or the errno of the failure. */
int lb_spawn(const char *program, const posix_spawn_file_actions_t *actions, char *const argv[],
             pid_t *child);

#endif
