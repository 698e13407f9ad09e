/* Worker processes, the worker's side: serves requests until the program hangs up.
 *
 *     {"op": "plugin", "path": P}   -> {"status": 0, "name", "summary", "variants", ...}
 *     {"op": "supports", "case": C} -> {"status": S, "text": why}
 *     {"op": "probe", "case": C}    -> {"status": S, "text": why, "weights": bytes, ..., "chosen"}
 *     {"op": "run", "case": C, ...} -> {"phase": P}..., {"row": {...}}, {"phase": "destroy"},
 *                                      {"done": true, "lost": B}: lost, when its device is gone
 *     {"op": "device"}              -> {"status": S, "text": why, "device": {...}}
 *     {"op": "ceilings"}            -> {"status": S, "text": why, "ceilings": {...}}
 * A run with a "plugin": P is on that one, whichever else this worker serves. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/text.h"
#include "device/memory.h"
#include "measure/case_run.h"
#include "measure/ceilings_measure.h"
#include "record/device_record.h"
#include "run/planted_slowdown.h"
#include "run/worker.h"
#include "support/channel.h"

enum { CHANNEL_FD = 3, CACHE_PER_MILLE = 100 /* of the host's memory, for oracle results */ };

struct server {
    struct lb_channel channel;
    struct lb_registry registry;
    struct lb_reference_cache *cache;
    const struct lb_impl *plugin; /* the one this worker serves; NULL for the built-ins */
    int device;                   /* ordinal of the one to use */
    struct guest {
        char *path;
        const struct lb_impl *impl;
    } guests[2]; /* plug-ins that runs asked for by path */
};

static json_t *status_reply(enum lb_status st, struct lb_error *err)
{
    lb_clean_text(err->text);
    return json_pack("{s:i, s:s}", "status", (int)st, "text", st == LB_OK ? "" : err->text);
}

static const struct lb_impl *find_impl(const struct server *server, const struct lb_case *c)
{
    if (server->plugin)
        return server->plugin;
    const struct lb_impl_entry *entry = lb_registry_find(&server->registry, c->impl);
    if (!entry && strcmp(c->impl, lb_planted_impl.name) == 0)
        return &lb_planted_impl;
    return entry ? entry->impl : NULL;
}

/* The plug-in at the path, loaded when it is asked for first. */
static const struct lb_impl *find_guest(struct server *server, const char *path,
                                        struct lb_error *err)
{
    for (size_t i = 0; i < sizeof(server->guests) / sizeof(server->guests[0]); i++) {
        struct guest *guest = &server->guests[i];
        if (guest->path && strcmp(guest->path, path) == 0)
            return guest->impl;
        if (guest->path)
            continue;
        guest->path = strdup(path);
        if (lb_plugin_load(path, &guest->impl, err) != LB_OK)
            guest->impl = NULL;
        return guest->impl;
    }
    lb_fail(err, LB_FAILED, "%s: a process serves two plug-ins at most", path);
    return NULL;
}

static void serve_plugin(struct server *server, const json_t *request)
{
    struct lb_error err = {""};
    const char *path = json_string_value(json_object_get(request, "path"));
    enum lb_status st = lb_plugin_load(path, &server->plugin, &err);
    if (st != LB_OK) {
        lb_channel_send(&server->channel, status_reply(st, &err), NULL);
        return;
    }
    const struct lb_impl *impl = server->plugin;
    struct lb_error summary;
    snprintf(summary.text, sizeof(summary.text), "%s", impl->summary);
    lb_clean_text(summary.text);
    json_t *variants = json_array();
    for (size_t i = 0; impl->variants && impl->variants[i]; i++)
        json_array_append_new(variants, json_string(impl->variants[i]));
    lb_channel_send(&server->channel,
                    json_pack("{s:i, s:s, s:s, s:o, s:i, s:I}", "status", LB_OK, "name", impl->name,
                              "summary", summary.text, "variants", variants, "memory",
                              (int)impl->memory, "traits", (json_int_t)impl->traits),
                    NULL);
}

/* Opens the device that an implementation may need; what comes of it is known to the device layer
 * from here on. */
static void open_device(const struct server *server, const struct lb_impl *impl)
{
    if (impl && impl->memory == LB_DEVICE)
        lb_device_open(server->device, NULL);
}

/* Answers "supports" and "probe". */
static void serve_question(struct server *server, const json_t *request, bool opens)
{
    struct lb_error err = {""};
    struct lb_case c;
    struct lb_probe probe = {0};
    const char *text = json_string_value(json_object_get(request, "case"));
    enum lb_status st = lb_case_parse(text, &c, NULL, NULL, &err);
    const struct lb_impl *impl = st == LB_OK ? find_impl(server, &c) : NULL;
    open_device(server, impl);
    if (impl && opens)
        st = lb_case_probe(impl, &c, lb_host_available(), &probe, &err);
    else if (impl)
        st = lb_case_supported(impl, &c, lb_host_available(), &err);
    else if (st == LB_OK)
        st = lb_fail(&err, LB_ABSENT, "%s is not built", c.impl);
    json_t *reply = status_reply(st, &err);
    lb_clean_text(probe.description);
    json_object_update_new(
        reply, json_pack("{s:I, s:I, s:I, s:I, s:s}", "weights", (json_int_t)probe.sizes.weights,
                         "gradients", (json_int_t)probe.sizes.gradients, "reserve",
                         (json_int_t)probe.sizes.reserve, "workspace",
                         (json_int_t)probe.sizes.workspace, "chosen", probe.description));
    lb_channel_send(&server->channel, reply, NULL);
}

