/* One worker process, seen from the program. */
#include "run/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/host_memory.h"
#include "host/cgroup.h"
#include "support/leftovers.h"
#include "support/subprocess.h"

enum {
    WORKER_FD = 3,   /* the worker's end of the channel */
    END_LIMIT_S = 5, /* for a killed worker to end */
    WATCH_MS = 100,  /* how often the memory and time of a silent worker are checked */
    STILL_MS =
        1000 /* most that one check may count: when it comes later, the program stood still */
};

/* The children of this process that are no strays: those that it had before its first worker, and
 * the workers that live. */
static pid_t known[256];
static size_t known_count;

/* Lists the children of all threads of this process; returns how many, at most `room`. */
static size_t list_children(pid_t *children, size_t room)
{
    size_t count = 0;
    glob_t lists;
    if (glob("/proc/self/task/*/children", 0, NULL, &lists) != 0)
        return 0;
    for (size_t i = 0; i < lists.gl_pathc; i++) {
        FILE *list = fopen(lists.gl_pathv[i], "r");
        while (list && count < room && fscanf(list, "%d", &children[count]) == 1)
            count++;
        if (list)
            fclose(list);
    }
    globfree(&lists);
    return count;
}

static bool is_known(pid_t pid)
{
    size_t i = 0;
    while (i < known_count && known[i] != pid)
        i++;
    return i < known_count;
}

/* From the first worker on, what a worker leaves behind becomes a child of this process. */
static void note_worker(pid_t pid)
{
    static bool adopts;
    if (!adopts) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        known_count = list_children(known, sizeof(known) / sizeof(known[0]) / 2);
    }
    adopts = true;
    if (known_count < sizeof(known) / sizeof(known[0]))
        known[known_count++] = pid;
}

static void forget_worker(pid_t pid)
{
    for (size_t i = 0; i < known_count; i++)
        if (known[i] == pid)
            known[i] = known[--known_count];
}

/* Ends what the worker left behind: processes that had left its process group, and so were not
 * killed with it. */
static void end_strays(long worker)
{
    enum { ROUNDS = 20, MOST = 64 };
    pid_t children[MOST];
    size_t ended = 0;
    bool all_known = known_count < sizeof(known) / sizeof(known[0]);
    for (int round = 0; all_known && round < ROUNDS; round++) {
        size_t count = list_children(children, MOST), strays = 0;
        for (size_t i = 0; i < count; i++) {
            if (is_known(children[i]))
                continue;
            strays++;
            kill(children[i], SIGKILL);
            ended += waitpid(children[i], NULL, WNOHANG) == children[i];
        }
        if (strays == 0)
            break;
        usleep(1000); /* for them to end, and for their children to become ours */
    }
    if (ended > 0)
        fprintf(stderr, "warning: worker %ld left %zu process%s behind, which %s ended\n", worker,
                ended, ended == 1 ? "" : "es", ended == 1 ? "was" : "were");
}

/* Starts the program, or this very one, as a worker. */
static enum lb_status spawn_worker(const char *program, int fd, int device, pid_t *pid,
                                   struct lb_error *err)
{
    char parent[32], ordinal[16];
    snprintf(parent, sizeof(parent), "%ld", (long)getpid());
    snprintf(ordinal, sizeof(ordinal), "%d", device);
    char *const argv[] = {"bench-lstm", "--worker", parent, ordinal, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, WORKER_FD);
    /* What an implementation prints must not mix with the program's output. */
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    int failed = lb_spawn(program ? program : "/proc/self/exe", &actions, argv, pid);
    posix_spawn_file_actions_destroy(&actions);
    return failed ? lb_fail(err, LB_FAILED, "starting a worker failed: %s", strerror(failed))
                  : LB_OK;
}

