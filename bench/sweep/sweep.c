/* The sweep: plans cases, measures each in a worker, records every outcome, shows it on a terminal,
 * and finishes the run with everything that is derived from its file. */
#include "sweep/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "plot/grouped_run.h"
#include "plot/pictures.h"
#include "record/environment.h"
#include "report/canaries.h"
#include "report/export.h"
#include "support/cpu_load.h"
#include "support/progress.h"
#include "support/terminal.h"
#include "support/texts.h"
#include "sweep/gbench.h"

enum {
    PROCESSES_CHUNK = 32, /* with --processes: an interruption loses what a chunk has measured */
    CANARY_NS = 500000000 /* sampling time of a canary, at most, but never more than a case's */
};

/* A sweep that runs. */
struct sweep {
    const struct lb_session *session; /* its options are the settings of the run */
    json_t *header;                   /* of the run; where it goes on, strings of the options lie
                                         in it */
    char folder[4096];
    struct lb_run_file file;
    struct lb_case *cases; /* [count] still to run; owned */
    size_t count;
    struct lb_case canaries[LB_CANARY_COUNT]; /* [canary_count] of a shard */
    size_t canary_count;
    double start_ns; /* when the first case began */
    struct lb_progress progress;
    json_t *hangs; /* object: how often cases of "impl:variant" have hung */

    /* The table on a terminal. */
    json_t *left;        /* object: from a problem's text to how many of its cases have no row yet;
                            NULL: nothing is shown */
    struct lb_run table; /* the run's header, and the rows whose problems have cases left */
    char baseline[2 * LB_NAME_SIZE]; /* that the table's latest heading names */
};

bool lb_sweep_interrupted(const struct lb_session *session)
{
    return *session->stop || lb_reader_left(stderr);
}

/* How often each case is measured: once per process with --processes, else once per block. */
static int rounds_of(const struct lb_options *options)
{
    return options->processes > 1 ? options->processes : options->repetitions;
}

/* Whether the case is worth measuring again. */
static bool is_noisy(const struct lb_row *row)
{
    return lb_row_is_timed(row) &&
           (row->others_share > LB_BUSY_SHARE || row->slowdown > LB_SLOW_MACHINE);
}

static json_int_t add_count(json_t *counts, const char *name, json_int_t more)
{
    json_int_t count = json_integer_value(json_object_get(counts, name)) + more;
    json_object_set_new(counts, name, json_integer(count));
    return count;
}

/* ---- Planning a new run ---- */

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
                               options->benchmark_filter, rounds_of(options),
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
static enum lb_status take_canaries(struct sweep *sweep, struct lb_error *err)
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
    LB_CHECK(lb_pictures_check_kinds("--plots", options->plots, err));
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

/* Errors are those of lb_sweep. */
static enum lb_status begin(struct sweep *sweep, const struct lb_plan *plan, struct lb_error *err)
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

/* ---- Resuming ---- */

