/* Worker processes, the program's side: what is asked of them and what comes of it. */
#include "run/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "record/device_record.h"
#include "run/worker_process.h"

/* Sends a request and waits for its one reply. */
static enum lb_status ask(struct lb_pool *pool, struct lb_worker *worker, json_t *request,
                          const char *phase, double limit_s, json_t **reply, struct lb_fault *fault)
{
    /* A failed send means that the worker is gone, which await finds out and explains. */
    lb_channel_send(&worker->channel, request, NULL);
    return lb_worker_await(pool, worker, phase, limit_s, reply, fault);
}

/* A reply's status and text as a return value. */
static enum lb_status reply_status(const json_t *reply, struct lb_error *err)
{
    const char *text = json_string_value(json_object_get(reply, "text"));
    enum lb_status st = (enum lb_status)json_integer_value(json_object_get(reply, "status"));
    return st == LB_OK ? LB_OK : lb_fail(err, st, "%s", text ? text : "no reason was given");
}

/* Starts a worker for the plug-in and has it loaded. *reply describes it, and is the caller's. */
static enum lb_status load_in_worker(struct lb_pool *pool, const char *path,
                                     struct lb_worker **worker, json_t **reply,
                                     struct lb_fault *fault, struct lb_error *err)
{
    enum lb_status st = lb_worker_start(pool, path, worker, err);
    if (st != LB_OK)
        return st;
    json_t *request = json_pack("{s:s, s:s}", "op", "plugin", "path", path);
    if (!request) { /* it could not be kept in the records either */
        lb_worker_end(pool, *worker);
        return lb_fail(err, LB_INVALID, "--plugin %s: the path must be UTF-8", path);
    }
    return ask(pool, *worker, request, "loading", pool->limits.call_s, reply, fault);
}

enum lb_status lb_pool_add_plugin(struct lb_pool *pool, const char *path,
                                  struct lb_registry *registry, struct lb_error *err)
{
    struct lb_worker *worker = NULL;
    struct lb_fault fault = {.reason = ""};
    json_t *reply = NULL;
    enum lb_status st = load_in_worker(pool, path, &worker, &reply, &fault, err);
    if (st == LB_FAILED && fault.reason[0])
        return lb_fail(err, LB_INVALID, "--plugin %s: %s", path, fault.reason);
    if (st != LB_OK)
        return st;
    LB_TRY(reply_status(reply, err));

    char *variants[64] = {NULL};
    const json_t *list = json_object_get(reply, "variants");
    for (size_t i = 0; i < json_array_size(list) && i < 63; i++)
        variants[i] = (char *)json_string_value(json_array_get(list, i));
    struct lb_impl_entry entry = {
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
static enum lb_status find_worker(struct lb_pool *pool, const char *plugin, struct lb_worker **out,
                                  struct lb_fault *fault, struct lb_error *err)
{
    const char *origin = plugin ? plugin : "";
    for (*out = pool->workers; *out; *out = (*out)->next)
        if (strcmp((*out)->origin, origin) == 0)
            return LB_OK;
    if (!plugin)
        return lb_worker_start(pool, origin, out, err);
    json_t *reply = NULL;
    enum lb_status st = load_in_worker(pool, plugin, out, &reply, fault, err);
    if (st == LB_OK && reply_status(reply, err) != LB_OK) {
        /* It loaded before: say what changed, in the row. */
        fault->verdict = LB_VERDICT_ERROR;
        snprintf(fault->reason, sizeof(fault->reason), "%.380s", err ? err->text : "");
        lb_worker_end(pool, *out);
        st = LB_FAILED;
    }
    json_decref(reply);
    return st;
}

/* The living worker of that name, which serves whatever it is asked for. */
static enum lb_status find_shared(struct lb_pool *pool, const char *name, struct lb_worker **out,
                                  struct lb_error *err)
{
    for (*out = pool->workers; *out; *out = (*out)->next)
        if (strcmp((*out)->origin, name) == 0)
            return LB_OK;
    return lb_worker_start(pool, name, out, err);
}

/* The probe's numbers from a reply. */
static void read_probe(const json_t *reply, struct lb_probe *probe)
{
    json_int_t weights = 0, gradients = 0, reserve = 0, workspace = 0;
    const char *description = "";
    json_unpack((json_t *)reply, "{s:I, s:I, s:I, s:I, s:s}", "weights", &weights, "gradients",
                &gradients, "reserve", &reserve, "workspace", &workspace, "chosen", &description);
    probe->sizes =
        (struct lb_sizes){(size_t)weights, (size_t)gradients, (size_t)reserve, (size_t)workspace};
    snprintf(probe->description, sizeof(probe->description), "%s", description);
}

enum lb_status lb_pool_probe(struct lb_pool *pool, const struct lb_impl_entry *entry,
                             const struct lb_case *c, struct lb_probe *probe, struct lb_error *why)
{
    struct lb_worker *worker;
    struct lb_fault fault = {.reason = "the worker could not be started"};
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
    struct lb_worker *worker;
    struct lb_fault fault = {.reason = "the worker could not be started"};
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

static enum lb_status read_row(const json_t *object, const struct lb_case *c, struct lb_row *row,
                               struct lb_error *why)
{
    enum lb_status st = lb_row_from_json(object, row, why);
    if (st == LB_OK && !lb_case_same(&row->c, c))
        st = lb_fail(why, LB_INVALID, "it is of another case");
    return st;
}

/* A worker whose row can't be read is not to be trusted with another case. */
static enum lb_status give_up(struct lb_pool *pool, struct lb_worker *worker,
                              const struct lb_error *why, struct lb_fault *fault)
{
    fault->verdict = LB_VERDICT_ERROR;
    snprintf(fault->reason, sizeof(fault->reason), "its row can't be read: %.360s", why->text);
    lb_worker_end(pool, worker);
    return LB_FAILED;
}

/* Follows a running case from phase to phase until it says "done". *lost: the worker lives, but its
 * device is gone. */
static enum lb_status follow(struct lb_pool *pool, struct lb_worker *worker,
                             const struct lb_job *job, struct lb_row *row, bool *lost,
                             struct lb_fault *fault)
{
    char phase[32] = "start";
    enum lb_status st = LB_OK;
    struct lb_error why;
    for (bool done = false; st == LB_OK && !done;) {
        json_t *message = NULL;
        st = lb_worker_await(pool, worker, phase, phase_limit(pool, phase, job), &message, fault);
        if (st != LB_OK)
            break;
        const json_t *name = json_object_get(message, "phase");
        const json_t *result = json_object_get(message, "row");
        if (name)
            snprintf(phase, sizeof(phase), "%s", json_string_value(name));
        else if (result && read_row(result, job->c, row, &why) != LB_OK)
            st = give_up(pool, worker, &why, fault);
        else if (!result)
            done = true;
        *lost = json_is_true(json_object_get(message, "lost"));
        json_decref(message);
    }
    return st;
}

enum lb_status lb_pool_run(struct lb_pool *pool, const struct lb_impl_entry *entry,
                           const struct lb_job *job, struct lb_row *row, struct lb_error *err)
{
    struct lb_worker *worker;
    struct lb_fault fault = {.verdict = LB_VERDICT_ERROR};
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
            lb_worker_end(pool, worker);
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
