/* Worker processes, the program's side: starting, awaiting and ending them, and the requests to
 * them. */
#include "run/worker.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/device.h"
#include "device/host_memory.h"
#include "host/cgroup.h"
#include "host/process.h"
#include "host/shared_library.h"
#include "support/channel.h"
#include "support/library_versions.h"
#include "support/subprocess.h"
#include "support/texts.h"

enum {
    WORKER_FD = 3,      /* the worker's end of the channel */
    LEAVE_LIMIT_S = 10, /* for ending by itself: a profiler may write out its results */
    LOAD_LIMIT_S = 60,  /* for loading a library, at least: that is no call of an implementation */
    WATCH_MS = 100,     /* how often the memory and time of a silent worker are checked */
    STILL_MS = 1000     /* most that one check may count: when it comes later, the program stood
                           still */
};

struct worker {
    pid_t pid; /* and its process group; 0 once it has ended */
    struct lb_channel channel;
    double oom_kills; /* lb_oom_kills when the latest request was sent */
    char *name;       /* what it serves: "" the built-in implementations, the path of a plug-in, or
                         a job's own name; owned */
    int threads;      /* of the cases that it has run, where that matters; 0: none yet */
    struct worker *next; /* in the pool */
};

struct lb_pool {
    double call_s;       /* longest silence of an implementation in one phase of a case */
    double memory_bytes; /* of one worker; 0: what the host has */
    int device;          /* ordinal of the GPU that workers use */
    const char *program;
    const volatile sig_atomic_t *stop;
    struct worker *workers;
    json_t *ceilings; /* owned; NULL: none */
};

/* A request and its answer; worker.h describes both. */
struct exchange {
    json_t *request;      /* owned */
    char phase[96];       /* what the worker does; "loading" before it names one */
    double sampling_s;    /* of run: how long the phase "sample" may take */
    json_t *reply;        /* of the latest message that has one; owned */
    bool ended, unfit;    /* that was the last message; the worker must not serve another request */
    enum lb_verdict lost; /* what the loss of the worker means; LB_VERDICT_OK: it was not lost */
    bool innocent;        /* something killed it from outside: the case is run again */
};

void lb_pool_limit(struct lb_pool *pool, const struct lb_options *options)
{
    pool->call_s = options->call_limit_s;
    pool->memory_bytes = options->memory_bytes;
    pool->device = options->device;
}

struct lb_pool *lb_pool_create(const struct lb_options *options, const char *program,
                               const volatile sig_atomic_t *stop)
{
    struct lb_pool *pool = lb_needed(calloc(1, sizeof(*pool)));
    lb_pool_limit(pool, options);
    pool->program = program;
    pool->stop = stop;
    return pool;
}

/* ---- Workers ---- */

static int end_process(struct worker *worker)
{
    int status = worker->pid > 0 ? lb_end_child(worker->pid) : 0;
    worker->pid = 0;
    return status;
}

/* Ends the worker, unless it is NULL or has left the pool. */
static void drop(struct lb_pool *pool, struct worker *worker)
{
    struct worker **at = &pool->workers;
    while (*at && *at != worker)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = worker->next;
    end_process(worker);
    lb_channel_close(&worker->channel);
    free(worker->name);
    free(worker);
}

static struct worker *find_named(const struct lb_pool *pool, const char *name)
{
    struct worker *worker = pool->workers;
    while (worker && strcmp(worker->name, name) != 0)
        worker = worker->next;
    return worker;
}

/* The worker of that name, started when none is alive. LB_FAILED with the system's reason. */
static enum lb_status find_or_start(struct lb_pool *pool, const char *name, struct worker **worker,
                                    struct lb_error *err)
{
    int ends[2];
    pid_t pid;
    char parent[32], ordinal[16];
    char *const argv[] = {"bench-lstm", "--worker", parent, ordinal, NULL};
    posix_spawn_file_actions_t actions;
    *worker = find_named(pool, name);
    if (*worker)
        return LB_OK;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return lb_fail(err, LB_FAILED, "starting a worker failed: %s", strerror(errno));
    snprintf(parent, sizeof(parent), "%ld", (long)getpid());
    snprintf(ordinal, sizeof(ordinal), "%d", pool->device);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], WORKER_FD);
    /* What an implementation prints must not mix with the program's output. */
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    int failed = lb_spawn(pool->program ? pool->program : "/proc/self/exe", &actions, argv, &pid);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        return lb_fail(err, LB_FAILED, "starting a worker failed: %s", strerror(failed));
    }
    lb_watch_child(pid);
    *worker = lb_needed(calloc(1, sizeof(**worker)));
    **worker = (struct worker){.pid = pid,
                               .channel = {.fd = ends[0]},
                               .oom_kills = NAN,
                               .name = lb_needed(strdup(name)),
                               .next = pool->workers};
    pool->workers = *worker;
    return LB_OK;
}