enum lb_status lb_worker_start(const char *name, const char *program, int device,
                               struct lb_worker **out, struct lb_error *err)
{
    int ends[2];
    struct lb_worker *worker = calloc(1, sizeof(*worker));
    char *copy = strdup(name);
    if (!worker || !copy || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        free(worker);
        free(copy);
        return lb_fail(err, LB_FAILED, "starting a worker failed: %s", strerror(errno));
    }
    *worker = (struct lb_worker){.channel = {.fd = ends[0]}, .name = copy, .oom_kills = NAN};
    enum lb_status st = spawn_worker(program, ends[1], device, &worker->pid, err);
    close(ends[1]);
    if (st == LB_OK)
        note_worker(worker->pid);
    if (st != LB_OK) {
        worker->pid = 0;
        lb_worker_destroy(worker);
        return st;
    }
    *out = worker;
    return LB_OK;
}

/* Kills the worker, with all that it started, and returns its wait status. A worker that is stuck
 * in a driver may not end: after END_LIMIT_S it is left to itself, with a warning. */
static int end_process(struct lb_worker *worker)
{
    int status = 0;
    double start = lb_now_ns();
    kill(-worker->pid, SIGKILL); /* its whole process group */
    for (;;) {
        pid_t ended = waitpid(worker->pid, &status, WNOHANG);
        if (ended == worker->pid || (ended < 0 && errno != EINTR))
            break;
        if (lb_now_ns() - start > END_LIMIT_S * 1e9) {
            fprintf(stderr,
                    "warning: worker %ld was killed and has not ended after %d s, because it is "
                    "stuck in a driver; it may still hold the device\n",
                    (long)worker->pid, END_LIMIT_S);
            break;
        }
        usleep(1000);
    }
    forget_worker(worker->pid);
    end_strays(worker->pid);
    worker->pid = 0;
    return status;
}

void lb_worker_destroy(struct lb_worker *worker)
{
    if (!worker)
        return;
    if (worker->pid > 0)
        end_process(worker);
    lb_channel_close(&worker->channel);
    free(worker->name);
    free(worker);
}

/* Whether the worker has ended; its wait status can still be read. */
static bool has_ended(const struct lb_worker *worker)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

bool lb_worker_has_left(const struct lb_worker *worker, double limit_s)
{
    for (double start = lb_now_ns(); lb_now_ns() - start < limit_s * 1e9; usleep(2000))
        if (has_ended(worker))
            return true;
    return false;
}

bool lb_worker_is_idle(const struct lb_worker *worker, double limit_s)
{
    for (double end = lb_now_ns() + limit_s * 1e9; lb_threads_run(worker->pid); usleep(1000))
        if (lb_now_ns() > end)
            return false;
    return true;
}

void lb_worker_dismiss(struct lb_worker *worker)
{
    shutdown(worker->channel.fd, SHUT_RDWR);
}

/* Whether the worker holds more than it may, or leaves the host with so little that the machine
 * itself would suffer; fills *fault then. */
static bool over_memory(const struct lb_worker *worker, double limit, struct lb_fault *fault)
{
    double used = lb_resident_bytes(worker->pid), margin = 0.03 * lb_host_total();
    bool exhausted = lb_host_available() < margin && used > margin;
    if (!exhausted && (limit <= 0 || used <= limit))
        return false;
    char used_text[32], limit_text[32];
    lb_format_bytes(used, used_text);
    lb_format_bytes(exhausted ? used + lb_host_available() : limit, limit_text);
    fault->verdict = LB_VERDICT_OOM;
    snprintf(fault->reason, sizeof(fault->reason), "used %s of the %s there were, and was ended",
             used_text, limit_text);
    return true;
}

/* What a worker that was killed by SIGKILL died of. Only the kernel's count tells whether that was
 * a lack of memory. */
