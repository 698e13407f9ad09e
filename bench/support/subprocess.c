/* Starting other programs: workers, gnuplot. */
#include "support/subprocess.h"

#include <signal.h>

extern char **environ;

int lb_spawn(const char *program, const posix_spawn_file_actions_t *actions, char *const argv[],
             pid_t *child)
{
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int failed = posix_spawnp(child, program, actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    return failed;
}
