/* The worker's side: serves requests until the program hangs up. */
#include "run/worker.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "case/options.h"
#include "device/host_memory.h"
#include "host/cpu_affinity.h"
#include "host/process.h"
#include "host/shared_library.h"
#include "measure/ceilings_measure.h"
#include "record/environment.h"
#include "support/channel.h"
#include "support/cpu_load.h"
#include "support/leftovers.h"
#include "support/subprocess.h"
#include "trace/nvtx.h"

enum {
    CHANNEL_FD = 3,
    CACHE_PER_MILLE = 100, /* of the host's memory, for oracle results */
    SERVED_MAX = 64
};

struct server {
    struct lb_channel channel;
    struct lb_registry registry;
    struct lb_reference_cache cache;
    int device;                                /* ordinal of the GPU to use */
    struct lb_process_reading *before, *after; /* of a case: what was found, what is left */
    struct lb_cpu_load load;                   /* as the case's samples began; at_ns 0: none did */
    double others_share;                       /* of its CPUs, from then until destroy */
    bool destroyed;                            /* the case's implementation was destroyed */
    bool spoiled;                              /* a case left something behind */
    struct {
        const struct lb_impl *impl;
        char variant[LB_NAME_SIZE];
        bool backward;    /* with a backward, for which a library may have threads of its own */
        int threads;      /* the most that a case of it was given */
        size_t kept;      /* threads that its cases have left behind */
    } served[SERVED_MAX]; /* what has run a case in this process */
    size_t served_count;
};

/* A JSON string of the text without what is no UTF-8 or controls a terminal. */
static json_t *clean_string(const char *text)
{
    char clean[LB_ROW_TEXT_SIZE];
    snprintf(clean, sizeof(clean), "%s", text);
    lb_clean_text(clean);
    return json_string(clean);
}

/* lb_run_observer. The settings of the process are read when the case has bound the thread, and
 * after destroy, before the case takes its own settings back. */
static void send_phase(void *user, const char *phase)
{
    struct server *server = user;
    if (strcmp(phase, "destroy") == 0 && server->load.at_ns > 0) {
        struct lb_cpu_load now;
        lb_cpu_load_read(&now);
        server->others_share = lb_cpu_load_others(&server->load, &now);
    }
    lb_channel_send(&server->channel, json_pack("{s:s}", "phase", phase));
    if (strcmp(phase, "create") == 0)
        lb_process_read_settings(server->before);
    /* Checks interrupt the samples, which then go on. */
    if (strcmp(phase, "sample") == 0 && server->load.at_ns == 0)
        lb_cpu_load_read(&server->load);
    if (strcmp(phase, "release") == 0) {
        lb_process_read_settings(server->after);
        server->destroyed = true;
    }
}

/* ---- An implementation with a known slowdown, by which the self-test checks comparisons ---- */

extern const struct lb_impl lb_impl_cpu_ref;

double lb_planted_percent;

/* The fraction of the shortest call so far that is added to each call. A fraction of each call's
 * own time would multiply what other programs or new inputs add to that time. */
static double slowdown, shortest_ns;

static enum lb_status planted_create(void *self, const struct lb_problem *problem,
                                     const struct lb_exec_config *config, struct lb_error *err)
{
    bool slower = config->variant && strcmp(config->variant, "slower_3") == 0;
    slowdown = (slower ? 3 : lb_planted_percent) / 100;
    shortest_ns = (double)INFINITY;
    return lb_impl_cpu_ref.create(self, problem, config, err);
}

static enum lb_status planted_forward(void *self, const struct lb_forward_io *io,
                                      struct lb_error *err)
{
    double start = lb_now_ns();
    enum lb_status st = lb_impl_cpu_ref.forward(self, io, err);
    double end = lb_now_ns();
    shortest_ns = fmin(shortest_ns, end - start);
    end += slowdown * shortest_ns;
    while (lb_now_ns() < end)
        ;
    return st;
}

