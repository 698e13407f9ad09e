/* Worker processes, the program's side: the pool of living workers, and the requests to them. */
#include "run/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "host/shared_library.h"
#include "record/device_record.h"
#include "run/worker_messages.h"
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

/* Takes the worker out of the pool and ends it. */
static void drop(struct lb_pool *pool, struct lb_worker *worker)
{
    struct lb_worker **at = &pool->workers;
    while (*at && *at != worker)
        at = &(*at)->next;
    if (*at)
        *at = worker->next;
    lb_worker_destroy(worker);
}

/* Ends the worker of that name, if there is one. */
static void drop_named(struct lb_pool *pool, const char *name)
{
    struct lb_worker *worker = pool->workers;
    while (worker && strcmp(worker->name, name) != 0)
        worker = worker->next;
    if (worker)
        drop(pool, worker);
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
    for (*worker = pool->workers; *worker; *worker = (*worker)->next)
        if (strcmp((*worker)->name, name) == 0)
            return LB_OK;
    enum lb_status st = lb_worker_start(name, pool->limits.device, worker, err);
    if (st != LB_OK)
        return st;
    *started = true;
    (*worker)->next = pool->workers;
    pool->workers = *worker;
    return LB_OK;
}

/* Waits for the worker's next message, as lb_worker_await; a lost worker leaves the pool. */
static enum lb_status await(struct lb_pool *pool, struct lb_worker *worker, const char *phase,
                            double limit_s, json_t **message, struct lb_fault *fault)
{
    const struct lb_watch watch = {limit_s, pool->limits.memory_bytes, pool->stop};
    enum lb_status st = lb_worker_await(worker, phase, &watch, message, fault);
    if (st == LB_FAILED)
        drop(pool, worker);
    return st;
}

/* Sends the request. A worker that is gone is found, and explained, by the wait that follows. */
static enum lb_status send_request(struct lb_worker *worker, const struct lb_request *request,
                                   struct lb_fault *fault)
{
    json_t *message = lb_request_encode(request);
    if (!message) {
        snprintf(fault->reason, sizeof(fault->reason), "out of memory for a request");
        return LB_FAILED;
    }
    lb_worker_send(worker, message);
    return LB_OK;
}

/* Sends the request and waits for its one reply. */
static enum lb_status ask(struct lb_pool *pool, struct lb_worker *worker,
                          const struct lb_request *request, const char *phase, json_t **reply,
                          struct lb_fault *fault)
{
    enum lb_status st = send_request(worker, request, fault);
    if (st == LB_OK)
        st = await(pool, worker, phase, pool->limits.call_s, reply, fault);
    if (st == LB_OK && lb_device_lost_decode(*reply))
        drop(pool, worker);
    return st;
}

/* Whether the path can be sent, and kept in records: both are JSON. */
static bool is_utf8(const char *path)
{
    json_t *text = json_string(path);
    bool fine = text != NULL;
    json_decref(text);
    return fine;
}

enum lb_status lb_pool_add_plugin(struct lb_pool *pool, const char *path,
                                  struct lb_registry *registry, struct lb_error *err)
{
    struct lb_worker *worker;
    struct lb_fault fault = {.reason = ""};
    struct lb_impl_entry impl_entry;
    struct lb_error why = {""};
    char *variants[LB_VARIANTS_MAX + 1];
    const struct lb_request request = {.kind = LB_REQUEST_PLUGIN, .path = path};
    json_t *reply = NULL;
    bool started;
    enum lb_status st = LB_OK;
    if (!is_utf8(path))
        return lb_fail(err, LB_INVALID, "--plugin %s: the path must be UTF-8", path);
    LB_TRY(find_or_start(pool, path, &worker, &started, err));
    st = ask(pool, worker, &request, "loading", &reply, &fault);
    if (st == LB_FAILED)
        return lb_fail(err, LB_INVALID, "--plugin %s: %s", path, fault.reason);
    LB_TRY(st);
    LB_TRY(lb_plugin_decode(reply, &impl_entry, variants, err));
    impl_entry.plugin = (char *)path;
    st = lb_registry_add(registry, &impl_entry, &why);
    if (st != LB_OK)
        lb_fail(err, st, "--plugin %s: %.300s", path, why.text);
done:
    json_decref(reply);
    return st;
}

/* Whether the plug-in that a new worker has loaded is the one that the registry knows: its file may
 * have been replaced since. LB_FAILED with the reason. */