static void serve_supports(struct server *server, const json_t *request)
{
    serve_question(server, request, false);
}

static void serve_probe(struct server *server, const json_t *request)
{
    serve_question(server, request, true);
}

static void send_phase(void *user, const char *phase)
{
    struct server *server = user;
    lb_channel_send(&server->channel, json_pack("{s:s}", "phase", phase), NULL);
}

static void send_row(void *user, const struct lb_row *row)
{
    struct server *server = user;
    lb_channel_send(&server->channel, json_pack("{s:o}", "row", lb_row_to_json(row)), NULL);
}

static void serve_run(struct server *server, const json_t *request)
{
    struct lb_case c = lb_case_defaults();
    const char *text = json_string_value(json_object_get(request, "case"));
    const struct lb_run_observer observer = {server, send_phase, send_row};
    struct lb_run_options options = {.cache = server->cache};
    json_int_t seed, min_samples, max_samples;
    double memory_bytes;
    struct lb_row row;

    json_unpack((json_t *)request, "{s:I, s:I, s:I, s:F, s:F, s:F, s:F}", "seed", &seed,
                "min_samples", &min_samples, "max_samples", &max_samples, "precision",
                &options.sampler.precision, "max_ns", &options.sampler.max_ns, "memory_bytes",
                &memory_bytes, "loss_scale", &options.loss_scale);
    options.kernels = json_is_true(json_object_get(request, "kernels"));
    options.seed = (uint64_t)seed;
    options.sampler.min_samples = (size_t)min_samples;
    options.sampler.max_samples = (size_t)max_samples;
    lb_host_limit(memory_bytes);

    /* The program has looked the implementation up before it asks. */
    const char *plugin = json_string_value(json_object_get(request, "plugin"));
    const struct lb_impl *impl = NULL;
    struct lb_error err = {"the worker does not know the implementation"};
    if (lb_case_parse(text, &c, NULL, NULL, &err) == LB_OK)
        impl = plugin ? find_guest(server, plugin, &err) : find_impl(server, &c);
    open_device(server, impl);
    if (impl) {
        lb_case_run(impl, &c, &options, &observer, &row);
    } else {
        row = lb_row_make(&c);
        snprintf(row.reason, sizeof(row.reason), "%s", err.text);
        send_row(server, &row);
    }
    lb_row_free(&row);
    bool lost = lb_device()->lost && lb_device()->lost();
    lb_channel_send(&server->channel, json_pack("{s:b, s:b}", "done", 1, "lost", lost), NULL);
}

static void serve_device(struct server *server, const json_t *request)
{
    struct lb_error err = {""};
    (void)request;
    enum lb_status st = lb_device_open(server->device, &err);
    json_t *reply = status_reply(st, &err);
    if (st == LB_OK)
        json_object_set_new(reply, "device", lb_device_to_json(lb_device_known(NULL)));
    lb_channel_send(&server->channel, reply, NULL);
}

static void serve_ceilings(struct server *server, const json_t *request)
{
    struct lb_error err = {""};
    struct lb_ceilings ceilings;
    (void)request;
    enum lb_status st = lb_device_open(server->device, &err);
    if (st == LB_OK)
        st = lb_ceilings_measure(&ceilings, &err);
    json_t *reply = status_reply(st, &err);
    if (st == LB_OK)
        json_object_set_new(reply, "ceilings", lb_ceilings_to_json(&ceilings));
    lb_channel_send(&server->channel, reply, NULL);
}

static void serve(struct server *server, const json_t *request)
{
    static const struct {
        const char *op;
        void (*function)(struct server *, const json_t *);
    } operations[] = {
        {"plugin", serve_plugin}, {"supports", serve_supports}, {"probe", serve_probe},
        {"run", serve_run},       {"device", serve_device},     {"ceilings", serve_ceilings},
    };
    const char *op = json_string_value(json_object_get(request, "op"));
    for (size_t i = 0; op && i < sizeof(operations) / sizeof(operations[0]); i++)
        if (strcmp(operations[i].op, op) == 0)
            operations[i].function(server, request);
}

int lb_worker_main(long parent, int device)
{
    struct server server = {.channel = {.fd = CHANNEL_FD}, .device = device};
    struct lb_error err = {""};
    size_t cache_bytes = (size_t)(lb_host_total() * CACHE_PER_MILLE / 1000);

    fcntl(CHANNEL_FD, F_SETFD, FD_CLOEXEC); /* no other program is to hold the channel open */
    /* Dies with the program, also when that was killed before this line was reached. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)parent)
        return 1;
    if (lb_registry_create(lb_impl_table, &server.registry, &err) != LB_OK ||
        lb_reference_cache_create(cache_bytes, &server.cache, &err) != LB_OK) {
        fprintf(stderr, "bench-lstm: worker: %s\n", err.text);
        return 1;
    }
    for (;;) {
        json_t *request = NULL;
        if (lb_channel_receive(&server.channel, -1, &request, NULL) != LB_OK)
            break; /* the program hung up: nobody is left to tell */
        if (request)
            serve(&server, request);
        json_decref(request);
    }
    lb_reference_cache_destroy(server.cache);
    lb_registry_destroy(&server.registry);
    lb_channel_close(&server.channel);
    return 0;
}
