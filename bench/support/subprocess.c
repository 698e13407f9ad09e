/* Starting other programs: workers, gnuplot; and ending workers with all that they have started. */
#include "support/subprocess.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "host/process.h"

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

/* Returns the id of the process in that folder of /proc when it is a stray: a child of this process
 * that it does not know. Otherwise returns 0. */
static pid_t stray_of(const char *process)
{
    char text[LB_PROC_STAT_SIZE];
    int parent = 0;
    const char *stat = lb_proc_stat(process, text);
    if (!stat || sscanf(stat, ") %*c %d", &parent) != 1 || parent != getpid())
        return 0;
    pid_t child = (pid_t)strtol(text, NULL, 10);
    size_t i = 0;
    while (i < known_count && known[i] != child)
        i++;
    return i < known_count ? 0 : child;
}

static void know(pid_t child)
{
    known = lb_room(known, known_count, sizeof(*known));
    known[known_count++] = child;
}

static double know_stray(const char *process)
{
    pid_t stray = stray_of(process);
    if (stray)
        know(stray);
    return 0;
}

void lb_watch_child(pid_t child)
{
    static bool adopts;
    know(child);
    if (!adopts) {
        lb_proc_sum("/proc", know_stray);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
    adopts = true;
}

static bool kills; /* the strays, because their time to end by themselves is over */
static int killed; /* how many strays have ended since then */

/* Returns 1 for a stray, also for one that has just ended: its own children are strays now. */
static double end_stray(const char *process)
{
    pid_t stray = stray_of(process);
    if (!stray)
        return 0;
    if (kills)
        kill(stray, SIGKILL);
    if (waitpid(stray, NULL, WNOHANG) == stray)
        killed += kills;
    return 1;
}

int lb_end_children(double limit_s)
{
    const double start = lb_now_ns();
    siginfo_t info;
    kills = false;
    killed = 0;
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0) { /* there are children */
        double waited_s = (lb_now_ns() - start) / 1e9;
        kills = waited_s >= limit_s;
        if (lb_proc_sum("/proc", end_stray) == 0)
            break;
        if (waited_s > limit_s + STRAYS_LIMIT_S)
            return killed + 1; /* at least one does not end */
        usleep(1000);
    }
    return killed;
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
    /* What the child left behind had left its process group, and so was not killed with it. */
    int strays = lb_end_children(0);
    if (strays > 0)
        fprintf(stderr, "warning: worker %ld left %d process%s behind, which %s ended\n",
                (long)child, strays, strays == 1 ? "" : "es", strays == 1 ? "was" : "were");
    for (size_t i = 0; i < known_count && ended == child; i++)
        if (known[i] == child)
            known[i] = known[--known_count];
    return status;
}
