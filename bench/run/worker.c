/* Worker processes, the program's side: the pool of living workers, and the requests to them. */
#include "run/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/given_files.h"
#include "base/memory.h"
#include "host/shared_library.h"
#include "record/environment.h"
#include "run/worker_process.h"
#include "support/library_versions.h"

enum {
    LEAVE_LIMIT_S = 10, /* for ending by itself: a profiler may write out its results */
    LOAD_LIMIT_S = 60   /* for loading a library, at least: that is no call of an implementation */
};

struct lb_pool {
    struct lb_worker_limits limits;
    const volatile sig_atomic_t *stop;
    struct lb_worker *workers; /* a list; owned */
    json_t *ceilings;          /* owned; NULL: none */
};

struct lb_pool *lb_pool_create(const struct lb_worker_limits *limits,
                               const volatile sig_atomic_t *stop)
{
    struct lb_pool *pool = lb_needed(calloc(1, sizeof(*pool)));
    pool->limits = *limits;
    pool->stop = stop;
    return pool;
}

void lb_pool_limit(struct lb_pool *pool, const struct lb_worker_limits *limits)
{
    pool->limits = *limits;
}

/* Takes the worker out of the pool and ends it. Accepts NULL. */
static void drop(struct lb_pool *pool, struct lb_worker *worker)
{
    struct lb_worker **at = &pool->workers;
    while (*at && *at != worker)
        at = &(*at)->next;
    if (*at)
        *at = worker->next;
    lb_worker_destroy(worker);
}

/* The living worker of that name; NULL when there is none. */
static struct lb_worker *find_named(const struct lb_pool *pool, const char *name)
{
    struct lb_worker *worker = pool->workers;
    while (worker && strcmp(worker->name, name) != 0)
        worker = worker->next;
    return worker;
}

/* Workers that wait for a request leave by themselves when the program hangs up, so that profilers
 * attached to them can finish; one that is stuck in a case is killed. */