/* Whether the worker has ended; its wait status can still be read. */
static bool has_ended(const struct worker *worker)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

static bool has_left(const struct worker *worker, double limit_s)
{
    for (double start = lb_now_ns(); lb_now_ns() - start < limit_s * 1e9; usleep(2000))
        if (has_ended(worker))
            return true;
    return false;
}

/* Workers that wait for a request leave by themselves when the program hangs up, so that profilers
 * attached to them can finish; one that is stuck in a case is killed. */
void lb_pool_renew(struct lb_pool *pool)
{
    bool stopped = *pool->stop;
    for (struct worker *worker = pool->workers; worker; worker = worker->next)
        shutdown(worker->channel.fd, SHUT_RDWR);
    while (pool->workers) {
        has_left(pool->workers, stopped ? 0.5 : LEAVE_LIMIT_S);
        drop(pool, pool->workers);
    }
}

void lb_pool_destroy(struct lb_pool *pool)
{
    if (!pool)
        return;
    lb_pool_renew(pool);
    json_decref(pool->ceilings);
    free(pool);
}

/* ---- Waiting for a worker ---- */

/* Whether the worker holds more than it may, or leaves the host with too little. */
static bool over_memory(const struct worker *worker, double limit, struct lb_error *err)
{
    double used = lb_resident_bytes(worker->pid), margin = 0.03 * lb_host_total();
    bool exhausted = lb_host_available() < margin && used > margin;
    if (!exhausted && (limit <= 0 || used <= limit))
        return false;
    lb_fail(err, LB_FAILED, "used %s of the %s there were, and was ended", LB_BYTES_TEXT(used),
            LB_BYTES_TEXT(exhausted ? used + lb_host_available() : limit));
    return true;
}

/* Says why a worker that closed its channel, or ended, did. It may be about to end: a moment's wait
 * lets its wait status tell why. Only the kernel tells whether SIGKILL came from a lack of memory.
 */
static void describe_end(struct worker *worker, struct exchange *exchange, struct lb_error *err)
{
    const char *phase = exchange->phase;
    bool left = has_left(worker, 1);
    int status = end_process(worker), killer = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    double kills = lb_oom_kills("");
    bool starved = left && killer == SIGKILL && kills > worker->oom_kills;
    exchange->lost = starved ? LB_VERDICT_OOM : left ? LB_VERDICT_CRASH : LB_VERDICT_ERROR;
    exchange->innocent = left && killer == SIGKILL && !starved;
    if (!left)
        lb_fail(err, LB_FAILED, "closed its connection to the program in %s, but went on running",
                phase);
    else if (starved)
        lb_fail(err, LB_FAILED, "killed by the kernel in %s, because memory ran out", phase);
    else if (killer == SIGKILL)
        lb_fail(err, LB_FAILED, "killed from outside (signal %d) in %s; %s", SIGKILL, phase,
                isnan(kills) ? "whether memory ran out is not known here"
                             : "the kernel killed nobody for memory");
    else if (killer)
        lb_fail(err, LB_FAILED, "%s (signal %d) in %s", strsignal(killer), killer, phase);
    else
        lb_fail(err, LB_FAILED, "ended the process with exit code %d in %s", WEXITSTATUS(status),
                phase);
}

/* A clock that counts the machine's sleep. */
static double boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Waits for the worker's next message, a new reference. LB_INTERRUPTED. LB_FAILED: exchange->lost
 * and err say how the worker was lost. */