static void describe_kill(const struct lb_worker *worker, const char *phase, struct lb_fault *fault)
{
    double kills = lb_oom_kills("");
    if (kills > worker->oom_kills) {
        fault->verdict = LB_VERDICT_OOM;
        snprintf(fault->reason, sizeof(fault->reason),
                 "killed by the kernel in %s, because memory ran out", phase);
    } else {
        fault->innocent = true;
        snprintf(fault->reason, sizeof(fault->reason), "killed from outside (signal %d) in %s; %s",
                 SIGKILL, phase,
                 isnan(kills) ? "whether memory ran out is not known here"
                              : "the kernel killed nobody for memory");
    }
}

/* What the wait status of a worker that ended by itself says. */
static void describe_exit(const struct lb_worker *worker, int status, const char *phase,
                          struct lb_fault *fault)
{
    fault->verdict = LB_VERDICT_CRASH;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        describe_kill(worker, phase, fault);
    else if (WIFSIGNALED(status))
        snprintf(fault->reason, sizeof(fault->reason), "%s (signal %d) in %s",
                 strsignal(WTERMSIG(status)), WTERMSIG(status), phase);
    else
        snprintf(fault->reason, sizeof(fault->reason), "ended the process with exit code %d in %s",
                 WEXITSTATUS(status), phase);
}

/* A worker that closed its channel is about to end: waits a moment, so that its wait status can
 * tell why, and then makes sure that it has ended. */
static void describe_end(struct lb_worker *worker, const char *phase, struct lb_fault *fault)
{
    bool left = lb_worker_has_left(worker, 1);
    int status = end_process(worker);
    if (left) {
        describe_exit(worker, status, phase, fault);
        return;
    }
    fault->verdict = LB_VERDICT_ERROR;
    snprintf(fault->reason, sizeof(fault->reason),
             "closed its connection to the program in %s, but went on running", phase);
}

void lb_worker_send(struct lb_worker *worker, json_t *request)
{
    worker->oom_kills = lb_oom_kills("");
    lb_channel_send(&worker->channel, request, NULL);
}

/* Takes the worker's next message if there is one. LB_FAILED: it was lost, with *fault filled. */
static enum lb_status receive(struct lb_worker *worker, const char *phase, json_t **message,
                              struct lb_fault *fault)
{
    struct lb_error why = {""};
    enum lb_status st = lb_channel_receive(&worker->channel, WATCH_MS, message, &why);
    if (st == LB_OK)
        return LB_OK;
    if (st == LB_INVALID) {
        fault->verdict = LB_VERDICT_ERROR;
        snprintf(fault->reason, sizeof(fault->reason),
                 "wrote something else to its connection to the program in %s: %.200s", phase,
                 why.text);
        end_process(worker);
    } else {
        describe_end(worker, phase, fault);
    }
    return LB_FAILED;
}

/* A clock that counts the machine's sleep. */
static double boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

enum lb_status lb_worker_await(struct lb_worker *worker, const char *phase,
                               const struct lb_watch *watch, json_t **message,
                               struct lb_fault *fault)
{
    double last = boot_ns(), silent_ns = 0;
    for (;;) {
        if (receive(worker, phase, message, fault) != LB_OK)
            return LB_FAILED;
        if (*message)
            return LB_OK;
        if (watch->stop && *watch->stop)
            return LB_INTERRUPTED;
        if (has_ended(worker)) { /* a child of its own may still hold the channel open */
            describe_end(worker, phase, fault);
            return LB_FAILED;
        }
        /* While this program stood still, stopped or asleep with the machine, the worker did too,
         * or could have. */
        double now = boot_ns();
        silent_ns += fmin(now - last, STILL_MS * 1e6);
        last = now;
        bool late = silent_ns > watch->limit_s * 1e9;
        if (late) {
            fault->verdict = LB_VERDICT_TIMEOUT;
            snprintf(fault->reason, sizeof(fault->reason), "%s did not return within %.3g s", phase,
                     watch->limit_s);
        }
        if (late || over_memory(worker, watch->memory_bytes, fault)) {
            end_process(worker);
            return LB_FAILED;
        }
    }
}
