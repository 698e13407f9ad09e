/* Worker processes, the program's side: start, ask, watch, bury. */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"
#include "device_record.h"
#include "memory.h"

extern char **environ;

enum {
    WORKER_FD = 3,      /* the worker's end of the channel */
    WATCH_MS = 100,     /* how often a silent worker's memory and time are looked at */
    START_LIMIT_S = 30, /* for loading the program and a plug-in */
    LEAVE_LIMIT_S = 10  /* for ending by itself: a profiler may write out what it has */
};

struct worker {
    pid_t pid;
    struct lb_channel channel;
    char *origin; /* path of the plug-in it serves; "" for the built-ins */
    struct worker *next;
};

struct lb_pool {
    struct lb_worker_limits limits;
    const volatile sig_atomic_t *stop;
    struct worker *workers;
};

/* Why a worker was lost. */
struct fault {
    enum lb_verdict verdict;
    char reason[400];
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

/* Starts this very program as a worker, in a process group of its own so that a Ctrl-C in the
 * terminal reaches the program alone, which then decides. */
static enum lb_status spawn_worker(int fd, int device, pid_t *pid, struct lb_error *err)
{
    char parent[32], ordinal[16];
    snprintf(parent, sizeof(parent), "%ld", (long)getpid());
    snprintf(ordinal, sizeof(ordinal), "%d", device);
    char *const argv[] = {"bench-lstm", "--worker", parent, ordinal, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, WORKER_FD);
    /* Whatever an implementation prints must not end up among the program's data. */
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int failed = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed ? lb_fail(err, LB_FAILED, "starting a worker failed: %s", strerror(failed))
                  : LB_OK;
}

static enum lb_status start_worker(struct lb_pool *pool, const char *origin, struct worker **out,
                                   struct lb_error *err)
{
    int ends[2];
    struct worker *worker = calloc(1, sizeof(*worker));
    char *copy = strdup(origin);
    if (!worker || !copy || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        free(worker);
        free(copy);
        return lb_fail(err, LB_FAILED, "starting a worker failed: %s", strerror(errno));
    }
    *worker = (struct worker){.channel = {.fd = ends[0]}, .origin = copy, .next = pool->workers};
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
static int end_worker(struct lb_pool *pool, struct worker *worker)
{
    int status = 0;
    kill(worker->pid, SIGKILL);
    while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
        ;
    for (struct worker **at = &pool->workers; *at; at = &(*at)->next) {
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

/* Waits until the worker is gone, without taking its wait status. */
static void await_exit(const struct worker *worker, double limit_s)
{
    for (double start = lb_now_ns(); lb_now_ns() - start < limit_s * 1e9; usleep(2000)) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid != 0)
            break;
    }
}

/* Workers that wait for a request leave by themselves when the program hangs up, so that profilers
 * attached to them get to their ends; one that is stuck in a case is killed. */
void lb_pool_renew(struct lb_pool *pool)
{
    bool stopped = pool->stop && *pool->stop;
    for (struct worker *worker = pool->workers; worker; worker = worker->next)
        shutdown(worker->channel.fd, SHUT_RDWR);
    while (pool->workers) {
        await_exit(pool->workers, stopped ? 0.5 : LEAVE_LIMIT_S);
        end_worker(pool, pool->workers);
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
static bool over_memory(const struct lb_pool *pool, const struct worker *worker,
                        struct fault *fault)
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
static void describe_exit(int status, const char *phase, struct fault *fault)
{
    fault->verdict = LB_VERDICT_CRASH;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
        /* Not ours: the caller kills only after a fault of its own. */
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
static void bury(struct lb_pool *pool, struct worker *worker, const char *phase,
                 struct fault *fault)
{
    await_exit(worker, 1);
    int status = end_worker(pool, worker);
    describe_exit(status, phase, fault);
}

/* Waits for the worker's next message. Returns LB_OK with the message; LB_INTERRUPTED; or
 * LB_FAILED with fault filled and the worker gone. limit_s may be infinite. */
static enum lb_status await(struct lb_pool *pool, struct worker *worker, const char *phase,
                            double limit_s, json_t **message, struct fault *fault)
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
        bool late = lb_now_ns() - start > limit_s * 1e9;
        if (late) {
            fault->verdict = LB_VERDICT_TIMEOUT;
            snprintf(fault->reason, sizeof(fault->reason), "%s did not return within %.3g s", phase,
                     limit_s);
        }
        if (late || over_memory(pool, worker, fault)) {
            end_worker(pool, worker);
            return LB_FAILED;
        }
    }
}

/* Sends a request and waits for its one reply. */
static enum lb_status ask(struct lb_pool *pool, struct worker *worker, json_t *request,
                          const char *phase, double limit_s, json_t **reply, struct fault *fault)
{
    /* A failed send means that the worker is gone, which await finds out and explains. */
    lb_channel_send(&worker->channel, request, NULL);
    return await(pool, worker, phase, limit_s, reply, fault);
}

/* A reply's status and text as a return value. */
static enum lb_status reply_status(const json_t *reply, struct lb_error *err)
{
    const char *text = json_string_value(json_object_get(reply, "text"));
    enum lb_status st = (enum lb_status)json_integer_value(json_object_get(reply, "status"));
    return st == LB_OK ? LB_OK : lb_fail(err, st, "%s", text ? text : "no reason was given");
}

/* Starts a worker for the plug-in and has it loaded. *reply describes it, and is the caller's. */
static enum lb_status load_in_worker(struct lb_pool *pool, const char *path, struct worker **worker,
                                     json_t **reply, struct fault *fault, struct lb_error *err)
{
    enum lb_status st = start_worker(pool, path, worker, err);
    if (st != LB_OK)
        return st;
    json_t *request = json_pack("{s:s, s:s}", "op", "plugin", "path", path);
    return ask(pool, *worker, request, "loading", START_LIMIT_S, reply, fault);
}

enum lb_status lb_pool_add_plugin(struct lb_pool *pool, const char *path,
                                  struct lb_registry *registry, struct lb_error *err)
{
    struct worker *worker = NULL;
    struct fault fault;
    json_t *reply = NULL;
    enum lb_status st = load_in_worker(pool, path, &worker, &reply, &fault, err);
    if (st == LB_FAILED)
        return lb_fail(err, LB_INVALID, "--plugin %s: %s", path, fault.reason);
    if (st != LB_OK)
        return st;
    LB_TRY(reply_status(reply, err));

    char *variants[64] = {NULL};
    const json_t *list = json_object_get(reply, "variants");
    for (size_t i = 0; i < json_array_size(list) && i < 63; i++)
        variants[i] = (char *)json_string_value(json_array_get(list, i));
    struct lb_entry entry = {
        .name = (char *)json_string_value(json_object_get(reply, "name")),
        .summary = (char *)json_string_value(json_object_get(reply, "summary")),
        .variants = json_array_size(list) ? variants : NULL,
        .memory = (enum lb_memory)json_integer_value(json_object_get(reply, "memory")),
        .traits = (uint32_t)json_integer_value(json_object_get(reply, "traits")),
        .plugin = (char *)path,
    };
    LB_TRY(lb_registry_add(registry, &entry, err));
done:
    json_decref(reply);
    return st;
}

/* The living worker of a plug-in, or of the built-ins when plugin is NULL; started when there is
 * none. */
static enum lb_status find_worker(struct lb_pool *pool, const char *plugin, struct worker **out,
                                  struct fault *fault, struct lb_error *err)
{
    const char *origin = plugin ? plugin : "";
    for (*out = pool->workers; *out; *out = (*out)->next)
        if (strcmp((*out)->origin, origin) == 0)
            return LB_OK;
    if (!plugin)
        return start_worker(pool, origin, out, err);
    json_t *reply = NULL;
    enum lb_status st = load_in_worker(pool, plugin, out, &reply, fault, err);
    if (st == LB_OK && reply_status(reply, err) != LB_OK) {
        /* It loaded before: say what changed, in the row. */
        fault->verdict = LB_VERDICT_ERROR;
        snprintf(fault->reason, sizeof(fault->reason), "%.380s", err ? err->text : "");
        end_worker(pool, *out);
        st = LB_FAILED;
    }
    json_decref(reply);
    return st;
}

/* The living worker of that name, which serves whatever it is asked for. */
static enum lb_status find_shared(struct lb_pool *pool, const char *name, struct worker **out,
                                  struct lb_error *err)
{
    for (*out = pool->workers; *out; *out = (*out)->next)
        if (strcmp((*out)->origin, name) == 0)
            return LB_OK;
    return start_worker(pool, name, out, err);
}

/* The probe's numbers from a reply. */
static void read_probe(const json_t *reply, struct lb_probe *probe)
{
    json_int_t weights = 0, gradients = 0, reserve = 0, workspace = 0;
    const char *chosen = "";
    json_unpack((json_t *)reply, "{s:I, s:I, s:I, s:I, s:s}", "weights", &weights, "gradients",
                &gradients, "reserve", &reserve, "workspace", &workspace, "chosen", &chosen);
    probe->sizes =
        (struct lb_sizes){(size_t)weights, (size_t)gradients, (size_t)reserve, (size_t)workspace};
    snprintf(probe->chosen, sizeof(probe->chosen), "%s", chosen);
}

enum lb_status lb_pool_probe(struct lb_pool *pool, const struct lb_entry *entry,
                             const struct lb_case *c, struct lb_probe *probe, struct lb_error *why)
{
    struct worker *worker;
    struct fault fault = {.reason = "the worker could not be started"};
    char id[LB_CASE_ID_SIZE];
    json_t *reply = NULL;
    lb_case_print(c, id);
    enum lb_status st = find_worker(pool, entry->plugin, &worker, &fault, why);
    if (st == LB_OK)
        st = ask(pool, worker,
                 json_pack("{s:s, s:s}", "op", probe ? "probe" : "supports", "case", id),
                 "the question", pool->limits.call_s, &reply, &fault);
    if (st == LB_FAILED)
        return lb_fail(why, LB_FAILED, "%s", fault.reason);
    if (st == LB_OK)
        st = reply_status(reply, why);
    if (st == LB_OK && probe)
        read_probe(reply, probe);
    json_decref(reply);
    return st;
}

/* Asks the built-ins' worker something about the device; *part is what the reply has under the
 * question's own name. */
static enum lb_status ask_device(struct lb_pool *pool, const char *question, json_t **part,
                                 struct lb_error *why)
{
    struct worker *worker;
    struct fault fault = {.reason = "the worker could not be started"};
    json_t *reply = NULL;
    enum lb_status st = find_worker(pool, NULL, &worker, &fault, why);
    if (st == LB_OK)
        st = ask(pool, worker, json_pack("{s:s}", "op", question), question, pool->limits.call_s,
                 &reply, &fault);
    if (st == LB_FAILED)
        st = lb_fail(why, LB_ABSENT, "looking for a device: %s", fault.reason);
    else if (st == LB_OK)
        st = reply_status(reply, why);
    *part = st == LB_OK ? json_incref(json_object_get(reply, question)) : NULL;
    json_decref(reply);
    return st;
}

enum lb_status lb_pool_device(struct lb_pool *pool, json_t **device, struct lb_error *why)
{
    struct lb_device_info info;
    enum lb_status st = ask_device(pool, "device", device, why);
    if (st == LB_OK)
        lb_device_from_json(*device, &info);
    if (st == LB_OK || st == LB_ABSENT)
        lb_device_assume(st == LB_OK ? &info : NULL, why->text);
    return st;
}

enum lb_status lb_pool_ceilings(struct lb_pool *pool, json_t **ceilings, struct lb_error *why)
{
    return ask_device(pool, "ceilings", ceilings, why);
}

/* How long the worker may be silent in a phase. The oracle is the harness's own code: slow for big
 * problems, never hung. Sampling ends by itself after three times the case's time. */
static double phase_limit(const struct lb_pool *pool, const char *phase, const struct lb_job *job)
{
    if (strcmp(phase, "oracle") == 0)
        return (double)INFINITY;
    double sampling = strcmp(phase, "sample") == 0 ? 3 * job->sampler.max_ns / 1e9 : 0;
    return pool->limits.call_s + sampling;
}

static json_t *run_request(const struct lb_job *job, double memory_bytes)
{
    char id[LB_CASE_ID_SIZE];
    lb_case_print(job->c, id);
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:b}", "op", "run", "case", id,
                     "seed", (json_int_t)job->seed, "min_samples",
                     (json_int_t)job->sampler.min_samples, "max_samples",
                     (json_int_t)job->sampler.max_samples, "precision", job->sampler.precision,
                     "max_ns", job->sampler.max_ns, "memory_bytes", memory_bytes, "loss_scale",
                     job->loss_scale > 0 ? job->loss_scale : 1, "kernels", job->kernels);
}

/* A worker whose row can't be read is not to be trusted with another case. */
static enum lb_status give_up(struct lb_pool *pool, struct worker *worker,
                              const struct lb_error *why, struct fault *fault)
{
    fault->verdict = LB_VERDICT_ERROR;
    snprintf(fault->reason, sizeof(fault->reason), "its row can't be read: %.360s", why->text);
    end_worker(pool, worker);
    return LB_FAILED;
}

/* Follows a running case from phase to phase until it says "done". *lost: the worker lives, but its
 * device is gone. */
static enum lb_status follow(struct lb_pool *pool, struct worker *worker, const struct lb_job *job,
                             struct lb_row *row, bool *lost, struct fault *fault)
{
    char phase[32] = "start";
    enum lb_status st = LB_OK;
    struct lb_error why;
    for (bool done = false; st == LB_OK && !done;) {
        json_t *message = NULL;
        st = await(pool, worker, phase, phase_limit(pool, phase, job), &message, fault);
        if (st != LB_OK)
            break;
        const json_t *name = json_object_get(message, "phase");
        const json_t *result = json_object_get(message, "row");
        if (name)
            snprintf(phase, sizeof(phase), "%s", json_string_value(name));
        else if (result && lb_row_from_json(result, row, &why) != LB_OK)
            st = give_up(pool, worker, &why, fault);
        else if (!result)
            done = true;
        *lost = json_is_true(json_object_get(message, "lost"));
        json_decref(message);
    }
    return st;
}

enum lb_status lb_pool_run(struct lb_pool *pool, const struct lb_entry *entry,
                           const struct lb_job *job, struct lb_row *row, struct lb_error *err)
{
    struct worker *worker;
    struct fault fault = {.verdict = LB_VERDICT_ERROR};
    double start = lb_now_ns();
    bool lost = false;
    *row = lb_row_make(job->c);
    enum lb_status st = job->process ? find_shared(pool, job->process, &worker, err)
                                     : find_worker(pool, entry->plugin, &worker, &fault, err);
    if (st == LB_OK) {
        json_t *request = run_request(job, pool->limits.memory_bytes);
        if (job->process && entry->plugin)
            json_object_set_new(request, "plugin", json_string(entry->plugin));
        lb_channel_send(&worker->channel, request, NULL);
        st = follow(pool, worker, job, row, &lost, &fault);
        if (st == LB_OK && lost)
            end_worker(pool, worker);
    }
    if (st == LB_FAILED && fault.reason[0]) {
        /* The fault outranks a row that came before it: destroy belongs to the case too. */
        lb_row_free(row);
        *row = lb_row_make(job->c);
        row->verdict = fault.verdict;
        snprintf(row->reason, sizeof(row->reason), "%s", fault.reason);
        row->elapsed_ns = lb_now_ns() - start;
        st = LB_OK;
    }
    return st;
}