/* Returns how many cases are done. When the run is read, new rows replace old ones. */
static size_t drop_done(const struct lb_run *run, struct sweep *sweep)
{
    json_t *done = json_object();
    size_t kept = 0;
    const struct lb_options *options = sweep->session->options;
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        bool again = row->verdict == LB_VERDICT_SKIPPED || options->retry & 1U << row->verdict ||
                     (options->retry_noisy && is_noisy(row));
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
static enum lb_status check_known(const struct sweep *sweep, struct lb_error *err)
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

/* The settings of the run become those of the options. */
static enum lb_status resume(struct sweep *sweep, struct lb_session *session,
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

/* ---- Measuring one case ---- */

static bool reached_hang_limit(const struct sweep *sweep, const struct lb_case *c)
{
    int limit = sweep->session->options->hang_limit;
    return limit > 0 &&
           json_integer_value(json_object_get(sweep->hangs, LB_IMPL_LABEL(c))) >= limit;
}

static bool out_of_time(const struct sweep *sweep)
{
    return (lb_now_ns() - sweep->start_ns) / 1e9 > sweep->session->options->time_budget_s;
}

/* first: the very first block of the case. */
static enum lb_status measure_block(struct sweep *sweep, const struct lb_case *c, bool first,
                                    struct lb_row *block, struct lb_error *err)
{
    const struct lb_session *session = sweep->session;
    const struct lb_options *options = session->options;
    const struct lb_impl_entry *impl_entry = lb_registry_find(session->registry, c->impl);
    const struct lb_job job = {
        .c = c,
        .seed = options->seed,
        .sampler = lb_options_sampler(options),
        .kernels = options->kernels && first,
        .loss_scale = options->loss_scale,
        .dynamic_loss_scale = options->dynamic_loss_scale,
    };
    enum lb_status st = LB_OK;
    *block = lb_row_make(c);
    if (!impl_entry || impl_entry->absent) {
        block->verdict = LB_VERDICT_ABSENT;
        if (impl_entry)
            lb_row_print(&block->reason, "%s", impl_entry->absent);
        else
            lb_row_print(&block->reason, "this program has no %s", c->impl);
    } else if (first && out_of_time(sweep)) {
        block->verdict = LB_VERDICT_SKIPPED;
        lb_row_print(&block->reason, "the time budget of %.3g s ran out", options->time_budget_s);
    } else if (reached_hang_limit(sweep, c)) {
        block->verdict = LB_VERDICT_SKIPPED;
        lb_row_print(&block->reason,
                     "%s has hung %d times: its other cases are not run (--hang-limit)",
                     LB_IMPL_LABEL(c), options->hang_limit);
    } else {
        st = lb_pool_run(session->pool, impl_entry, &job, block, err);
        if (st == LB_OK && block->verdict == LB_VERDICT_TIMEOUT)
            add_count(sweep->hangs, LB_IMPL_LABEL(c), 1);
    }
    return st;
}

/* Measures round `round` of a case into its row: one block, or with --processes all blocks of a
 * fresh process. A case that failed is not measured again; one that has a block keeps it when time
 * runs out or when other cases of its variant hang. LB_INTERRUPTED; LB_FAILED: no worker starts. */
static enum lb_status measure(struct sweep *sweep, const struct lb_case *c, int round,
                              struct lb_row *row, struct lb_error *err)
{
    const struct lb_options *options = sweep->session->options;
    bool fresh = options->processes > 1;
    enum lb_status st = LB_OK;
    for (int i = 0; i < (fresh ? options->repetitions : 1) && st == LB_OK; i++) {
        struct lb_row block = {0};
        bool first = round == 0 && i == 0;
        if (!first && (!lb_verdict_has_samples(row->verdict) || out_of_time(sweep) ||
                       reached_hang_limit(sweep, c)))
            break;
        if (fresh && i == 0)
            lb_pool_renew(sweep->session->pool);
        st = measure_block(sweep, c, first, &block, err);
        if (st == LB_OK)
            lb_row_merge(row, &block, first, fresh && i == 0);
        lb_row_free(&block);
    }
    return st;
}

/* ---- The table on a terminal, problem by problem while the sweep runs ---- */

static void print_problem(struct sweep *sweep, const char *problem)
{
    struct lb_run shown = sweep->table;
    struct lb_grouped_run grouped;
    size_t waiting = 0;
    shown.count = 0;
    shown.rows = lb_needed(calloc(sweep->table.count, sizeof(*shown.rows)));
    for (size_t i = 0; i < sweep->table.count; i++) {
        struct lb_row *row = &sweep->table.rows[i];
        if (strcmp(LB_PROBLEM_TEXT(&row->c), problem) == 0)
            shown.rows[shown.count++] = *row;
        else
            sweep->table.rows[waiting++] = *row;
    }
    sweep->table.count = waiting;
    lb_group_run(&shown, NULL, &grouped);
    lb_table_print_problems(stdout, &grouped, sweep->baseline);
    fflush(stdout);
    lb_grouped_run_free(&grouped);
    for (size_t i = 0; i < shown.count; i++)
        lb_row_free(&shown.rows[i]);
    free(shown.rows);
}

/* ---- Recording one row ---- */

static void warn_of_others(struct lb_row *row)
{
    if (lb_row_is_timed(row) && row->others_share > LB_BUSY_SHARE)
        lb_row_warn(row, "other programs used %.0f %% of its CPUs while it was measured",
                    100 * row->others_share);
}

/* Adds warnings of the whole case, and appends the row, which becomes empty where a table shows it.
 */
static enum lb_status record(struct sweep *sweep, struct lb_row *row, struct lb_error *err)
{
    const struct lb_options *options = sweep->session->options;
    const char *limit = reached_hang_limit(sweep, &row->c) ? "hang limit" : "time budget";
    bool by_process = options->processes > 1, timed = lb_row_is_timed(row);
    size_t planned = (size_t)options->processes * (size_t)options->repetitions;
    if (lb_verdict_has_samples(row->verdict) && row->block_count < planned)
        lb_row_warn(row, "the %s left it %zu of %d %s", limit,
                    by_process ? row->process_count : row->block_count,
                    by_process ? options->processes : options->repetitions,
                    by_process ? "processes" : "blocks");
    warn_of_others(row);
    if (options->verbose) {
        lb_progress_clear(&sweep->progress);
        fprintf(stderr, "%-11s %9s  %s%s%s\n", lb_verdict_name(row->verdict),
                timed ? LB_NS_TEXT(row->median_ns) : "", LB_CASE_TEXT(&row->c), timed ? "" : ": ",
                timed ? "" : row->reason);
    }
    lb_progress_done(&sweep->progress, lb_verdict_is_failure(row->verdict),
                     row->verdict == LB_VERDICT_SKIPPED);
    LB_CHECK(lb_run_append(&sweep->file, row, err));
    if (sweep->left) {
        const char *problem = LB_PROBLEM_TEXT(&row->c);
        struct lb_run *table = &sweep->table;
        lb_progress_clear(&sweep->progress);
        table->rows = lb_room(table->rows, table->count, sizeof(*table->rows));
        table->rows[table->count++] = *row;
        *row = (struct lb_row){0};
        if (add_count(sweep->left, problem, -1) <= 0)
            print_problem(sweep, problem);
    }
    return LB_OK;
}

/* ---- Running all cases ---- */

/* Whatever is left of the time budget; when: "start" or "end". */
static enum lb_status run_canaries(struct sweep *sweep, const char *when, struct lb_error *err)
{
    const struct lb_session *session = sweep->session;
    enum lb_status st = LB_OK;
    for (size_t i = 0; st == LB_OK && i < sweep->canary_count && !lb_sweep_interrupted(session);
         i++) {
        struct lb_row row = {0};
        const struct lb_case *c = &sweep->canaries[i];
        struct lb_job job = {.c = c,
                             .seed = session->options->seed,
                             .sampler = lb_sampler_defaults(),
                             .loss_scale = 1};
        job.sampler.max_ns = fmin(CANARY_NS, lb_options_sampler(session->options).max_ns);
        st = lb_pool_run(session->pool, lb_registry_find(session->registry, c->impl), &job, &row,
                         err);
        if (st == LB_OK) {
            warn_of_others(&row);
            st = lb_run_append_canary(&sweep->file, &row, when, err);
        }
        lb_row_free(&row);
    }
    return st;
}

/* Runs cases [count, at most LB_GBENCH_MAX] in the order that Google Benchmark chooses. */
static enum lb_status run_chunk(struct sweep *sweep, const struct lb_case *cases, size_t count,
                                struct lb_error *err)
{
    enum lb_status st = LB_OK;
    int rounds[LB_GBENCH_MAX] = {0};
    size_t *order = NULL, length = 0;
    struct lb_row *rows = lb_needed(calloc(LB_GBENCH_MAX, sizeof(*rows)));
    LB_TRY(lb_gbench_order(cases, count, false, &order, &length, err));
    for (size_t i = 0; i < length && !lb_sweep_interrupted(sweep->session); i++) {
        size_t at = order[i];
        lb_progress_case(&sweep->progress, LB_CASE_TEXT(&cases[at]));
        LB_TRY(measure(sweep, &cases[at], rounds[at]++, &rows[at], err));
        if (rounds[at] == rounds_of(sweep->session->options))
            LB_TRY(record(sweep, &rows[at], err));
        else
            lb_progress_done(&sweep->progress, false, false);
    }
done:
    for (size_t i = 0; i < count; i++)
        lb_row_free(&rows[i]);
    free(rows);
    free(order);
    return st;
}

/* An interruption is no failure: the user asked for it. */
static enum lb_status run_cases(struct sweep *sweep, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t chunk = sweep->session->options->processes > 1 ? PROCESSES_CHUNK : LB_GBENCH_MAX;
    struct lb_cpu_load before, after;
    lb_cpu_load_read(&before);
    if (sweep->count > 0)
        usleep(100000);
    lb_cpu_load_read(&after);
    double others = lb_cpu_load_others(&before, &after);
    if (sweep->count > 0 && others > LB_BUSY_SHARE)
        fprintf(stderr,
                "warning: other programs use at least %.0f %% of the CPUs, so times will be noisy: "
                "stop them, or measure the noisy cases again later with --resume DIR "
                "--retry noisy\n",
                100 * others);
    LB_TRY(run_canaries(sweep, "start", err));
    sweep->hangs = json_object();
    sweep->start_ns = lb_now_ns();
    lb_progress_start(&sweep->progress, sweep->count * (size_t)rounds_of(sweep->session->options));
    sweep->progress.quiet = sweep->session->options->quiet;
    for (size_t i = 0; i < sweep->count && !lb_sweep_interrupted(sweep->session); i += chunk) {
        size_t left = sweep->count - i;
        LB_TRY(run_chunk(sweep, &sweep->cases[i], left < chunk ? left : chunk, err));
    }
    LB_TRY(run_canaries(sweep, "end", err));
done:
    lb_progress_clear(&sweep->progress);
    return st == LB_INTERRUPTED ? LB_OK : st;
}

/* ---- Finishing ---- */

/* Says the command that resumes the run; what only a command line may name, plug-ins and the file
 * to tune into, is given again. more: further words. */
static void say_resume(const struct lb_options *options, const char *folder, const char *why,
                       const char *more)
{
    char word[4 * 4096 + 4];
    lb_shell_word(folder, word, sizeof(word));
    fprintf(stderr, "%s: bench-lstm --resume %s%s", why, word, more);
    for (size_t i = 0; i < options->plugin_count; i++) {
        lb_shell_word(options->plugins[i], word, sizeof(word));
        fprintf(stderr, " --plugin %s", word);
    }
    if (options->given_files.tuned) {
        lb_shell_word(options->given_files.tuned, word, sizeof(word));
        fprintf(stderr, " --tuned %s", word);
    }
    fprintf(stderr, "\n");
}

static void say_noisy(const struct lb_options *options, const struct lb_run *run,
                      const char *folder)
{
    enum { NAMED = 10 };
    size_t noisy = 0;
    for (size_t i = 0; i < run->count; i++)
        noisy += is_noisy(&run->rows[i]);
    if (noisy == 0)
        return;
    fprintf(
        stderr,
        "noisy     %zu of %zu case%s %s measured while other programs used more than %.0f %% of "
        "%s CPUs, or while the machine was more than %.0f %% slower than in most of the run:\n",
        noisy, run->count, run->count == 1 ? "" : "s", noisy == 1 ? "was" : "were",
        100 * LB_BUSY_SHARE, noisy == 1 ? "its" : "their", 100 * (LB_SLOW_MACHINE - 1));
    for (size_t i = 0, named = 0; i < run->count && named < NAMED; i++) {
        const struct lb_row *row = &run->rows[i];
        if (!is_noisy(row))
            continue;
        bool others = row->others_share > LB_BUSY_SHARE;
        fprintf(stderr, "          %s (%s%.0f %%%s)\n", LB_CASE_TEXT(&row->c),
                others ? "others " : "", 100 * (others ? row->others_share : row->slowdown - 1),
                others ? "" : " slower");
        named++;
    }
    if (noisy > NAMED)
        fprintf(stderr, "          and %zu more\n", noisy - NAMED);
    say_resume(options, folder,
               noisy == 1 ? "          measure it again with" : "          measure them again with",
               " --retry noisy");
}

/* lb_file_writer */
static enum lb_status write_json(FILE *out, const void *run, struct lb_error *err)
{
    (void)err;
    lb_export_formats->write(run, out);
    return LB_OK;
}

/* Prints the table on stdout (Google Benchmark JSON with --benchmark_format=json), draws the
 * pictures into the folder, writes the file of --benchmark_out, and lists on stderr where
 * everything is. Without gnuplot there are no pictures, which is reported and is no failure. */
static enum lb_status derive_outputs(const struct lb_run *run, const char *folder,
                                     const struct lb_options *options, bool listed,
                                     struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_grouped_run grouped = {0};
    char machine[1024], word[4 * 4096 + 4];
    struct lb_picture_report report = {0};
    struct lb_error why;

    /* Files first, because a reader of stdout may go away before the table ends. */
    lb_group_run(run, NULL, &grouped);
    if (options->benchmark_out)
        LB_TRY(lb_write_file_atomically(options->benchmark_out, write_json, run, err));
    enum lb_status drawn = lb_pictures_draw(&grouped, folder, options->plots, &report, &why);
    lb_shell_word(folder, word, sizeof(word));
    if (drawn == LB_ABSENT)
        snprintf(report.notes, sizeof(report.notes),
                 "no pictures: %.200s; once it is, bench-lstm --resume %.1000s draws them",
                 why.text, word);
    else if (drawn != LB_OK)
        snprintf(report.notes, sizeof(report.notes), "no pictures: %s", why.text);
    if (options->benchmark_json) {
        lb_export_formats->write(run, stdout);
    } else if (listed) {
        lb_table_print_summary(stdout, &grouped);
    } else {
        lb_run_machine_line(run, machine, sizeof(machine));
        printf("%s\n", machine);
        lb_table_print(stdout, &grouped);
    }
    fflush(stdout);
    if (!options->quiet)
        fprintf(stderr, "\nrecords   %s/%s\n", folder, LB_RUN_FILE_NAME);
    if (!options->quiet && report.pictures > 0)
        fprintf(stderr, "pictures  %s/plots, %zu, each as .svg and .png\n", folder,
                report.pictures);
    if (!options->quiet && report.notes[0])
        fprintf(stderr, "%s\n", report.notes);
done:
    lb_grouped_run_free(&grouped);
    return st;
}

enum lb_status lb_sweep_finish(const struct lb_session *session, const char *folder, bool listed,
                               int *exit_code, struct lb_error *err)
{
    struct lb_run run = {0};
    enum lb_status st = LB_OK;
    LB_TRY(lb_run_read_by(folder, LB_BY_DEFAULT, &run, err));
    lb_warn(run.doubt);
    st = derive_outputs(&run, folder, session->options, listed, err);
    say_noisy(session->options, &run, folder);
    bool failed = false, fine = run.count == 0 && json_object_get(run.header, "shard");
    for (size_t i = 0; i < run.count; i++) {
        failed |= lb_verdict_is_failure(run.rows[i].verdict);
        fine |= lb_verdict_has_samples(run.rows[i].verdict);
    }
    bool stopped = lb_sweep_interrupted(session); /* possibly while pictures were drawn */
    *exit_code = stopped  ? LB_EXIT_INTERRUPTED
                 : failed ? LB_EXIT_FAILED
                 : fine   ? LB_EXIT_FINE
                          : LB_EXIT_NOTHING;
    if (stopped)
        say_resume(session->options, folder, "interrupted; continue with", "");
done:
    lb_run_free(&run);
    return st;
}

/* Runs what was planned, unless planning failed, and finishes the run. LB_IO: its file can't be
 * written. Other failures once cases have run are LB_FAILED. Frees the sweep. */
static enum lb_status run_and_finish(enum lb_status planned, struct sweep *sweep, int *exit_code,
                                     struct lb_error *err)
{
    enum lb_status st = planned;
    bool listed = sweep->left != NULL;
    if (planned == LB_OK) {
        st = run_cases(sweep, err);
        while (sweep->table.count > 0) /* problems that an interruption has cut short */
            print_problem(sweep, LB_PROBLEM_TEXT(&sweep->table.rows[0].c));
        bool stopped = st != LB_OK || lb_sweep_interrupted(sweep->session);
        /* Even a failed sweep ends its file. What is reported then is why the sweep failed. */
        enum lb_status ended = lb_run_finish(&sweep->file, stopped, st == LB_OK ? err : NULL);
        st = st == LB_OK ? ended : st;
        if (st == LB_IO && access(sweep->file.path, F_OK) == 0)
            say_resume(sweep->session->options, sweep->folder,
                       "the run stops here; once its file can be written, continue with", "");
        lb_run_close(&sweep->file);
        if (st == LB_OK)
            st = lb_sweep_finish(sweep->session, sweep->folder, listed, exit_code, err);
        st = st == LB_OK || st == LB_INTERRUPTED || st == LB_IO ? st : LB_FAILED;
    }
    lb_run_close(&sweep->file);
    lb_run_free(&sweep->table);
    json_decref(sweep->left);
    json_decref(sweep->header);
    json_decref(sweep->hangs);
    free(sweep->cases);
    return st;
}

enum lb_status lb_sweep(const struct lb_session *session, const struct lb_plan *plan,
                        int *exit_code, struct lb_error *err)
{
    struct sweep sweep = {.session = session};
    enum lb_status st = begin(&sweep, plan, err);
    if (st == LB_OK && isatty(STDOUT_FILENO) && !session->options->benchmark_json) {
        char machine[1024];
        sweep.left = json_object();
        sweep.table.header = json_incref(sweep.header);
        sweep.table.environments = json_pack("[O]", json_object_get(sweep.header, "environment"));
        for (size_t i = 0; i < sweep.count; i++)
            add_count(sweep.left, LB_PROBLEM_TEXT(&sweep.cases[i]), 1);
        lb_run_machine_line(&sweep.table, machine, sizeof(machine));
        printf("%s\n", machine);
        fflush(stdout);
    }
    return run_and_finish(st, &sweep, exit_code, err);
}

enum lb_status lb_sweep_resume(struct lb_session *session, int *exit_code, struct lb_error *err)
{
    const struct lb_options *given = session->options;
    struct lb_options options = *given;
    struct sweep sweep = {.session = session};
    session->options = &options;
    enum lb_status st =
        run_and_finish(resume(&sweep, session, &options, err), &sweep, exit_code, err);
    session->options = given;
    return st;
}