const struct lb_impl *lb_planted_slowdown(void)
{
    static const char *const variants[] = {"auto", "slower_3", NULL};
    static struct lb_impl planted;
    planted = lb_impl_cpu_ref;
    planted.name = LB_PLANTED_NAME;
    planted.summary = "cpu_ref with a known slowdown";
    planted.variants = variants;
    planted.create = planted_create;
    planted.forward = planted_forward;
    return &planted;
}

/* ---- Requests ---- */

/* Finds what runs the case of the request: the plug-in at the request's path or a built-in one.
 * Opens the device that it may need; whether that worked is known to the device layer from then on.
 * loads: also loads the library that a built-in implementation needs, before anything is timed.
 * LB_ABSENT: it is not built, or its library is missing; LB_FAILED: the file of the plug-in was
 * replaced since the program added it. */
static enum lb_status find_impl(struct server *server, const json_t *request,
                                const struct lb_case *c, bool loads, const struct lb_impl **impl,
                                struct lb_error *err)
{
    const char *path = lb_json_text(request, "path", NULL);
    const struct lb_impl_entry *impl_entry = lb_registry_find(&server->registry, c->impl);
    struct lb_error why;
    enum lb_status st = LB_OK;
    *impl = impl_entry ? impl_entry->impl : NULL;
    if (path) {
        send_phase(server, "loading");
        st = lb_plugin_load(path, impl, &why); /* unless this worker has it */
        if (st == LB_OK && strcmp((*impl)->name, c->impl) != 0)
            st = lb_fail(&why, LB_INVALID, "its name is %s now", (*impl)->name);
    } else if (!impl_entry && strcmp(c->impl, LB_PLANTED_NAME) == 0)
        *impl = lb_planted_slowdown();
    if (st != LB_OK) {
        server->spoiled = true; /* the file may change again */
        return lb_fail(err, LB_FAILED,
                       "its worker was replaced, and it can't be loaded again: %.330s", why.text);
    }
    if (!*impl)
        return lb_fail(err, LB_ABSENT, "%s is not built", c->impl);
    if ((*impl)->memory == LB_DEVICE)
        lb_device_open(server->device, NULL);
    if (!loads || path || !impl_entry || !impl_entry->library)
        return LB_OK;
    if ((*impl)->memory == LB_DEVICE && !lb_device_known(NULL))
        return LB_OK; /* which the case will say */
    return lb_shared_library_load(impl_entry->library, err);
}

/* Each serves one kind of request: *reply becomes what the reply has beside the status. */
static enum lb_status serve_plugin(struct server *server, const json_t *request, json_t **reply,
                                   struct lb_error *err)
{
    const struct lb_impl *impl;
    (void)server;
    LB_CHECK(lb_plugin_load(lb_json_text(request, "path", NULL), &impl, err));
    json_t *variants = json_array();
    for (size_t i = 0; impl->variants && impl->variants[i]; i++)
        json_array_append_new(variants, json_string(impl->variants[i]));
    *reply = json_pack("{s:s, s:o, s:o, s:i, s:I}", "name", impl->name, "summary",
                       clean_string(impl->summary), "variants", variants, "memory",
                       (int)impl->memory, "traits", (json_int_t)impl->traits);
    return LB_OK;
}

static enum lb_status serve_library(struct server *server, const json_t *request, json_t **reply,
                                    struct lb_error *err)
{
    char version[512] = "";
    const struct lb_impl_entry *impl_entry =
        lb_registry_find(&server->registry, lb_json_text(request, "implementation", NULL));
    LB_CHECK(lb_shared_library_load(impl_entry->library, err));
    impl_entry->library->print_version(version, sizeof(version));
    lb_clean_text(version);
    *reply = json_string(version);
    return LB_OK;
}

