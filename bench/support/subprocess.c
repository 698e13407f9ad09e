/* Starting other programs: workers, gnuplot; and ending workers with all that they have started. */
#include "support/subprocess.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

enum { END_LIMIT_S = 5 /* for a killed child to end */, STRAYS_LIMIT_S = 2 /* for strays */ };

extern char **environ;

/* The children of this process that are no strays: those that it had before its first watched
 * child, and the watched ones that live. */
static pid_t *known;
static size_t known_count;

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

/* Opens the list of the main thread's children, which are those that it has started and all that
 * this process adopts. NULL where the system has none. */
static FILE *open_children(void)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
    return fopen(path, "r");
}

static void know(pid_t child)
{
    known = lb_room(known, known_count, sizeof(*known));
    known[known_count++] = child;
}

void lb_watch_child(pid_t child)
{
    static bool adopts;
    pid_t other;
    FILE *children = adopts ? NULL : open_children();
    while (children && fscanf(children, "%d", &other) == 1)
        if (other != child)
            know(other);
    if (children)
        fclose(children);
    if (!adopts)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    adopts = true;
    know(child);
}

/* Ends what the child left behind: processes that had left its process group, and so were not
 * killed with it. */
static void end_strays(pid_t child)
{
    size_t ended = 0;
    double start = lb_now_ns();
    for (int strays = 1; strays > 0 && lb_now_ns() - start < STRAYS_LIMIT_S * 1e9;) {
        pid_t stray;
        FILE *children = open_children();
        strays = 0;
        while (children && fscanf(children, "%d", &stray) == 1) {
            size_t i = 0;
            while (i < known_count && known[i] != stray)
                i++;
            if (i < known_count)
                continue;
            strays++;
            kill(stray, SIGKILL);
            ended += waitpid(stray, NULL, WNOHANG) == stray;
        }
        if (children)
            fclose(children);
        if (strays > 0)
            usleep(1000); /* for them to end, and for their children to become ours */
    }
    if (ended > 0)
        fprintf(stderr, "warning: worker %ld left %zu process%s behind, which %s ended\n",
                (long)child, ended, ended == 1 ? "" : "es", ended == 1 ? "was" : "were");
}

int lb_end_child(pid_t child)
{
    int status = 0;
    pid_t ended;
    double start = lb_now_ns();
    kill(-child, SIGKILL); /* its whole process group */
    while ((ended = waitpid(child, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        if (lb_now_ns() - start > END_LIMIT_S * 1e9) {
            fprintf(stderr,
                    "warning: worker %ld was killed and has not ended after %d s, because it is "
                    "stuck in a driver; it may still hold the device\n",
                    (long)child, END_LIMIT_S);
            break;
        }
        usleep(1000);
    }
    for (size_t i = 0; i < known_count; i++)
        if (known[i] == child)
            known[i] = known[--known_count];
    end_strays(child);
    return status;
}