static enum lb_status await(struct lb_pool *pool, struct worker *worker, struct exchange *exchange,
                            json_t **message, struct lb_error *err)
{
    struct lb_error why = {""};
    double last = boot_ns(), silent_ns = 0, limit_s = pool->call_s;
    if (strncmp(exchange->phase, "oracle", 6) == 0) /* is slow, but the harness's own */
        limit_s = (double)INFINITY;
    else if (strncmp(exchange->phase, "sample", 6) == 0) /* ends by itself after so long */
        limit_s += 3 * exchange->sampling_s;
    for (;;) {
        enum lb_status st = lb_channel_receive(&worker->channel, WATCH_MS, message, &why);
        if (st == LB_INVALID) {
            exchange->lost = LB_VERDICT_ERROR;
            return lb_fail(err, LB_FAILED,
                           "wrote something else to its connection to the program in %s: %.200s",
                           exchange->phase, why.text);
        }
        if (*message)
            return LB_OK;
        if (st == LB_OK && *pool->stop)
            return LB_INTERRUPTED;
        if (st != LB_OK || has_ended(worker)) { /* a child of its own may hold the channel open */
            describe_end(worker, exchange, err);
            return LB_FAILED;
        }
        /* While this program stood still, stopped or asleep with the machine, the worker did too,
         * or could have. */
        double now = boot_ns();
        silent_ns += fmin(now - last, STILL_MS * 1e6);
        last = now;
        if (silent_ns > limit_s * 1e9) {
            exchange->lost = LB_VERDICT_TIMEOUT;
            return lb_fail(err, LB_FAILED, "%s did not return within %.3g s", exchange->phase,
                           limit_s);
        }
        if (over_memory(worker, pool->memory_bytes, err)) {
            exchange->lost = LB_VERDICT_OOM;
            return LB_FAILED;
        }
    }
}

/* ---- Requests ---- */

static void end_exchange(struct exchange *exchange)
{
    json_decref(exchange->request);
    json_decref(exchange->reply);
}

/* The status of the last message, with its reason; LB_FAILED, and it is lost: it is no message. */
static enum lb_status take_message(struct exchange *exchange, const json_t *message,
                                   struct lb_error *err)
{
    const char *phase, *figure, *failed, *why;
    int status = LB_OK, unfit;
    json_t *reply = json_object_get(message, "reply");
    if (reply) {
        json_decref(exchange->reply);
        exchange->reply = json_incref(reply);
    }
    if (json_unpack((json_t *)message, "{s:s}", "phase", &phase) == 0) {
        snprintf(exchange->phase, sizeof(exchange->phase), "%s", phase);
    } else if (json_unpack((json_t *)message, "{s:s, s:s}", "figure", &figure, "failed", &failed) ==
               0) {
        if (failed[0])
            fprintf(stderr, "warning: ceilings: %s: %s\n", figure, failed);
        snprintf(exchange->phase, sizeof(exchange->phase), "the figure after %.60s", figure);
    } else if (json_unpack((json_t *)message, "{s:i, s:s, s:b}", "status", &status, "why", &why,
                           "unfit", &unfit) == 0) {
        exchange->ended = true;
        exchange->unfit = unfit != 0;
        if (status != LB_OK)
            lb_fail(err, LB_FAILED, "%s", why[0] ? why : "no reason was given");
    } else {
        exchange->lost = LB_VERDICT_ERROR;
        return lb_fail(err, LB_FAILED, "a message of its worker is no event");
    }
    return (enum lb_status)status;
}

/* Sends the request and follows it to its reply, whose status it returns. LB_FAILED with
 * exchange->lost: the worker was lost, or a message can't be read. Such a worker, or an unfit one,
 * has left the pool. LB_INVALID: a path is not UTF-8. LB_INTERRUPTED. */
static enum lb_status ask(struct lb_pool *pool, struct worker *worker, struct exchange *exchange,
                          struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_given_files *given = lb_given_files();
    json_t *files = json_pack("{s:s*, s:s*, s:s*, s:s*, s:b, s:b}", "weights", given->weights,
                              "prefix", given->prefix, "inputs", given->inputs, "tuned",
                              given->tuned, "batch_first", given->batch_first, "tune", given->tune);
    if (json_object_set_new(exchange->request, "given", files) != 0)
        return lb_fail(err, LB_INVALID, "a path of the request to the worker is not UTF-8");
    worker->oom_kills = lb_oom_kills("");
    lb_channel_send(&worker->channel, json_incref(exchange->request));
    while (st == LB_OK && !exchange->ended) {
        json_t *message = NULL;
        st = await(pool, worker, exchange, &message, err);
        if (st == LB_OK)
            st = take_message(exchange, message, err);
        json_decref(message);
    }
    if (exchange->lost != LB_VERDICT_OK || exchange->unfit)
        drop(pool, worker);
    return st;
}