static enum lb_status check_same(const json_t *reply, const struct lb_impl_entry *known,
                                 struct lb_error *why)
{
    struct lb_impl_entry impl_entry;
    char *variants[LB_VARIANTS_MAX + 1];
    size_t i = 0;
    enum lb_status st = lb_plugin_decode(reply, &impl_entry, variants, why);
    if (st != LB_OK)
        return st;
    if (strcmp(impl_entry.name, known->name) != 0)
        return lb_fail(why, LB_FAILED, "its name is %s now", impl_entry.name);
    while (impl_entry.variants && known->variants && impl_entry.variants[i] && known->variants[i] &&
           strcmp(impl_entry.variants[i], known->variants[i]) == 0)
        i++;
    bool ends = !impl_entry.variants || !impl_entry.variants[i];
    if (ends != (!known->variants || !known->variants[i]) || !ends)
        return lb_fail(why, LB_FAILED, "its variants are others now");
    return LB_OK;
}

/* Finds the worker of an implementation, or the worker of the built-in ones when impl_entry is
 * NULL. LB_FAILED, with *fault filled, when a worker was started anew and can't load the plug-in
 * any more. That costs the case that wanted it, and no other. */
static enum lb_status find_worker(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                                  struct lb_worker **worker, struct lb_fault *fault,
                                  struct lb_error *err)
{
    const char *plugin = impl_entry ? impl_entry->plugin : NULL;
    const struct lb_request request = {.kind = LB_REQUEST_PLUGIN, .path = plugin};
    struct lb_error why = {""};
    json_t *reply = NULL;
    bool started;
    enum lb_status st = find_or_start(pool, plugin ? plugin : "", worker, &started, err);
    if (st != LB_OK || !started || !plugin)
        return st;
    st = ask(pool, *worker, &request, "loading", &reply, fault);
    if (st == LB_OK && check_same(reply, impl_entry, &why) != LB_OK) {
        fault->verdict = LB_VERDICT_ERROR;
        snprintf(fault->reason, sizeof(fault->reason),
                 "its worker was replaced, and it can't be loaded again: %.330s", why.text);
        drop(pool, *worker);
        st = LB_FAILED;
    }
    json_decref(reply);
    return st;
}

enum lb_status lb_pool_probe(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                             const struct lb_case *c, struct lb_probe *probe, struct lb_error *why)
{
    struct lb_worker *worker;
    struct lb_fault fault = {.reason = "the worker could not be started"};
    char id[LB_CASE_ID_SIZE];
    json_t *reply = NULL;
    lb_case_print(c, id);
    const struct lb_request request = {
        .kind = probe ? LB_REQUEST_PROBE : LB_REQUEST_SUPPORTS,
        .text = id,
    };
    enum lb_status st = find_worker(pool, impl_entry, &worker, &fault, why);
    if (st == LB_OK)
        st = ask(pool, worker, &request, "the question", &reply, &fault);
    if (st == LB_FAILED)
        return lb_fail(why, LB_FAILED, "%s", fault.reason);
    if (st == LB_OK)
        st = probe ? lb_probe_decode(reply, probe, why) : lb_status_decode(reply, why);
    json_decref(reply);
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
    const struct lb_request request = {.kind = LB_REQUEST_LIBRARY, .text = impl_entry->name};
    const char *version = NULL;
    json_t *reply = NULL;
    bool started;
    enum lb_status st = find_or_start(pool, "libraries", &worker, &started, err);
    if (st != LB_OK)
        return st;
    st = ask(pool, worker, &request, "loading", &reply, &fault);
    if (st == LB_FAILED)
        lb_fail(&why, LB_ABSENT, "%s can't be loaded: %.400s", impl_entry->library->name,
                fault.reason);
    else if (st == LB_OK)
        st = lb_library_decode(reply, &version, &why);
    if (st != LB_INTERRUPTED) {
        lb_library_add(libraries, impl_entry, version);
        if (st != LB_OK)
            impl_entry->absent = strdup(why.text);
        st = st == LB_OK || impl_entry->absent ? LB_OK : lb_fail(err, LB_OOM, "out of memory");
    }
    json_decref(reply);
    return st;
}

enum lb_status lb_pool_libraries(struct lb_pool *pool, struct lb_registry *registry,
                                 json_t **libraries, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_worker_limits of_cases = pool->limits;
    *libraries = lb_linked_libraries();
    if (!*libraries)
        return lb_fail(err, LB_OOM, "out of memory");
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
    drop_named(pool, "libraries"); /* the workers of cases load what their cases need */
    pool->limits = of_cases;
    return st;
}