void lb_pool_renew(struct lb_pool *pool)
{
    bool stopped = pool->stop && *pool->stop;
    for (struct lb_worker *worker = pool->workers; worker; worker = worker->next)
        lb_worker_dismiss(worker);
    while (pool->workers) {
        lb_worker_has_left(pool->workers, stopped ? 0.5 : LEAVE_LIMIT_S);
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

/* The living worker of that name, started when there is none. *started says which. */
static enum lb_status find_or_start(struct lb_pool *pool, const char *name,
                                    struct lb_worker **worker, bool *started, struct lb_error *err)
{
    *started = false;
    *worker = find_named(pool, name);
    if (*worker)
        return LB_OK;
    enum lb_status st =
        lb_worker_start(name, pool->limits.program, pool->limits.device, worker, err);
    if (st != LB_OK)
        return st;
    *started = true;
    (*worker)->next = pool->workers;
    pool->workers = *worker;
    return LB_OK;
}

/* A request and its answer; worker_process.h describes both. */
struct exchange {
    json_t *request;       /* owned */
    const char *phase;     /* what the worker does before it names a phase: "loading" */
    double sampling_s;     /* of run: how long the phase "sample" may take */
    json_t **known;        /* of ceilings: becomes the record of what is known by now */
    json_t *message;       /* the last message; owned */
    bool ended;            /* that is the reply */
    const json_t *reply;   /* what it has beside the status */
    enum lb_status status; /* of the reply */
    struct lb_error why;   /* when the status is not LB_OK */
    bool unfit;            /* the worker must not serve another request */
};

static void end_exchange(struct exchange *exchange)
{
    json_decref(exchange->request);
    json_decref(exchange->message);
}

/* How long the worker may be silent in a phase. The oracle is the harness's own code, which can be
 * slow but does not hang. Sampling ends by itself after three times the case's time. */
static double phase_limit(const struct lb_pool *pool, const char *phase,
                          const struct exchange *exchange)
{
    if (strncmp(phase, "oracle", 6) == 0)
        return (double)INFINITY;
    return pool->limits.call_s + (strncmp(phase, "sample", 6) == 0 ? 3 * exchange->sampling_s : 0);
}

/* Takes a message; phase [96] becomes the phase that begins. False: it is none of a worker's. */
static bool take_message(struct exchange *exchange, char *phase)
{
    json_t *message = exchange->message;
    const char *begins, *figure, *failed, *why;
    int status, unfit;
    exchange->reply = json_object_get(message, "reply");
    if (json_unpack(message, "{s:s}", "phase", &begins) == 0) {
        snprintf(phase, 96, "%s", begins);
    } else if (json_unpack(message, "{s:s, s:s}", "figure", &figure, "failed", &failed) == 0) {
        if (failed[0])
            fprintf(stderr, "warning: ceilings: %s: %s\n", figure, failed);
        snprintf(phase, 96, "the figure after %.60s", figure);
        json_decref(*exchange->known);
        *exchange->known = json_incref((json_t *)exchange->reply);
    } else if (json_unpack(message, "{s:i, s:s, s:b}", "status", &status, "why", &why, "unfit",
                           &unfit) == 0) {
        exchange->ended = true;
        exchange->status = (enum lb_status)status;
        exchange->unfit = unfit != 0;
        lb_fail(&exchange->why, LB_FAILED, "%s", why[0] ? why : "no reason was given");
    } else {
        return false;
    }
    return true;
}

static json_t *pack_given(void)
{
    const struct lb_given_files *given = lb_given_files();
    return json_pack("{s:s*, s:s*, s:s*, s:s*, s:b, s:b}", "weights", given->weights, "prefix",
                     given->prefix, "inputs", given->inputs, "tuned", given->tuned, "batch_first",
                     given->batch_first, "tune", given->tune);
}

/* Sends the request and follows it, from phase to phase, to its reply. LB_FAILED with *fault
 * filled: the worker was lost, or a message can't be read, so that it is not to be trusted with the
 * next request. It then has left the pool, as one that is unfit for another. LB_INTERRUPTED. */
static enum lb_status ask(struct lb_pool *pool, struct lb_worker *worker, struct exchange *exchange,
                          struct lb_fault *fault)
{
    char phase[96];
    snprintf(phase, sizeof(phase), "%s", exchange->phase);
    json_object_set_new(exchange->request, "given", pack_given());
    lb_worker_send(worker, json_incref(exchange->request));
    while (!exchange->ended) {
        const struct lb_watch watch = {phase_limit(pool, phase, exchange),
                                       pool->limits.memory_bytes, pool->stop};
        json_decref(exchange->message);
        exchange->message = NULL;
        enum lb_status st = lb_worker_await(worker, phase, &watch, &exchange->message, fault);
        if (st == LB_OK && !take_message(exchange, phase)) {
            fault->verdict = LB_VERDICT_ERROR;
            snprintf(fault->reason, sizeof(fault->reason), "a message of its worker is no event");
            st = LB_FAILED;
        }
        if (st == LB_FAILED || exchange->unfit)
            drop(pool, worker);
        if (st != LB_OK)
            return st;
    }
    return LB_OK;
}

/* The status of the reply, with the reason. */
static enum lb_status reply_status(const struct exchange *exchange, struct lb_error *err)
{
    return exchange->status == LB_OK ? LB_OK
                                     : lb_fail(err, exchange->status, "%s", exchange->why.text);
}

/* Whether the path can be sent, and kept in records: both are JSON. */
static bool is_utf8(const char *path)
{
    json_t *text = json_string(path);
    bool fine = text != NULL;
    json_decref(text);
    return fine;
}

/* Reads a plug-in's description of itself, for lb_registry_add. variants [LB_VARIANTS_MAX + 1]
 * holds impl_entry->variants; the strings lie in the reply. */
static enum lb_status read_plugin(const json_t *reply, struct lb_impl_entry *impl_entry,
                                  char **variants, struct lb_error *err)
{
    const json_t *list = json_object_get(reply, "variants");
    size_t count = json_array_size(list);
    int memory = 0;
    json_int_t traits = 0;
    *impl_entry = (struct lb_impl_entry){0};
    if (count > LB_VARIANTS_MAX ||
        json_unpack((json_t *)reply, "{s:s, s:s, s:i, s:I}", "name", &impl_entry->name, "summary",
                    &impl_entry->summary, "memory", &memory, "traits", &traits) != 0)
        return lb_fail(err, LB_INVALID, "the worker's reply is no plug-in");
    for (size_t i = 0; i < count; i++)
        variants[i] = (char *)json_string_value(json_array_get(list, i));
    variants[count] = NULL;
    impl_entry->variants = count > 0 ? variants : NULL;
    impl_entry->memory = (enum lb_memory)memory;
    impl_entry->traits = (uint32_t)traits;
    return LB_OK;
}

/* Has a worker load the plug-in at the path and describe it. variants [LB_VARIANTS_MAX + 1] and
 * *impl_entry point into the exchange. LB_FAILED with *fault filled: the worker was lost. */
static enum lb_status load_plugin(struct lb_pool *pool, struct lb_worker *worker, const char *path,
                                  struct exchange *exchange, struct lb_impl_entry *impl_entry,
                                  char **variants, struct lb_fault *fault, struct lb_error *err)
{
    *exchange = (struct exchange){.request = json_pack("{s:s, s:s}", "op", "plugin", "path", path),
                                  .phase = "loading"};
    enum lb_status st = ask(pool, worker, exchange, fault);
    if (st == LB_OK)
        st = reply_status(exchange, err);
    else if (st == LB_FAILED)
        return lb_fail(err, LB_INVALID, "--plugin %s: %s", path, fault->reason);
    return st == LB_OK ? read_plugin(exchange->reply, impl_entry, variants, err) : st;
}

enum lb_status lb_pool_add_plugin(struct lb_pool *pool, const char *path,
                                  struct lb_registry *registry, struct lb_error *err)
{
    struct lb_worker *worker;
    struct exchange exchange = {0};
    struct lb_fault fault = {.reason = ""};
    struct lb_impl_entry impl_entry;
    struct lb_error why = {""};
    char *variants[LB_VARIANTS_MAX + 1];
    bool started;
    enum lb_status st = LB_OK;
    if (!is_utf8(path))
        return lb_fail(err, LB_INVALID, "--plugin %s: the path must be UTF-8", path);
    LB_TRY(find_or_start(pool, path, &worker, &started, err));
    LB_TRY(load_plugin(pool, worker, path, &exchange, &impl_entry, variants, &fault, err));
    impl_entry.plugin = (char *)path;
    st = lb_registry_add(registry, &impl_entry, &why);
    if (st != LB_OK)
        lb_fail(err, st, "--plugin %s: %.300s", path, why.text);
done:
    end_exchange(&exchange);
    return st;
}

/* Finds the worker of an implementation, or the worker of the built-in ones when impl_entry is
 * NULL. LB_FAILED, with *fault filled, when a worker was started anew and can't load the plug-in
 * any more, or loads another one, because its file was replaced. That costs the case that wanted
 * it, and no other. */
static enum lb_status find_worker(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                                  struct lb_worker **worker, struct lb_fault *fault,
                                  struct lb_error *err)
{
    const char *plugin = impl_entry ? impl_entry->plugin : NULL;
    struct exchange exchange = {0};
    struct lb_impl_entry now;
    struct lb_error why = {""};
    char *variants[LB_VARIANTS_MAX + 1];
    bool started;
    enum lb_status st = find_or_start(pool, plugin ? plugin : "", worker, &started, err);
    if (st != LB_OK || !started || !plugin)
        return st;
    st = load_plugin(pool, *worker, plugin, &exchange, &now, variants, fault, &why);
    if (st == LB_OK && strcmp(now.name, impl_entry->name) != 0)
        st = lb_fail(&why, LB_INVALID, "its name is %s now", now.name);
    if (st != LB_OK && st != LB_INTERRUPTED && !fault->reason[0]) { /* else it was lost */
        fault->verdict = LB_VERDICT_ERROR;
        snprintf(fault->reason, sizeof(fault->reason),
                 "its worker was replaced, and it can't be loaded again: %.330s", why.text);
        drop(pool, *worker);
    }
    end_exchange(&exchange);
    return st == LB_OK || st == LB_INTERRUPTED ? st : LB_FAILED;
}

/* Finds the worker of the implementation (NULL: of the built-in ones) and asks it. The reply's
 * status; LB_FAILED with the reason when the worker was lost. */
static enum lb_status ask_worker_of(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                                    struct exchange *exchange, struct lb_error *why)
{
    struct lb_worker *worker;
    struct lb_fault fault = {.reason = ""};
    enum lb_status st = find_worker(pool, impl_entry, &worker, &fault, why);
    if (st == LB_OK)
        st = ask(pool, worker, exchange, &fault);
    if (st == LB_FAILED && fault.reason[0])
        return lb_fail(why, LB_FAILED, "%s", fault.reason);
    return st == LB_OK ? reply_status(exchange, why) : st;
}

static enum lb_status read_probe(const json_t *reply, struct lb_probe *probe, struct lb_error *err)
{
    json_int_t weights, gradients, reserve, workspace;
    const char *description, *note;
    if (json_unpack((json_t *)reply, "{s:I, s:I, s:I, s:I, s:s, s:s}", "weights", &weights,
                    "gradients", &gradients, "reserve", &reserve, "workspace", &workspace,
                    "description", &description, "note", &note) != 0)
        return lb_fail(err, LB_INVALID, "the worker's reply lacks what the case needs");
    probe->sizes =
        (struct lb_sizes){(size_t)weights, (size_t)gradients, (size_t)reserve, (size_t)workspace};
    snprintf(probe->description, sizeof(probe->description), "%s", description);
    snprintf(probe->note, sizeof(probe->note), "%s", note);
    return LB_OK;
}

enum lb_status lb_pool_probe(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                             const struct lb_case *c, struct lb_probe *probe, struct lb_error *why)
{
    char id[LB_CASE_ID_SIZE];
    struct exchange exchange = {.phase = "the question"};
    lb_case_print(c, id);
    exchange.request = json_pack("{s:s, s:s}", "op", probe ? "probe" : "supports", "case", id);
    enum lb_status st = ask_worker_of(pool, impl_entry, &exchange, why);
    if (st == LB_OK && probe)
        st = read_probe(exchange.reply, probe, why);
    end_exchange(&exchange);
    return st;
}

/* Has the worker load the implementation's library, whose version goes to the libraries. An
 * implementation whose library can't be loaded, or ends the worker, is absent from now on. */
static enum lb_status ask_library(struct lb_pool *pool, struct lb_impl_entry *impl_entry,
                                  json_t *libraries, struct lb_error *err)
{
    struct lb_worker *worker;
    struct lb_fault fault = {.reason = ""};
    struct lb_error why = {""};
    struct exchange exchange = {
        .request = json_pack("{s:s, s:s}", "op", "library", "implementation", impl_entry->name),
        .phase = "loading"};
    bool started;
    enum lb_status st = LB_OK;
    LB_TRY(find_or_start(pool, "libraries", &worker, &started, err));
    st = ask(pool, worker, &exchange, &fault);
    if (st == LB_FAILED)
        lb_fail(&why, LB_ABSENT, "%s can't be loaded: %.400s", impl_entry->library->name,
                fault.reason);
    else if (st == LB_OK)
        st = reply_status(&exchange, &why);
    if (st != LB_INTERRUPTED) {
        lb_library_add(libraries, impl_entry,
                       st == LB_OK ? json_string_value(exchange.reply) : NULL);
        if (st != LB_OK)
            impl_entry->absent = lb_needed(strdup(why.text));
        st = LB_OK;
    }
done:
    end_exchange(&exchange);
    return st;
}

enum lb_status lb_pool_libraries(struct lb_pool *pool, struct lb_registry *registry,
                                 json_t **libraries, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_worker_limits of_cases = pool->limits;
    *libraries = lb_linked_libraries();
    pool->limits.call_s = fmax(of_cases.call_s, LOAD_LIMIT_S);
    pool->limits.memory_bytes = 0;
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
    pool->limits = of_cases;
    return st;
}

enum lb_status lb_pool_find_device(struct lb_pool *pool, json_t **device, struct lb_error *why)
{
    struct lb_error reason = {""};
    struct exchange exchange = {.request = json_pack("{s:s}", "op", "device"), .phase = "device"};
    enum lb_status st = ask_worker_of(pool, NULL, &exchange, &reason);
    *device = st == LB_OK ? json_incref((json_t *)exchange.reply) : NULL;
    end_exchange(&exchange);
    if (st == LB_FAILED)
        return lb_fail(why, LB_ABSENT, "looking for a device: %s", reason.text);
    return st == LB_OK ? LB_OK : lb_fail(why, st, "%s", reason.text);
}

enum lb_status lb_pool_device(struct lb_pool *pool, json_t **device, struct lb_error *why)
{
    struct lb_device_info info;
    enum lb_status st = lb_pool_find_device(pool, device, why);
    if (st == LB_OK)
        lb_device_from_json(*device, &info);
    if (st == LB_OK || st == LB_ABSENT)
        lb_device_assume(st == LB_OK ? &info : NULL, why->text);
    return st;
}

void lb_pool_tell_ceilings(struct lb_pool *pool, const json_t *ceilings)
{
    json_decref(pool->ceilings);
    pool->ceilings = json_incref((json_t *)ceilings);
}

enum lb_status lb_pool_ceilings(struct lb_pool *pool, double seconds, json_t **ceilings,
                                struct lb_error *why)
{
    struct lb_error reason = {""};
    struct exchange exchange = {.request =
                                    json_pack("{s:s, s:f}", "op", "ceilings", "seconds", seconds),
                                .phase = "the first figure",
                                .known = ceilings};
    *ceilings = NULL;
    enum lb_status st = ask_worker_of(pool, NULL, &exchange, &reason);
    if (st == LB_OK) {
        json_decref(*ceilings);
        *ceilings = json_incref((json_t *)exchange.reply);
    } else {
        lb_fail(why, st, "%s%s", st == LB_FAILED ? "measuring ceilings: " : "", reason.text);
    }
    end_exchange(&exchange);
    return st;
}

/* Waits until the workers that have nothing to do use no CPU, and ends those that do not stop. */
static void settle_others(struct lb_pool *pool, const struct lb_worker *worker)
{
    struct lb_worker *next;
    for (struct lb_worker *other = pool->workers; other; other = next) {
        next = other->next;
        if (other != worker && !lb_worker_is_idle(other, 0.3))
            drop(pool, other);
    }
}

/* A new reference, or NULL. Requests of jobs that a worker does in place of sampling have kernels
 * or outputs. */
static json_t *pack_job(const struct lb_pool *pool, const struct lb_job *job, const char *path,
                        bool kernels)
{
    const struct lb_sampler_options *sampler = &job->sampler;
    char id[LB_CASE_ID_SIZE];
    lb_case_print(job->c, id);
    return json_pack(
        "{s:s, s:s, s:s*, s:I, s:{s:I, s:I, s:f, s:f}, s:f, s:b, s:b, s:s*, s:f, s:O*}", "op",
        "run", "case", id, "path", path, "seed", (json_int_t)job->seed, "sampler", "min_samples",
        (json_int_t)sampler->min_samples, "max_samples", (json_int_t)sampler->max_samples,
        "precision", sampler->precision, "max_ns", sampler->max_ns, "loss_scale",
        job->loss_scale > 0 ? job->loss_scale : 1, "dynamic_loss_scale", job->dynamic_loss_scale,
        "kernels", kernels, "outputs", job->outputs, "memory_bytes", pool->limits.memory_bytes,
        "ceilings", pool->ceilings);
}

/* Has the worker run the job, and replaces the row by its own; with kernels, trace it instead.
 * by_path: a plug-in is loaded by that run, because the worker serves several implementations.
 * LB_FAILED with *fault filled: the worker was lost. */
static enum lb_status run_job(struct lb_pool *pool, struct lb_worker *worker,
                              const struct lb_impl_entry *impl_entry, const struct lb_job *job,
                              bool by_path, bool kernels, struct lb_row *row,
                              struct lb_fault *fault)
{
    struct lb_row measured;
    struct lb_error why;
    struct exchange exchange = {
        .request = pack_job(pool, job, by_path ? impl_entry->plugin : NULL, kernels),
        .phase = "start",
        .sampling_s = job->sampler.max_ns / 1e9,
    };
    settle_others(pool, worker);
    enum lb_status st = ask(pool, worker, &exchange, fault);
    if (st == LB_OK && reply_status(&exchange, &why) == LB_OK &&
        lb_row_from_json(exchange.reply, &measured, &why) == LB_OK) {
        lb_row_free(row);
        *row = measured;
    } else if (st == LB_OK) {
        snprintf(fault->reason, sizeof(fault->reason), "its row can't be read: %.360s", why.text);
        if (!exchange.unfit) /* else it was dropped before */
            drop(pool, worker);
        st = LB_FAILED;
    }
    end_exchange(&exchange);
    return st;
}

/* Ends the plug-in's worker when it has run with another number of threads, which it would keep. */
static void renew_for_threads(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                              int threads)
{
    struct lb_worker *worker = impl_entry->plugin ? find_named(pool, impl_entry->plugin) : NULL;
    if (worker && worker->threads > 0 && worker->threads != threads)
        drop(pool, worker);
}

/* Traces the kernels of one call into the row, or the reason why there are none. The worker serves
 * this trace alone, because profiling libraries may crash, hang or stay attached; whatever happens
 * to it, the measured row stays. */
static void trace_kernels(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                          const struct lb_job *job, struct lb_row *row)
{
    struct lb_worker *worker = NULL;
    struct lb_row traced = lb_row_make(job->c);
    struct lb_fault fault = {.reason = ""};
    struct lb_error why = {""};
    bool started;
    enum lb_status st = LB_ABSENT;
    if (impl_entry->memory != LB_DEVICE)
        lb_fail(&why, LB_ABSENT, "it runs on the host, without GPU kernels");
    else
        st = find_or_start(pool, "kernel trace", &worker, &started, &why);
    if (st == LB_OK)
        st = run_job(pool, worker, impl_entry, job, true, true, &traced, &fault);
    if (st == LB_OK && traced.verdict == LB_VERDICT_OK) {
        row->kernels = traced.kernels;
        traced.kernels = (struct lb_kernels){0};
        if (traced.warning[0])
            lb_row_warn(row, traced.warning);
    } else {
        lb_row_print(&row->kernels_reason, "%s",
                     st == LB_OK            ? traced.reason
                     : st == LB_INTERRUPTED ? "the run was stopped before the trace ended"
                     : fault.reason[0]      ? fault.reason
                                            : why.text);
    }
    lb_row_free(&traced);
    drop(pool, find_named(pool, "kernel trace"));
}

/* Runs the job once. LB_FAILED with *fault filled: the worker was lost. */
static enum lb_status try_job(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                              const struct lb_job *job, struct lb_row *row, struct lb_fault *fault,
                              struct lb_error *err)
{
    struct lb_worker *worker;
    bool started;
    *fault = (struct lb_fault){.verdict = LB_VERDICT_ERROR};
    *row = lb_row_make(job->c);
    if (impl_entry->traits & LB_THREADS_ONCE)
        renew_for_threads(pool, impl_entry, job->c->threads);
    enum lb_status st = job->process ? find_or_start(pool, job->process, &worker, &started, err)
                                     : find_worker(pool, impl_entry, &worker, fault, err);
    if (st == LB_OK) {
        worker->threads = job->c->threads;
        st = run_job(pool, worker, impl_entry, job, job->process != NULL, false, row, fault);
    }
    return st;
}

enum lb_status lb_pool_run(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                           const struct lb_job *job, struct lb_row *row, struct lb_error *err)
{
    struct lb_fault fault;
    double start = lb_now_ns();
    enum lb_status st = try_job(pool, impl_entry, job, row, &fault, err);
    if (st == LB_FAILED && fault.innocent) {
        char id[LB_CASE_ID_SIZE];
        lb_case_print(job->c, id);
        fprintf(stderr, "warning: %s: %s: it is run again\n", id, fault.reason);
        lb_row_free(row);
        st = try_job(pool, impl_entry, job, row, &fault, err);
    }
    if (st == LB_OK && job->kernels && row->verdict == LB_VERDICT_OK)
        trace_kernels(pool, impl_entry, job, row);
    if (st == LB_FAILED && fault.reason[0]) {
        /* A fault replaces a row that came before it: destroy belongs to the case too. */
        lb_row_free(row);
        *row = lb_row_make(job->c);
        row->verdict = fault.verdict;
        lb_row_print(&row->reason, "%s", fault.reason);
        row->elapsed_ns = lb_now_ns() - start;
        st = LB_OK;
    }
    return st;
}