static enum lb_status ask_named(struct lb_pool *pool, const char *name, struct exchange *exchange,
                                struct lb_error *why)
{
    struct worker *worker;
    LB_CHECK(find_or_start(pool, name, &worker, why));
    return ask(pool, worker, exchange, why);
}

enum lb_status lb_pool_add_plugin(struct lb_pool *pool, const char *path,
                                  struct lb_registry *registry, struct lb_error *err)
{
    struct lb_impl_entry impl_entry = {.plugin = (char *)path};
    struct lb_error why = {""};
    char *variants[LB_VARIANTS_MAX + 1] = {NULL};
    int memory = 0;
    json_int_t traits = 0;
    if (!lb_is_utf8(path)) /* requests and records are JSON */
        return lb_fail(err, LB_INVALID, "--plugin %s: the path must be UTF-8", path);
    struct exchange exchange = {.request = json_pack("{s:s, s:s}", "op", "plugin", "path", path),
                                .phase = "loading"};
    enum lb_status st = ask_named(pool, path, &exchange, &why);
    const json_t *list = json_object_get(exchange.reply, "variants"); /* strings lie in the reply */
    size_t count = json_array_size(list);
    if (st == LB_OK &&
        (count > LB_VARIANTS_MAX ||
         json_unpack(exchange.reply, "{s:s, s:s, s:i, s:I}", "name", &impl_entry.name, "summary",
                     &impl_entry.summary, "memory", &memory, "traits", &traits) != 0))
        st = lb_fail(&why, LB_INVALID, "the worker's reply is no plug-in");
    for (size_t i = 0; i < count && i < LB_VARIANTS_MAX; i++)
        variants[i] = (char *)json_string_value(json_array_get(list, i));
    impl_entry.variants = count > 0 ? variants : NULL;
    impl_entry.memory = (enum lb_memory)memory;
    impl_entry.traits = (uint32_t)traits;
    if (exchange.lost != LB_VERDICT_OK)
        st = lb_fail(err, LB_INVALID, "--plugin %s: %s", path, why.text);
    else if (st != LB_OK)
        lb_fail(err, st, "%s", why.text);
    else if ((st = lb_registry_add(registry, &impl_entry, &why)) != LB_OK)
        lb_fail(err, st, "--plugin %s: %.300s", path, why.text);
    end_exchange(&exchange);
    return st;
}

enum lb_status lb_pool_probe(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                             const struct lb_case *c, struct lb_probe *probe, struct lb_error *why)
{
    struct exchange exchange = {.request = json_pack("{s:s, s:s, s:s*}", "op",
                                                     probe ? "probe" : "supports", "case",
                                                     LB_CASE_TEXT(c), "path", impl_entry->plugin),
                                .phase = "the question"};
    json_int_t weights, gradients, reserve, workspace;
    const char *description, *note;
    enum lb_status st =
        ask_named(pool, impl_entry->plugin ? impl_entry->plugin : "", &exchange, why);
    if (st == LB_OK && probe) {
        if (json_unpack(exchange.reply, "{s:I, s:I, s:I, s:I, s:s, s:s}", "weights", &weights,
                        "gradients", &gradients, "reserve", &reserve, "workspace", &workspace,
                        "description", &description, "note", &note) != 0)
            LB_TRY(lb_fail(why, LB_INVALID, "the worker's reply lacks what the case needs"));
        probe->sizes = (struct lb_sizes){(size_t)weights, (size_t)gradients, (size_t)reserve,
                                         (size_t)workspace};
        snprintf(probe->description, sizeof(probe->description), "%s", description);
        snprintf(probe->note, sizeof(probe->note), "%s", note);
    }
done:
    end_exchange(&exchange);
    return st;
}

/* An implementation whose library can't be loaded, or ends the worker, is absent from now on. */
static enum lb_status ask_library(struct lb_pool *pool, struct lb_impl_entry *impl_entry,
                                  json_t *libraries, struct lb_error *err)
{
    struct worker *worker;
    struct lb_error why = {""};
    LB_CHECK(find_or_start(pool, "libraries", &worker, err));
    struct exchange exchange = {
        .request = json_pack("{s:s, s:s}", "op", "library", "implementation", impl_entry->name),
        .phase = "loading"};
    enum lb_status st = ask(pool, worker, &exchange, &why);
    if (st != LB_INTERRUPTED) {
        char reason[sizeof(why.text) + 64];
        bool lost = exchange.lost != LB_VERDICT_OK;
        snprintf(reason, sizeof(reason), "%s%s%.400s", lost ? impl_entry->library->name : "",
                 lost ? " can't be loaded: " : "", why.text);
        lb_library_add(libraries, impl_entry,
                       st == LB_OK ? json_string_value(exchange.reply) : NULL);
        if (st != LB_OK)
            impl_entry->absent = lb_needed(strdup(reason));
        st = LB_OK;
    }
    end_exchange(&exchange);
    return st;
}