/* Asks the worker of the built-in implementations about the device; *record, a new reference, is
 * its reply. phase: what is asked, for a fault's reason. */
static enum lb_status ask_device(struct lb_pool *pool, enum lb_request_kind kind, const char *phase,
                                 json_t **record, struct lb_error *why)
{
    struct lb_worker *worker;
    struct lb_fault fault = {.reason = "the worker could not be started"};
    const struct lb_request request = {.kind = kind};
    json_t *reply = NULL;
    *record = NULL;
    enum lb_status st = find_worker(pool, NULL, &worker, &fault, why);
    if (st == LB_OK)
        st = ask(pool, worker, &request, phase, &reply, &fault);
    if (st == LB_FAILED)
        st = lb_fail(why, LB_ABSENT, "looking for a device: %s", fault.reason);
    else if (st == LB_OK)
        st = lb_device_reply_decode(reply, record, why);
    json_decref(reply);
    return st;
}

enum lb_status lb_pool_find_device(struct lb_pool *pool, json_t **device, struct lb_error *why)
{
    return ask_device(pool, LB_REQUEST_DEVICE, "device", device, why);
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

/* Takes the messages that come after each figure, until the last one. */
static enum lb_status follow_figures(struct lb_pool *pool, struct lb_worker *worker,
                                     json_t **ceilings, json_t **reply, struct lb_fault *fault)
{
    char phase[96] = "the first figure";
    for (;;) {
        json_t *record, *message = NULL;
        const char *figure, *failed;
        enum lb_status st = await(pool, worker, phase, pool->limits.call_s, &message, fault);
        if (st != LB_OK || !lb_figure_decode(message, &record, &figure, &failed)) {
            *reply = message;
            if (st == LB_OK && lb_device_lost_decode(message))
                drop(pool, worker);
            return st;
        }
        if (failed[0])
            fprintf(stderr, "warning: ceilings: %s: %s\n", figure, failed);
        snprintf(phase, sizeof(phase), "the figure after %.60s", figure);
        json_decref(*ceilings);
        *ceilings = json_incref(record);
        json_decref(message);
    }
}

void lb_pool_tell_ceilings(struct lb_pool *pool, const json_t *ceilings)
{
    json_decref(pool->ceilings);
    pool->ceilings = json_incref((json_t *)ceilings);
}

enum lb_status lb_pool_ceilings(struct lb_pool *pool, double seconds, json_t **ceilings,
                                struct lb_error *why)
{
    struct lb_worker *worker;
    struct lb_fault fault = {.reason = "the worker could not be started"};
    const struct lb_request request = {.kind = LB_REQUEST_CEILINGS, .seconds = seconds};
    json_t *reply = NULL, *record = NULL;
    *ceilings = NULL;
    enum lb_status st = find_worker(pool, NULL, &worker, &fault, why);
    if (st == LB_OK)
        st = send_request(worker, &request, &fault);
    if (st == LB_OK)
        st = follow_figures(pool, worker, ceilings, &reply, &fault);
    if (st == LB_FAILED)
        st = lb_fail(why, LB_FAILED, "measuring ceilings: %s", fault.reason);
    else if (st == LB_OK)
        st = lb_device_reply_decode(reply, &record, why);
    if (record) {
        json_decref(*ceilings);
        *ceilings = record;
    }
    json_decref(reply);
    return st;
}

/* How long the worker may be silent in a phase. The oracle is the harness's own code, which can be
 * slow but does not hang. Sampling ends by itself after three times the case's time. */
static double phase_limit(const struct lb_pool *pool, const char *phase, const struct lb_job *job)
{
    if (strcmp(phase, "oracle") == 0)
        return (double)INFINITY;
    double sampling = strcmp(phase, "sample") == 0 ? 3 * job->sampler.max_ns / 1e9 : 0;
    return pool->limits.call_s + sampling;
}

/* Reads one message of a running case into event. A worker whose message can't be read, or whose
 * row is of another case, is ended: it is not to be trusted with the next case. */
static enum lb_status read_event(struct lb_pool *pool, struct lb_worker *worker,
                                 const json_t *message, const struct lb_job *job,
                                 struct lb_run_event *event, struct lb_fault *fault)
{
    struct lb_error why = {""};
    enum lb_status st = lb_run_event_decode(message, event, &why);
    if (st == LB_OK && event->kind == LB_EVENT_ROW && !lb_case_same(&event->row.c, job->c)) {
        st = lb_fail(&why, LB_INVALID, "it is of another case");
        lb_row_free(&event->row);
    }
    if (st == LB_OK)
        return LB_OK;
    fault->verdict = LB_VERDICT_ERROR;
    snprintf(fault->reason, sizeof(fault->reason), "its row can't be read: %.360s", why.text);
    drop(pool, worker);
    return LB_FAILED;
}

/* Follows a running case from phase to phase until it is done. *row, a valid one, becomes the row
 * that the worker sends. *spoiled: the worker has lost its device, or holds what the implementation
 * left behind, and must not serve another case. */
static enum lb_status follow(struct lb_pool *pool, struct lb_worker *worker,
                             const struct lb_job *job, struct lb_row *row, bool *spoiled,
                             struct lb_fault *fault)
{
    char phase[32] = "start";
    enum lb_status st = LB_OK;
    for (bool done = false; st == LB_OK && !done;) {
        json_t *message = NULL;
        struct lb_run_event event;
        st = await(pool, worker, phase, phase_limit(pool, phase, job), &message, fault);
        if (st == LB_OK)
            st = read_event(pool, worker, message, job, &event, fault);
        if (st == LB_OK && event.kind == LB_EVENT_PHASE) {
            snprintf(phase, sizeof(phase), "%s", event.phase);
        } else if (st == LB_OK && event.kind == LB_EVENT_ROW) {
            lb_row_free(row);
            *row = event.row;
        } else if (st == LB_OK) {
            char warning[200];
            done = true;
            if (isfinite(event.peak_bytes))
                row->peak_bytes = event.peak_bytes;
            snprintf(warning, sizeof(warning), "left behind: %.180s", event.left);
            if (event.left[0])
                lb_row_warn(row, warning);
            lb_row_set_reference(row, event.reference_ns);
            *spoiled = event.device_lost || event.left[0];
        }
        json_decref(message);
    }
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

/* Has the worker run the job; with kernels, trace it instead. by_path: a plug-in is loaded by that
 * run, because the worker serves several implementations. */
static enum lb_status run_job(struct lb_pool *pool, struct lb_worker *worker,
                              const struct lb_impl_entry *impl_entry, const struct lb_job *job,
                              bool by_path, bool kernels, struct lb_row *row,
                              struct lb_fault *fault)
{
    char id[LB_CASE_ID_SIZE];
    bool spoiled = false;
    lb_case_print(job->c, id);
    const struct lb_request request = {
        .kind = LB_REQUEST_RUN,
        .path = by_path ? impl_entry->plugin : NULL,
        .text = id,
        .seed = job->seed,
        .sampler = job->sampler,
        .memory_bytes = pool->limits.memory_bytes,
        .loss_scale = job->loss_scale > 0 ? job->loss_scale : 1,
        .dynamic_loss_scale = job->dynamic_loss_scale,
        .kernels = kernels,
        .outputs = job->outputs,
        .ceilings = pool->ceilings,
    };
    settle_others(pool, worker);
    enum lb_status st = send_request(worker, &request, fault);
    if (st == LB_OK)
        st = follow(pool, worker, job, row, &spoiled, fault);
    if (st == LB_OK && spoiled)
        drop(pool, worker);
    return st;
}

/* Ends the plug-in's worker when it has run with another number of threads, which it would keep. */
static void renew_for_threads(struct lb_pool *pool, const struct lb_impl_entry *impl_entry,
                              int threads)
{
    struct lb_worker *worker = pool->workers;
    while (worker && (!impl_entry->plugin || strcmp(worker->name, impl_entry->plugin) != 0))
        worker = worker->next;
    if (worker && worker->threads > 0 && worker->threads != threads)
        drop(pool, worker);
}

static void add_warning(struct lb_row *row, const char *text)
{
    lb_row_append(&row->warning, "%s%s", row->warning[0] && text[0] ? "; " : "", text);
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
        add_warning(row, traced.warning);
    } else {
        lb_row_print(&row->kernels_reason, "%s",
                     st == LB_OK            ? traced.reason
                     : st == LB_INTERRUPTED ? "the run was stopped before the trace ended"
                     : fault.reason[0]      ? fault.reason
                                            : why.text);
    }
    lb_row_free(&traced);
    drop_named(pool, "kernel trace");
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