static enum lb_status serve_question(struct server *server, const json_t *request, json_t **reply,
                                     struct lb_error *err)
{
    struct lb_case c;
    const struct lb_impl *impl;
    struct lb_case_plan plan;
    struct lb_probe probe = {0};
    const struct lb_run_observer observer = {.user = server, .phase = send_phase};
    bool probes = strcmp(lb_json_text(request, "op", NULL), "probe") == 0;
    LB_CHECK(lb_case_parse(lb_json_text(request, "case", NULL), &c, NULL, NULL, err));
    LB_CHECK(find_impl(server, request, &c, probes, &impl, err));
    if (!probes) {
        send_phase(server, "supports");
        return lb_case_plan(impl, &c, lb_host_available(), &plan, err);
    }
    LB_CHECK(lb_case_probe(impl, &c, lb_host_available(), &observer, &probe, err));
    const struct lb_sizes *sizes = &probe.sizes;
    *reply =
        json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "weights", (json_int_t)sizes->weights,
                  "gradients", (json_int_t)sizes->gradients, "reserve", (json_int_t)sizes->reserve,
                  "workspace", (json_int_t)sizes->workspace, "description",
                  clean_string(probe.description), "note", clean_string(probe.note));
    return LB_OK;
}

static size_t find_served(const struct server *server, const struct lb_impl *impl,
                          const struct lb_case *c)
{
    size_t i = 0;
    while (i < server->served_count &&
           (server->served[i].impl != impl || strcmp(server->served[i].variant, c->variant) != 0 ||
            server->served[i].backward != lb_has_backward(&c->problem)))
        i++;
    return i;
}

/* Returns what the case may leave behind, and notes that its implementation left `grown` threads.
 * Libraries keep buffers and pipes from their first case on. The first case with so many threads
 * may leave any number; later ones may add to what is there until that is one less than the case's
 * threads, since an implementation may start threads when a problem is first large enough. The
 * oracle's results, which the harness keeps, are not the implementation's. */
static struct lb_leftovers_allowed allow(struct server *server, const struct lb_impl *impl,
                                         const struct lb_case *c, size_t grown)
{
    enum { FIRST_BYTES = 1 << 30, BYTES = 16 << 20 };
    const size_t any = SIZE_MAX / 2; /* a count can be added to it */
    size_t i = find_served(server, impl, c), most = (size_t)c->threads - 1;
    bool on_device = impl->memory == LB_DEVICE, first = i == server->served_count;
    int chunks;
    const struct lb_problem whole = lb_case_whole(c, &chunks);
    struct lb_leftovers_allowed allowed = {
        .bytes = on_device ? (double)INFINITY
                           : lb_reference_bytes(&whole) + (first ? FIRST_BYTES : BYTES),
        .descriptors = first,
        .all_descriptors = on_device,
        .threads = any,
    };
    if (i == SERVED_MAX)
        return allowed;
    if (first) {
        server->served[i].impl = impl;
        snprintf(server->served[i].variant, sizeof(server->served[i].variant), "%s", c->variant);
        server->served[i].backward = lb_has_backward(&c->problem);
        server->served_count++;
    }
    if (server->served[i].threads < c->threads)
        server->served[i].threads = c->threads;
    else if (!on_device)
        allowed.threads = most > server->served[i].kept ? most - server->served[i].kept : 0;
    server->served[i].kept += grown;
    return allowed;
}

static void describe_leftovers(struct server *server, const struct lb_impl *impl,
                               const struct lb_case *c, char *text, size_t size)
{
    double spinning = lb_await_idle_threads(1, 0.3);
    int children = lb_end_children(0.2);
    lb_process_read_resources(server->after);
    size_t before = server->before->threads, after = server->after->threads;
    const struct lb_leftovers_allowed allowed =
        allow(server, impl, c, after > before ? after - before : 0);
    if (!server->destroyed) /* else the case has restored its own settings since */
        lb_process_read_settings(server->after);
    text[0] = '\0';
    if (spinning > 0)
        lb_append(text, size, "threads that spin (%.0f %% of a CPU)", 100 * spinning);
    if (children > 0)
        lb_append(text, size, "%s%d child process%s", text[0] ? ", " : "", children,
                  children > 1 ? "es" : "");
    lb_leftovers_append(server->before, server->after, &allowed, text, size);
    lb_clean_text(text);
}

/* The time of fixed work on the device, NaN where it has none, or of a loop on the case's CPUs,
 * which is not measured again within a moment. */
