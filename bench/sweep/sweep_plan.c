/* A step of a sweep: plans which cases are run, with which settings. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "record/environment.h"
#include "support/texts.h"
#include "sweep/gbench.h"
#include "sweep/sweep.h"
#include "sweep/sweep_steps.h"

enum lb_status lb_name_folder(const char *out, char *folder, size_t size, struct lb_error *err)
{
    if (out) {
        snprintf(folder, size, "%s", out);
        return LB_OK;
    }
    char stamp[64];
    time_t now = time(NULL);
    struct tm utc;
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H-%M-%SZ", gmtime_r(&now, &utc));
    if (mkdir("bench-lstm-runs", 0777) != 0 && errno != EEXIST)
        return lb_fail(err, LB_INVALID, "bench-lstm-runs: %s; give a folder with --out",
                       strerror(errno));
    for (int i = 1; i < 100; i++) {
        snprintf(folder, size, "bench-lstm-runs/%s%s%.0d", stamp, i > 1 ? "-" : "", i > 1 ? i : 0);
        if (mkdir(folder, 0777) == 0)
            return LB_OK;
        if (errno != EEXIST)
            break;
    }
    return lb_fail(err, LB_INVALID, "%s: %s; give a folder with --out", folder, strerror(errno));
}

/* The processes of a case are spread over its chunk in random order, so that a drift of the machine
 * shows as a difference between them. */
static enum lb_status configure_gbench(const struct lb_options *options, struct lb_error *err)
{
    return lb_gbench_configure(options->benchmark_count, options->benchmark,
                               options->benchmark_filter, lb_sweep_rounds(options),
                               options->shuffled || options->processes > 1, err);
}

enum lb_status lb_sweep_filter(const struct lb_options *options, struct lb_plan *plan,
                               struct lb_error *err)
{
    size_t kept = 0;
    LB_CHECK(configure_gbench(options, err));
    if (!options->benchmark_filter || plan->count == 0)
        return LB_OK;
    for (size_t i = 0; i < plan->count; i += LB_GBENCH_MAX) {
        size_t n = plan->count - i < LB_GBENCH_MAX ? plan->count - i : LB_GBENCH_MAX;
        size_t *matching = NULL, length = 0;
        bool keep[LB_GBENCH_MAX] = {false};
        LB_CHECK(lb_gbench_order(&plan->cases[i], n, true, &matching, &length, err));
        for (size_t k = 0; k < length; k++)
            keep[matching[k]] = true;
        free(matching);
        for (size_t k = 0; k < n; k++)
            if (keep[k])
                plan->cases[kept++] = plan->cases[i + k];
    }
    plan->count = kept;
    return kept > 0 ? LB_OK : lb_fail(err, LB_INVALID, "--benchmark_filter: no case matches");
}

/* Takes the canaries of the header's shard, but for those that only another build can run. */
static enum lb_status take_canaries(struct lb_sweep_run *sweep, struct lb_error *err)
{
    const json_t *shard = json_object_get(sweep->header, "shard");
    const json_t *texts = json_object_get(shard, "canaries");
    for (size_t i = 0; i < json_array_size(texts) && i < LB_CANARY_COUNT; i++) {
        const char *text = json_string_value(json_array_get(texts, i));
        struct lb_case *c = &sweep->canaries[sweep->canary_count];
        LB_CHECK(lb_case_parse(text ? text : "", c, NULL, NULL, err));
        const struct lb_impl_entry *impl_entry =
            lb_registry_find(sweep->session->registry, c->impl);
        sweep->canary_count += impl_entry && !impl_entry->absent;
    }
    return LB_OK;
}

/* Checks before anything runs that the file of --benchmark_out can be written, and leaves no trace
 * of the check. LB_INVALID with the reason. */
static enum lb_status check_outputs(const struct lb_options *options, struct lb_error *err)
{
    const char *path = options->benchmark_out, *folder = options->out ? options->out : "";
    const char *slash = path ? strrchr(path, '/') : NULL;
    size_t length = strlen(folder);
    struct stat status;
    if (!path)
        return LB_OK;
    while (length > 1 && folder[length - 1] == '/')
        length--;
    bool in_folder =
        slash && (size_t)(slash - path) == length && strncmp(path, folder, length) == 0;
    bool there = lstat(path, &status) == 0;
    if (there &&
        (stat(path, &status) != 0 || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))))
        return LB_OK; /* to open a pipe would end its reader, and a link to nothing makes a file */
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 && errno == ENOENT && in_folder) /* the run's own, which does not exist yet */
        return LB_OK;
    if (file < 0)
        return lb_fail(err, LB_INVALID, "--benchmark_out=%s: %s", path, strerror(errno));
    close(file);
    if (!there)
        unlink(path);
    return LB_OK;
}