enum lb_status lb_pool_libraries(struct lb_pool *pool, struct lb_registry *registry,
                                 json_t **libraries, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_pool of_cases = *pool;
    *libraries = lb_linked_libraries();
    pool->call_s = fmax(of_cases.call_s, LOAD_LIMIT_S);
    pool->memory_bytes = 0;
    for (size_t i = 0; i < registry->count && st == LB_OK; i++) {
        struct lb_impl_entry *impl_entry = &registry->impl_entries[i];
        if (!impl_entry->library || impl_entry->absent)
            continue;
        if (impl_entry->memory == LB_DEVICE && !lb_has_nvidia_driver())
            lb_library_add(*libraries, impl_entry, NULL); /* 100 MB that nothing would use */
        else
            st = ask_library(pool, impl_entry, *libraries, err);
    }
    drop(pool, find_named(pool, "libraries")); /* the workers of cases load what their cases need */
    pool->call_s = of_cases.call_s;
    pool->memory_bytes = of_cases.memory_bytes;
    return st;
}

/* Ends the exchange. what: the message of LB_FAILED begins with it. */
static enum lb_status ask_of_device(struct lb_pool *pool, struct exchange *exchange,
                                    const char *what, json_t **reply, struct lb_error *why)
{
    struct lb_error reason = {""};
    enum lb_status st = ask_named(pool, "", exchange, &reason);
    *reply = json_incref(exchange->reply);
    end_exchange(exchange);
    return st == LB_OK ? st : lb_fail(why, st, "%s%s", st == LB_FAILED ? what : "", reason.text);
}

enum lb_status lb_pool_find_device(struct lb_pool *pool, json_t **device, struct lb_error *why)
{
    struct exchange exchange = {.request = json_pack("{s:s}", "op", "device"), .phase = "device"};
    enum lb_status st = ask_of_device(pool, &exchange, "looking for a device: ", device, why);
    return st == LB_FAILED ? LB_ABSENT : st;
}

void lb_pool_tell_ceilings(struct lb_pool *pool, const json_t *ceilings)
{
    json_decref(pool->ceilings);
    pool->ceilings = json_incref((json_t *)ceilings);
}

enum lb_status lb_pool_ceilings(struct lb_pool *pool, double seconds, json_t **ceilings,
                                struct lb_error *why)
{
    struct exchange exchange = {.request =
                                    json_pack("{s:s, s:f}", "op", "ceilings", "seconds", seconds),
                                .phase = "the first figure"};
    return ask_of_device(pool, &exchange, "measuring ceilings: ", ceilings, why);
}

/* Waits until the workers that have nothing to do use no CPU, and ends those that do not stop. */
static void settle_others(struct lb_pool *pool, const struct worker *worker)
{
    struct worker *next;
    for (struct worker *other = pool->workers; other; other = next) {
        next = other->next;
        double end = lb_now_ns() + 0.3e9;
        while (other != worker && lb_threads_running(other->pid) > 0) {
            if (lb_now_ns() > end) {
                drop(pool, other);
                break;
            }
            usleep(1000);
        }
    }
}

/* Has the worker run the job, or trace its kernels, and replaces the row, also by one that says why
 * there is no other. start: when the case began, in ns. *innocent: the worker was killed from
 * outside. LB_OK, LB_INTERRUPTED. */
