/* The processes behind worker.h: start, watch, bury. */
#include "run/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/memory.h"
#include "support/subprocess.h"

enum {
    WORKER_FD = 3,     /* the worker's end of the channel */
    WATCH_MS = 100,    /* how often a silent worker's memory and time are looked at */
    LEAVE_LIMIT_S = 10 /* for ending by itself: a profiler may write out what it has */
};

enum lb_status lb_pool_create(const struct lb_worker_limits *limits,
                              const volatile sig_atomic_t *stop, struct lb_pool **out,
                              struct lb_error *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return lb_fail(err, LB_OOM, "out of memory");
    (*out)->limits = *limits;
    (*out)->stop = stop;
    return LB_OK;
}

void lb_pool_limit(struct lb_pool *pool, const struct lb_worker_limits *limits)
{
    pool->limits = *limits;
}

/* Starts this very program as a worker. */
static enum lb_status spawn_worker(int fd, int device, pid_t *pid, struct lb_error *err)
{
    char parent[32], ordinal[16];
    snprintf(parent, sizeof(parent), "%ld", (long)getpid());
    snprintf(ordinal, sizeof(ordinal), "%d", device);
    char *const argv[] = {"bench-lstm", "--worker", parent, ordinal, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, WORKER_FD);
    /* Whatever an implementation prints must not end up among the program's data. */
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    int failed = lb_spawn("/proc/self/exe", &actions, argv, pid);
    posix_spawn_file_actions_destroy(&actions);
    return failed ? lb_fail(err, LB_FAILED, "starting a worker failed: %s", strerror(failed))
                  : LB_OK;
}

enum lb_status lb_worker_start(struct lb_pool *pool, const char *origin, struct lb_worker **out,
                               struct lb_error *err)
{
    int ends[2];
    struct lb_worker *worker = calloc(1, sizeof(*worker));
    char *copy = strdup(origin);
    if (!worker || !copy || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        free(worker);
        free(copy);
        return lb_fail(err, LB_FAILED, "starting a worker failed: %s", strerror(errno));
    }
    *worker = (struct lb_worker){.channel = {.fd = ends[0]}, .origin = copy, .next = pool->workers};
    enum lb_status st = spawn_worker(ends[1], pool->limits.device, &worker->pid, err);
    close(ends[1]);
    if (st != LB_OK) {
        lb_channel_close(&worker->channel);
        free(copy);
        free(worker);
        return st;
    }
    pool->workers = worker;
    *out = worker;
    return LB_OK;
}

/* Kills the worker if it still lives, takes it from the pool, returns its wait status. */
int lb_worker_end(struct lb_pool *pool, struct lb_worker *worker)
{
    int status = 0;
    kill(-worker->pid, SIGKILL); /* and what it started: it leads a group of its own */
    while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
        ;
    for (struct lb_worker **at = &pool->workers; *at; at = &(*at)->next) {
        if (*at == worker) {
            *at = worker->next;
            break;
        }
    }
    lb_channel_close(&worker->channel);
    free(worker->origin);
    free(worker);
    return status;
}

/* Whether the worker has ended; its wait status stays. */
static bool has_ended(const struct lb_worker *worker)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

static bool await_exit(const struct lb_worker *worker, double limit_s)
{
    for (double start = lb_now_ns(); lb_now_ns() - start < limit_s * 1e9; usleep(2000))
        if (has_ended(worker))
            return true;
    return false;
}

/* Workers that wait for a request leave by themselves when the program hangs up, so that profilers
 * attached to them get to their ends; one that is stuck in a case is killed. */
void lb_pool_renew(struct lb_pool *pool)
{
    bool stopped = pool->stop && *pool->stop;
    for (struct lb_worker *worker = pool->workers; worker; worker = worker->next)
        shutdown(worker->channel.fd, SHUT_RDWR);
    while (pool->workers) {
        await_exit(pool->workers, stopped ? 0.5 : LEAVE_LIMIT_S);
        lb_worker_end(pool, pool->workers);
    }
}

void lb_pool_destroy(struct lb_pool *pool)
{
    if (!pool)
        return;
    lb_pool_renew(pool);
    free(pool);
}

/* Writes "used X, has Y" into fault when the worker holds more than its limit. The margin keeps
 * the machine itself alive. */
static bool over_memory(const struct lb_pool *pool, const struct lb_worker *worker,
                        struct lb_fault *fault)
{
    double used = lb_resident_bytes(worker->pid), limit = pool->limits.memory_bytes;
    double margin = 0.03 * lb_host_total();
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

/* The worker hung up by itself: what its wait status says. */
static void describe_exit(int status, const char *phase, struct lb_fault *fault)
{
    fault->verdict = LB_VERDICT_CRASH;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
        fault->verdict = LB_VERDICT_OOM;
        snprintf(fault->reason, sizeof(fault->reason),
                 "killed from outside in %s, most likely for want of memory", phase);
    } else if (WIFSIGNALED(status)) {
        snprintf(fault->reason, sizeof(fault->reason), "%s (signal %d) in %s",
                 strsignal(WTERMSIG(status)), WTERMSIG(status), phase);
    } else {
        snprintf(fault->reason, sizeof(fault->reason), "ended the process with exit code %d in %s",
                 WEXITSTATUS(status), phase);
    }
}

/* A worker that closed its channel is about to be gone: gives it a moment to leave its own wait
 * status, then makes sure. */
static void bury(struct lb_pool *pool, struct lb_worker *worker, const char *phase,
                 struct lb_fault *fault)
{
    bool ended = await_exit(worker, 1);
    int status = lb_worker_end(pool, worker);
    if (ended) {
        describe_exit(status, phase, fault);
        return;
    }
    fault->verdict = LB_VERDICT_ERROR;
    snprintf(fault->reason, sizeof(fault->reason), "broke off its talk with the program in %s",
             phase);
}

/* Waits for the worker's next message. Returns LB_OK with the message; LB_INTERRUPTED; or
 * LB_FAILED with fault filled and the worker gone. limit_s may be infinite. */
enum lb_status lb_worker_await(struct lb_pool *pool, struct lb_worker *worker, const char *phase,
                               double limit_s, json_t **message, struct lb_fault *fault)
{
    double start = lb_now_ns();
    for (;;) {
        if (lb_channel_receive(&worker->channel, WATCH_MS, message, NULL) != LB_OK) {
            bury(pool, worker, phase, fault);
            return LB_FAILED;
        }
        if (*message)
            return LB_OK;
        if (pool->stop && *pool->stop)
            return LB_INTERRUPTED;
        if (has_ended(worker)) { /* though a child of its own holds the channel open */
            bury(pool, worker, phase, fault);
            return LB_FAILED;
        }
        bool late = lb_now_ns() - start > limit_s * 1e9;
        if (late) {
            fault->verdict = LB_VERDICT_TIMEOUT;
            snprintf(fault->reason, sizeof(fault->reason), "%s did not return within %.3g s", phase,
                     limit_s);
        }
        if (late || over_memory(pool, worker, fault)) {
            lb_worker_end(pool, worker);
            return LB_FAILED;
        }
    }
}