static double time_reference(struct server *server, const struct lb_impl *impl,
                             const struct lb_case *c)
{
    enum { RECENT_NS = 20000000 };
    static double last, last_ns; /* its last result and when that was */
    static int last_threads;
    const struct lb_device_info *device = lb_device_known(NULL);
    char cpus[64];
    double ns;
    if (impl->memory == LB_DEVICE) {
        if (!device || device->modelled || lb_device()->lost())
            return (double)NAN;
        send_phase(server, "reference");
        return lb_device()->reference(&ns, NULL) == LB_OK ? ns : (double)NAN;
    }
    if (last_threads == c->threads && lb_now_ns() - last_ns < RECENT_NS)
        return last;
    lb_pin(c->threads, 0, cpus, sizeof(cpus));
    last = lb_reference_loop();
    lb_unpin();
    last_ns = lb_now_ns();
    last_threads = c->threads;
    return last;
}

/* The row also says what the case left behind, which makes the worker unfit for another one, and
 * how long fixed work took around it. */
static void run_case(struct server *server, const struct lb_impl *impl, const struct lb_case *c,
                     const struct lb_run_options *options, struct lb_row *row)
{
    char left[256];
    const struct lb_run_observer observer = {server, send_phase};
    if (find_served(server, impl, c) == server->served_count)
        lb_await_idle_threads(1, 0.3); /* a library's threads may spin when it was loaded */
    double before = time_reference(server, impl, c);
    lb_nvtx_attach();
    lb_process_read_resources(server->before);
    lb_process_read_settings(server->before);
    server->destroyed = false;
    server->load.at_ns = 0;
    lb_case_run(impl, c, options, &observer, row);
    if (server->load.at_ns > 0)
        row->others_share = server->others_share;
    describe_leftovers(server, impl, c, left, sizeof(left));
    server->spoiled = left[0] != '\0';
    if (server->spoiled)
        lb_row_warn(row, "left behind: %.180s", left);
    lb_row_set_reference(row, (before + time_reference(server, impl, c)) / 2);
}

static enum lb_status serve_run(struct server *server, const json_t *request, json_t **reply,
                                struct lb_error *err)
{
    struct lb_case c;
    const struct lb_impl *impl;
    struct lb_run_options options = {.cache = &server->cache};
    struct lb_sampler_options *sampler = &options.sampler;
    int dynamic, kernels;
    json_int_t seed, min_samples, max_samples;
    LB_CHECK(lb_case_parse(lb_json_text(request, "case", NULL), &c, NULL, NULL, err));
    if (json_unpack((json_t *)request, "{s:I, s:{s:I, s:I, s:F, s:F}, s:F, s:b, s:b, s?s}", "seed",
                    &seed, "sampler", "min_samples", &min_samples, "max_samples", &max_samples,
                    "precision", &sampler->precision, "max_ns", &sampler->max_ns, "loss_scale",
                    &options.loss_scale, "dynamic_loss_scale", &dynamic, "kernels", &kernels,
                    "outputs", &options.outputs) != 0)
        return lb_fail(err, LB_INVALID, "a request of the program lacks a setting");
    options.seed = (uint64_t)seed;
    options.dynamic_loss_scale = dynamic != 0;
    options.kernels = kernels != 0;
    sampler->min_samples = (size_t)min_samples;
    sampler->max_samples = (size_t)max_samples;
    lb_host_limit(json_number_value(json_object_get(request, "memory_bytes")));
    lb_ceilings_assume_all(json_object_get(request, "ceilings"));
    struct lb_row row = lb_row_make(&c);
    enum lb_status loaded = find_impl(server, request, &c, true, &impl, err);
    if (loaded == LB_OK) {
        run_case(server, impl, &c, &options, &row);
    } else {
        if (loaded == LB_ABSENT)
            row.verdict = LB_VERDICT_ABSENT;
        lb_row_print(&row.reason, "%s", err->text);
    }
    *reply = lb_row_to_json(&row);
    lb_row_free(&row);
    return LB_OK;
}

static enum lb_status serve_device(struct server *server, const json_t *request, json_t **reply,
                                   struct lb_error *err)
{
    (void)request;
    LB_CHECK(lb_device_open(server->device, err));
    *reply = lb_device_to_json(lb_device_known(NULL));
    return LB_OK;
}