static enum lb_status run_job(struct lb_pool *pool, struct worker *worker,
                              const struct lb_impl_entry *impl_entry, const struct lb_job *job,
                              bool kernels, double start, struct lb_row *row, bool *innocent)
{
    struct lb_row measured;
    struct lb_error why;
    const struct lb_sampler_options *sampler = &job->sampler;
    struct exchange exchange = {.phase = "start", .sampling_s = sampler->max_ns / 1e9};
    exchange.request = json_pack(
        "{s:s, s:s, s:s*, s:I, s:{s:I, s:I, s:f, s:f}, s:f, s:b, s:b, s:s*, s:f, s:O*}", "op",
        "run", "case", LB_CASE_TEXT(job->c), "path", impl_entry->plugin, "seed",
        (json_int_t)job->seed, "sampler", "min_samples", (json_int_t)sampler->min_samples,
        "max_samples", (json_int_t)sampler->max_samples, "precision", sampler->precision, "max_ns",
        sampler->max_ns, "loss_scale", job->loss_scale > 0 ? job->loss_scale : 1,
        "dynamic_loss_scale", job->dynamic_loss_scale, "kernels", kernels, "outputs", job->outputs,
        "memory_bytes", pool->memory_bytes, "ceilings", pool->ceilings);
    settle_others(pool, worker);
    enum lb_status st = ask(pool, worker, &exchange, &why);
    bool lost = exchange.lost != LB_VERDICT_OK;
    *innocent = exchange.innocent;
    if (st == LB_OK && lb_row_from_json(exchange.reply, &measured, &why) == LB_OK) {
        lb_row_free(row);
        *row = measured;
    } else if (st != LB_INTERRUPTED) {
        row->verdict = lost ? exchange.lost : LB_VERDICT_ERROR;
        lb_row_print(&row->reason, "%s%s",
                     lost          ? ""
                     : st == LB_OK ? "its row can't be read: "
                                   : "its worker refuses the case: ",
                     why.text);
        row->elapsed_ns = lb_now_ns() - start;
        if (!lost)
            drop(pool, worker);
        st = LB_OK;
    }
    end_exchange(&exchange);
    return st;
}

/* Traces the kernels of one call into the row, in a worker that serves this trace alone, because
 * profiling libraries may crash, hang or stay attached. */
static void trace_kernels(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                          const struct lb_job *job, struct lb_row *row)
{
    struct worker *worker;
    struct lb_row traced = lb_row_make(job->c);
    struct lb_error why;
    bool innocent;
    if (impl_entry->memory != LB_DEVICE)
        lb_row_print(&traced.reason, "it runs on the host, without GPU kernels");
    else if (find_or_start(pool, "kernel trace", &worker, &why) != LB_OK)
        lb_row_print(&traced.reason, "%s", why.text);
    else if (run_job(pool, worker, impl_entry, job, true, lb_now_ns(), &traced, &innocent) != LB_OK)
        lb_row_print(&traced.reason, "the run was stopped before the trace ended");
    if (traced.verdict == LB_VERDICT_OK) {
        row->kernels = traced.kernels;
        traced.kernels = (struct lb_kernels){0};
        lb_row_warn(row, "%s", traced.warning);
    } else {
        lb_row_print(&row->kernels_reason, "%s", traced.reason);
    }
    lb_row_free(&traced);
    drop(pool, find_named(pool, "kernel trace"));
}

enum lb_status lb_pool_run(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                           const struct lb_job *job, struct lb_row *row, struct lb_error *err)
{
    const char *usual = impl_entry->plugin ? impl_entry->plugin : "";
    bool again = true; /* when the worker was killed from outside, once more */
    double start = lb_now_ns();
    enum lb_status st = LB_OK;
    if (impl_entry->absent) {
        *row = lb_row_make(job->c);
        row->verdict = LB_VERDICT_ABSENT;
        lb_row_print(&row->reason, "%s", impl_entry->absent);
        return LB_OK;
    }
    for (int attempt = 0; attempt < 2 && again; attempt++) {
        struct worker *worker = find_named(pool, usual);
        if (attempt > 0) {
            fprintf(stderr, "warning: %s: %s: it is run again\n", LB_CASE_TEXT(job->c),
                    row->reason);
            lb_row_free(row);
        }
        *row = lb_row_make(job->c);
        /* A plug-in that keeps its first number of threads needs a new worker for another one. */
        if (impl_entry->plugin && impl_entry->traits & LB_THREADS_ONCE && worker &&
            worker->threads > 0 && worker->threads != job->c->threads)
            drop(pool, worker);
        LB_CHECK(find_or_start(pool, job->process ? job->process : usual, &worker, err));
        worker->threads = job->c->threads;
        st = run_job(pool, worker, impl_entry, job, false, start, row, &again);
    }
    if (st == LB_OK && job->kernels && row->verdict == LB_VERDICT_OK)
        trace_kernels(pool, impl_entry, job, row);
    return st == LB_OK ? LB_OK : lb_fail(err, st, "interrupted");
}
