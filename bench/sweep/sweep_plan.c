/* A step of a sweep: plans which cases are run, with which settings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/memory.h"
#include "base/text.h"
#include "record/environment.h"
#include "run/derived_outputs.h"
#include "run/device_query.h"
#include "support/terminal.h"
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

/* Hands the arguments of the command line to Google Benchmark, and how often each case is measured.
 * The processes of a case are spread over its chunk in random order, so that a drift of the machine
 * shows as a difference between them. */
static enum lb_status configure_gbench(const struct lb_options *options, struct lb_error *err)
{
    return lb_gbench_configure(options->benchmark_count, options->benchmark,
                               options->benchmark_filter, lb_sweep_rounds(options),
                               options->shuffled || options->processes > 1, err);
}

/* Keeps the cases that Google Benchmark's filter matches, in place. */
static enum lb_status filter_cases(struct lb_case *cases, size_t *count, struct lb_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i += LB_GBENCH_MAX) {
        size_t n = *count - i < LB_GBENCH_MAX ? *count - i : LB_GBENCH_MAX;
        size_t *matching = NULL, length = 0;
        bool keep[LB_GBENCH_MAX] = {false};
        enum lb_status st = lb_gbench_order(&cases[i], n, true, &matching, &length, err);
        for (size_t k = 0; k < length; k++)
            keep[matching[k]] = true;
        free(matching);
        if (st != LB_OK)
            return st;
        for (size_t k = 0; k < n; k++)
            if (keep[k])
                cases[kept++] = cases[i + k];
    }
    *count = kept;
    return kept > 0 ? LB_OK : lb_fail(err, LB_INVALID, "--benchmark_filter: no case matches");
}

enum lb_status lb_sweep_filter(const struct lb_options *options, struct lb_plan *plan,
                               struct lb_error *err)
{
    LB_CHECK(configure_gbench(options, err));
    if (options->benchmark_filter && plan->count > 0)
        LB_CHECK(filter_cases(plan->cases, &plan->count, err));
    return LB_OK;
}

/* Notes in the header which part of a plan this is, and its canaries. */
static void note_shard(const struct lb_session *session, const struct lb_shard *shard,
                       json_t *header)
{
    struct lb_case canaries[LB_CANARY_COUNT];
    char hash[17];
    if (shard->count == 0)
        return;
    json_t *texts = json_array();
    lb_canaries_choose(session->registry, session->gpu != NULL, shard->threads, canaries);
    for (size_t i = 0; i < LB_CANARY_COUNT; i++)
        json_array_append_new(texts, json_string(LB_CASE_TEXT(&canaries[i])));
    snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)shard->plan_hash);
    json_object_set_new(header, "shard",
                        json_pack("{s:i, s:i, s:s, s:I, s:o}", "index", shard->index, "count",
                                  shard->count, "plan", hash, "plan_cases",
                                  (json_int_t)shard->plan_count, "canaries", texts));
}

/* Takes the canaries that the header's shard names, but for those of an implementation that another
 * build had. */