enum lb_status lb_sweep_begin(struct lb_sweep_run *sweep, const struct lb_plan *plan,
                              struct lb_error *err)
{
    const struct lb_session *session = sweep->session;
    const struct lb_shard *shard = &plan->shard;
    const struct lb_sampler_options sampler = lb_options_sampler(session->options);
    sweep->cases = lb_needed(calloc(plan->count + 1, sizeof(*sweep->cases)));
    sweep->count = plan->count;
    for (size_t i = 0; i < plan->count; i++)
        sweep->cases[i] = plan->cases[i];
    LB_CHECK(check_outputs(session->options, err));
    LB_CHECK(lb_settings_to_header(session->options, &sampler, sweep->cases, sweep->count,
                                   session->libraries, &sweep->header, err));
    json_t *environment = json_object_get(sweep->header, "environment");
    if (shard->count > 0) {
        struct lb_case canaries[LB_CANARY_COUNT];
        char hash[17];
        json_t *texts = json_array();
        lb_canaries_choose(session->registry, session->gpu != NULL, shard->threads, canaries);
        for (size_t i = 0; i < LB_CANARY_COUNT; i++)
            json_array_append_new(texts, json_string(LB_CASE_TEXT(&canaries[i])));
        snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)shard->plan_hash);
        json_object_set_new(sweep->header, "shard",
                            json_pack("{s:i, s:i, s:s, s:I, s:o}", "index", shard->index, "count",
                                      shard->count, "plan", hash, "plan_cases",
                                      (json_int_t)shard->plan_count, "canaries", texts));
    }
    LB_CHECK(take_canaries(sweep, err));
    lb_gpu_annotate(session, environment);
    LB_CHECK(lb_name_folder(session->options->out, sweep->folder, sizeof(sweep->folder), err));
    lb_ceilings_find(session, sweep->cases, sweep->count, environment);
    return lb_run_create(sweep->folder, sweep->header, &sweep->file, err);
}

/* Returns how many cases are done. When the run is read, new rows replace old ones. */
static size_t drop_done(const struct lb_run *run, struct lb_sweep_run *sweep)
{
    json_t *done = json_object();
    size_t kept = 0;
    const struct lb_options *options = sweep->session->options;
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        bool again = row->verdict == LB_VERDICT_SKIPPED || options->retry & 1U << row->verdict ||
                     (options->retry_noisy && lb_row_is_noisy(row));
        if (!again)
            json_object_set_new(done, LB_CASE_TEXT(&row->c), json_true());
    }
    for (size_t i = 0; i < sweep->count; i++)
        if (!json_object_get(done, LB_CASE_TEXT(&sweep->cases[i])))
            sweep->cases[kept++] = sweep->cases[i];
    size_t count = json_object_size(done);
    sweep->count = kept;
    json_decref(done);
    return count;
}

/* A plug-in that the run loaded is code, and the run may be somebody else's: only the command line
 * can name it. */
static enum lb_status check_known(const struct lb_sweep_run *sweep, struct lb_error *err)
{
    const json_t *plugins = json_object_get(sweep->header, "plugins"), *plugin;
    char names[300] = "";
    size_t i = 0, k;
    while (i < sweep->count && lb_registry_find(sweep->session->registry, sweep->cases[i].impl))
        i++;
    json_array_foreach(plugins, k, plugin)
    {
        lb_append(names, sizeof(names), " --plugin %s", json_string_value(plugin));
    }
    if (i == sweep->count || !names[0])
        return LB_OK;
    return lb_fail(err, LB_INVALID,
                   "--resume: %s comes from a plug-in, which a run's file may not load by itself; "
                   "if you trust it, give it again:%s",
                   sweep->cases[i].impl, names);
}

enum lb_status lb_sweep_continue(struct lb_sweep_run *sweep, struct lb_session *session,
                                 struct lb_options *options, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run run = {0};
    json_t *details = NULL, *environment;
    char what[256];
    size_t done_count;
    LB_TRY(check_outputs(options, err));
    lb_run_folder(options->words[0], sweep->folder, sizeof(sweep->folder));
    LB_TRY(lb_run_open(sweep->folder, &sweep->file, &run, err));
    if (json_object_get(run.header, "interleaved"))
        LB_TRY(lb_fail(err, LB_INVALID,
                       "--resume %s: this run is one side of --ab or --against, measured in turn "
                       "with the other side: run --ab again, or --sweep --against",
                       sweep->folder));
    if (json_is_true(json_object_get(run.header, "merged")))
        LB_TRY(lb_fail(err, LB_INVALID,
                       "--resume %s: this run was merged from others: resume these, and merge "
                       "again",
                       sweep->folder));
    sweep->header = json_incref(run.header);
    LB_TRY(lb_settings_from_header(sweep->header, options, &sweep->cases, &sweep->count, err));
    lb_pool_limit(session->pool, options);
    lb_pool_renew(session->pool); /* those that loaded plug-ins began before the device was known */
    LB_TRY(configure_gbench(options, err));
    LB_TRY(lb_machine_find(session, lb_gpu_wanted(session, NULL), err));
    details = lb_settings_of_session(options, session->libraries);
    environment = json_object_get(details, "environment");
    lb_gpu_annotate(session, environment);
    if (lb_environment_differs(json_object_get(run.header, "environment"), environment, what,
                               sizeof(what)))
        fprintf(stderr,
                "warning: the run began in another environment (%s): do not compare its earlier "
                "times with the new ones\n",
                what);
    done_count = drop_done(&run, sweep);
    LB_TRY(check_known(sweep, err));
    LB_TRY(take_canaries(sweep, err));
    lb_ceilings_find(session, sweep->cases, sweep->count, environment);
    LB_TRY(lb_run_resume(&sweep->file, details, err));
    sweep->file.rows = done_count;
    lb_warn(run.doubt);
    if (!options->quiet)
        fprintf(stderr, "%s: %zu %s done, %zu %s left to run\n", sweep->folder, done_count,
                done_count == 1 ? "case is" : "cases are", sweep->count,
                sweep->count == 1 ? "case is" : "cases are");
done:
    lb_run_free(&run);
    json_decref(details);
    return st;
}