/* lb_ceilings_observer.figure */
static void send_figure(void *user, const struct lb_ceilings *ceilings, const char *figure,
                        const char *failed)
{
    struct server *server = user;
    lb_channel_send(&server->channel,
                    json_pack("{s:s, s:o, s:o}", "figure", figure, "failed", clean_string(failed),
                              "reply", lb_ceilings_to_json(ceilings)));
}

static enum lb_status serve_ceilings(struct server *server, const json_t *request, json_t **reply,
                                     struct lb_error *err)
{
    double seconds = json_number_value(json_object_get(request, "seconds"));
    struct lb_ceilings ceilings;
    const struct lb_ceilings_observer observer = {server, send_figure};
    LB_CHECK(lb_device_open(server->device, err));
    LB_CHECK(lb_ceilings_measure(seconds, &ceilings, &observer, err));
    *reply = lb_ceilings_to_json(&ceilings);
    return LB_OK;
}

static void serve(struct server *server, const json_t *request)
{
    static const struct {
        const char *op;
        enum lb_status (*function)(struct server *, const json_t *, json_t **, struct lb_error *);
    } services[] = {
        {"plugin", serve_plugin},     {"library", serve_library}, {"supports", serve_question},
        {"probe", serve_question},    {"run", serve_run},         {"device", serve_device},
        {"ceilings", serve_ceilings},
    };
    const json_t *given = json_object_get(request, "given");
    const struct lb_given_files files = {
        .weights = lb_json_text(given, "weights", NULL),
        .prefix = lb_json_text(given, "prefix", NULL),
        .inputs = lb_json_text(given, "inputs", NULL),
        .tuned = lb_json_text(given, "tuned", NULL),
        .batch_first = json_is_true(json_object_get(given, "batch_first")),
        .tune = json_is_true(json_object_get(given, "tune")),
    };
    struct lb_error err = {""};
    json_t *reply = NULL;
    enum lb_status st = LB_OK;
    lb_give_files(&files);
    for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++)
        if (strcmp(services[i].op, lb_json_text(request, "op", NULL)) == 0)
            st = services[i].function(server, request, &reply, &err);
    bool lost = lb_device()->lost && lb_device()->lost();
    lb_channel_send(&server->channel, json_pack("{s:i, s:o, s:b, s:o*}", "status", (int)st, "why",
                                                clean_string(st != LB_OK ? err.text : ""), "unfit",
                                                server->spoiled || lost, "reply", reply));
}

int lb_worker_main(long parent, int device)
{
    struct server server = {.channel = {.fd = CHANNEL_FD}, .device = device};
    struct lb_error err = {""};

    /* A program that a case starts must not hold the channel open. */
    fcntl(CHANNEL_FD, F_SETFD, FD_CLOEXEC);
    /* The worker ends with the program, even if the program ended before this line was reached. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)parent)
        return 1;
    /* Slurm signals all processes of a job at once. The program then ends its workers; one that
     * ended by itself would be taken for a crash of its case. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    /* A process that a child started and left to itself becomes the worker's own child, so that it
     * is found after the case. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    server.before = lb_needed(calloc(1, sizeof(*server.before)));
    server.after = lb_needed(calloc(1, sizeof(*server.after)));
    server.cache.max_bytes = (size_t)(lb_host_total() * CACHE_PER_MILLE / 1000);
    if (lb_registry_create(lb_impl_table, &server.registry, &err) != LB_OK) {
        fprintf(stderr, "bench-lstm: worker: %s\n", err.text);
        return 1;
    }
    for (;;) {
        json_t *request = NULL;
        if (lb_channel_receive(&server.channel, -1, &request, NULL) != LB_OK)
            break; /* the program hung up: there is nobody to report to */
        if (request)
            serve(&server, request);
        json_decref(request);
    }
    free(server.before);
    free(server.after);
    lb_reference_cache_clear(&server.cache);
    lb_registry_destroy(&server.registry);
    lb_channel_close(&server.channel);
    return 0;
}