static enum lb_status take_canaries(struct lb_sweep_run *sweep, const json_t *header,
                                    struct lb_error *err)
{
    const json_t *texts = json_object_get(json_object_get(header, "shard"), "canaries");
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

enum lb_status lb_sweep_begin(struct lb_sweep_run *sweep, const struct lb_plan *plan,
                              struct lb_error *err)
{
    const struct lb_session *session = sweep->session;
    enum lb_status st = LB_OK;
    json_t *header = NULL;
    sweep->cases = lb_needed(calloc(plan->count + 1, sizeof(*sweep->cases)));
    sweep->count = plan->count;
    for (size_t i = 0; i < plan->count; i++)
        sweep->cases[i] = plan->cases[i];
    const struct lb_sampler_options sampler = lb_options_sampler(session->options);
    LB_TRY(lb_check_derived_outputs(session->options, err));
    LB_TRY(lb_settings_to_header(session->options, &sampler, sweep->cases, sweep->count,
                                 session->libraries, &header, err));
    note_shard(session, &plan->shard, header);
    LB_TRY(take_canaries(sweep, header, err));
    lb_gpu_annotate(session, json_object_get(header, "environment"));
    LB_TRY(lb_name_folder(session->options->out, sweep->folder, sizeof(sweep->folder), err));
    lb_ceilings_find(session, sweep->cases, sweep->count, json_object_get(header, "environment"));
    st = lb_run_create(sweep->folder, header, &sweep->file, err);
    sweep->header = json_incref(header);
done:
    json_decref(header);
    return st;
}

/* ---- Resuming ---- */

static enum lb_status check_resumable(const struct lb_run *run, const char *folder,
                                      struct lb_error *err)
{
    if (json_object_get(run->header, "interleaved"))
        return lb_fail(err, LB_INVALID,
                       "--resume %s: this run is one side of --ab or --against, measured in turn "
                       "with the other side: run --ab again, or --sweep --against",
                       folder);
    if (json_is_true(json_object_get(run->header, "merged")))
        return lb_fail(
            err, LB_INVALID,
            "--resume %s: this run was merged from others: resume these, and merge again", folder);
    return LB_OK;
}

/* Whether the case of a row is run again: always when it was skipped, and as --retry and
 * --retry noisy say. */
static bool is_run_again(const struct lb_row *row, const struct lb_options *options)
{
    return row->verdict == LB_VERDICT_SKIPPED || (options->retry & 1U << row->verdict) ||
           (options->retry_noisy && lb_row_is_noisy(row));
}

/* Drops the cases that the run has done. Those that are run again are kept: when the run is read,
 * their new rows replace the old ones. Returns how many cases are done. */
static size_t drop_done(const struct lb_run *run, struct lb_sweep_run *sweep)
{
    json_t *done = json_object();
    size_t kept = 0;
    for (size_t i = 0; i < run->count; i++)
        if (!is_run_again(&run->rows[i], sweep->session->options))
            json_object_set_new(done, LB_CASE_TEXT(&run->rows[i].c), json_true());
    for (size_t i = 0; i < sweep->count; i++)
        if (!json_object_get(done, LB_CASE_TEXT(&sweep->cases[i])))
            sweep->cases[kept++] = sweep->cases[i];
    size_t count = json_object_size(done);
    sweep->count = kept;
    json_decref(done);
    return count;
}

static void warn_of_other_environment(const struct lb_run *run, const json_t *now)
{
    char what[256];
    if (lb_environment_differs(json_object_get(run->header, "environment"), now, what,
                               sizeof(what)))
        fprintf(stderr,
                "warning: the run began in another environment (%s): do not compare its earlier "
                "times with the new ones\n",
                what);
}

/* The registry must have the implementations of the cases that are left. A plug-in that the run
 * loaded is code, and the run may be somebody else's: only the command line can name it. */
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

/* Says how much of the run is done, and what is wrong with its file. */
static void say_how_far(const struct lb_sweep_run *sweep, const struct lb_run *run,
                        size_t done_count)
{
    lb_warn(run->doubt);
    if (!sweep->session->options->quiet)
        fprintf(stderr, "%s: %zu %s done, %zu %s left to run\n", sweep->folder, done_count,
                done_count == 1 ? "case is" : "cases are", sweep->count,
                sweep->count == 1 ? "case is" : "cases are");
}

enum lb_status lb_sweep_continue(struct lb_sweep_run *sweep, struct lb_session *session,
                                 struct lb_options *options, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run run = {0};
    json_t *details = NULL;
    size_t done_count = 0;
    LB_TRY(lb_check_derived_outputs(options, err));
    lb_run_folder(options->words[0], sweep->folder, sizeof(sweep->folder));
    LB_TRY(lb_run_open(sweep->folder, &sweep->file, &run, err));
    LB_TRY(check_resumable(&run, sweep->folder, err));
    sweep->header = json_incref(run.header);
    LB_TRY(lb_settings_from_header(sweep->header, options, &sweep->cases, &sweep->count, err));
    lb_pool_limit(session->pool, options);
    lb_pool_renew(session->pool); /* those that loaded plug-ins began before the device was known */
    LB_TRY(configure_gbench(options, err));
    LB_TRY(lb_machine_find(session, lb_gpu_wanted(session, NULL), err));
    details = lb_settings_of_session(options, session->libraries);
    lb_gpu_annotate(session, json_object_get(details, "environment"));
    warn_of_other_environment(&run, json_object_get(details, "environment"));
    done_count = drop_done(&run, sweep);
    LB_TRY(check_known(sweep, err));
    LB_TRY(take_canaries(sweep, sweep->header, err));
    lb_ceilings_find(session, sweep->cases, sweep->count, json_object_get(details, "environment"));
    LB_TRY(lb_run_resume(&sweep->file, details, err));
    sweep->file.rows = done_count;
    say_how_far(sweep, &run, done_count);
done:
    lb_run_free(&run);
    json_decref(details);
    return st;
}
