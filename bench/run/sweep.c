/* The sweep: runs a plan case by case and records every outcome. */
#include "run/sweep.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/case_set.h"
#include "record/run_devices.h"
#include "report/canaries.h"
#include "run/device_query.h"
#include "run/gbench.h"
#include "run/hang_count.h"
#include "run/run_outputs.h"
#include "run/run_settings.h"
#include "support/cpu_load.h"
#include "support/progress.h"
#include "support/terminal.h"

enum {
    CHUNK = 256, /* cases given to Google Benchmark at a time: registration is quadratic */
    CANARY_NS = 500000000, /* sampling time of a canary, at most */
    PROCESSES_CHUNK = 32   /* with --processes: an interruption loses what a chunk has measured */
};

/* A sweep that runs. */
struct sweep {
    const struct lb_session *session;
    struct lb_settings settings;
    struct lb_run_file file;
    struct lb_progress progress;
    struct lb_hang_counts hang_counts;
    double start_ns;
    const struct lb_case *cases; /* [count] still to run */
    size_t count;
    size_t first;              /* index of the first case of the current chunk */
    struct lb_row rows[CHUNK]; /* of that chunk; each repetition adds a block to its row */
    int rounds[CHUNK];         /* repetitions done */
    struct lb_error err;       /* why the sweep can't continue; "" while it can */
};

/* Whether the user asked the sweep to stop, or nobody can see any more what it says. */
static bool interrupted(const struct sweep *sweep)
{
    return (sweep->session->stop && *sweep->session->stop) || lb_reader_left(stderr);
}

/* Whether so many cases of the variant have hung that no more of them are run. */
static bool reached_hang_limit(const struct sweep *sweep, const struct lb_case *c)
{
    int limit = sweep->session->options->hang_limit;
    return limit > 0 && lb_hang_counts_of(&sweep->hang_counts, c) >= limit;
}

static bool out_of_time(const struct sweep *sweep)
{
    double elapsed_s = (lb_now_ns() - sweep->start_ns) / 1e9;
    return elapsed_s > sweep->session->options->time_budget_s;
}

/* Measures one block of one case in a worker; a case that is known not to run gets its verdict at
 * once. */
static enum lb_status run_block(struct sweep *sweep, const struct lb_case *c, bool first,
                                struct lb_row *block, struct lb_error *err)
{
    const struct lb_session *session = sweep->session;
    const struct lb_impl_entry *impl_entry = lb_registry_find(session->registry, c->impl);
    const struct lb_job job = {
        .c = c,
        .seed = sweep->settings.seed,
        .sampler = sweep->settings.sampler,
        .kernels = sweep->settings.kernels && first,
        .loss_scale = sweep->settings.loss_scale,
        .dynamic_loss_scale = sweep->settings.dynamic_loss_scale,
    };
    enum lb_status st = LB_OK;
    *block = lb_row_make(c);
    if (!impl_entry) {
        block->verdict = LB_VERDICT_ABSENT;
        lb_row_print(&block->reason, "this program has no %s", c->impl);
    } else if (impl_entry->absent) {
        block->verdict = LB_VERDICT_ABSENT;
        lb_row_print(&block->reason, "%s", impl_entry->absent);
    } else if (first && out_of_time(sweep)) {
        block->verdict = LB_VERDICT_SKIPPED;
        lb_row_print(&block->reason, "the time budget of %.3g s ran out",
                     session->options->time_budget_s);
    } else if (reached_hang_limit(sweep, c)) {
        block->verdict = LB_VERDICT_SKIPPED;
        lb_row_print(&block->reason,
                     "%s%s%s has hung %d times: its other cases are not run (--hang-limit)",
                     c->impl, c->variant[0] ? ":" : "", c->variant, session->options->hang_limit);
    } else {
        LB_TRY(lb_pool_run(session->pool, impl_entry, &job, block, err));
        if (block->verdict == LB_VERDICT_TIMEOUT)
            lb_hang_counts_add(&sweep->hang_counts, c);
    }
done:
    return st;
}

/* Whether others used so much of its CPUs that the case is worth measuring again. */
static bool is_noisy(const struct lb_row *row)
{
    return lb_row_is_timed(row) && row->others_share > LB_BUSY_SHARE;
}

/* Adds a warning to the row of a case with a time when a limit stopped the case early. */
static void warn_of_early_stop(const struct sweep *sweep, struct lb_row *row)
{
    const struct lb_settings *settings = &sweep->settings;
    const char *limit = reached_hang_limit(sweep, &row->c) ? "hang limit" : "time budget";
    size_t wanted = (size_t)settings->processes * (size_t)settings->repetitions;
    const char *separator = row->warning[0] ? "; " : "";
    if (row->verdict != LB_VERDICT_OK || row->block_count >= wanted)
        return;
    if (settings->processes > 1)
        lb_row_append(&row->warning, "%sthe %s left it %zu of %d processes", separator, limit,
                      row->process_count, settings->processes);
    else
        lb_row_append(&row->warning, "%sthe %s left it %zu of %d blocks", separator, limit,
                      row->block_count, settings->repetitions);
}

/* Adds a warning to the row of a case that was measured while others used its CPUs. */
static void warn_of_others(struct lb_row *row)
{
    char warning[128];
    snprintf(warning, sizeof(warning),
             "other programs used %.0f %% of its CPUs while it was measured",
             100 * row->others_share);
    if (is_noisy(row))
        lb_row_warn(row, warning);
}

/* --verbose: "ok           1.05 ms  cpu_ref/..." or "timeout  cpu_ref/...: the reason". */
static void say_result(const struct sweep *sweep, const struct lb_row *row)
{
    char id[LB_CASE_ID_SIZE], time[32], line[LB_CASE_ID_SIZE + LB_ROW_TEXT_SIZE + 64];
    lb_case_print(&row->c, id);
    lb_format_ns(row->median_ns, time);
    if (lb_row_is_timed(row))
        snprintf(line, sizeof(line), "%-11s %9s  %s", lb_verdict_name(row->verdict), time, id);
    else
        snprintf(line, sizeof(line), "%-11s %9s  %s: %s", lb_verdict_name(row->verdict), "", id,
                 row->reason);
    lb_clean_text(line);
    lb_progress_say(&sweep->progress, line);
}

/* Records a case that has all its blocks, or all that there was time for. */
static enum lb_status finish_case(struct sweep *sweep, size_t slot, struct lb_error *err)
{
    struct lb_row *row = &sweep->rows[slot];
    warn_of_early_stop(sweep, row);
    warn_of_others(row);
    if (sweep->session->options->verbose)
        say_result(sweep, row);
    enum lb_status st = lb_run_append(&sweep->file, row, err);
    lb_row_free(row);
    *row = (struct lb_row){0};
    return st;
}

/* How often Google Benchmark calls each case: once per process with --processes, else once per
 * block. */
static int rounds_of(const struct lb_settings *settings)
{
    return settings->processes > 1 ? settings->processes : settings->repetitions;
}

/* One round of a case: a block, or all blocks of a fresh process. A case that did not run, or
 * failed, is not tried again. A case that has a block keeps it when time runs out or when other
 * cases of its variant hang. */
static enum lb_status run_round(struct sweep *sweep, size_t slot, struct lb_error *err)
{
    const struct lb_settings *settings = &sweep->settings;
    struct lb_row *row = &sweep->rows[slot];
    bool fresh = settings->processes > 1;
    enum lb_status st = LB_OK;
    for (int i = 0; i < (fresh ? settings->repetitions : 1); i++) {
        struct lb_row block = {0};
        bool first = sweep->rounds[slot] == 0 && i == 0;
        if (!first && (row->verdict != LB_VERDICT_OK || out_of_time(sweep) ||
                       reached_hang_limit(sweep, &sweep->cases[sweep->first + slot])))
            break;
        if (fresh && i == 0)
            lb_pool_renew(sweep->session->pool);
        st = run_block(sweep, &sweep->cases[sweep->first + slot], first, &block, err);
        if (st == LB_OK)
            st = lb_row_merge(row, &block, first, fresh && i == 0, err);
        lb_row_free(&block);
        if (st != LB_OK)
            break;
    }
    return st;
}

/* lb_gbench_call: one repetition of a case is one round. */
static double run_repetition(void *user, size_t slot)
{
    struct sweep *sweep = user;
    enum lb_status st = LB_OK;
    enum lb_verdict verdict;
    char id[LB_CASE_ID_SIZE];
    double seconds = -1;

    if (interrupted(sweep) || sweep->err.text[0])
        return -1;
    lb_case_print(&sweep->cases[sweep->first + slot], id);
    lb_progress_case(&sweep->progress, id);
    LB_TRY(run_round(sweep, slot, &sweep->err));
    if (sweep->rows[slot].verdict == LB_VERDICT_OK)
        seconds = sweep->rows[slot].median_ns / 1e9;
    verdict = sweep->rows[slot].verdict;
    bool last = ++sweep->rounds[slot] == rounds_of(&sweep->settings);
    if (last)
        LB_TRY(finish_case(sweep, slot, &sweep->err));
    lb_progress_done(&sweep->progress, last && lb_verdict_is_failure(verdict),
                     last && verdict == LB_VERDICT_SKIPPED);
done:
    if (st == LB_INTERRUPTED)
        sweep->err.text[0] = '\0'; /* no failure: the user asked for it */
    return seconds;
}

static enum lb_status run_chunk(struct sweep *sweep, size_t count, struct lb_error *err)
{
    char ids[CHUNK][LB_CASE_ID_SIZE];
    const char *names[CHUNK];
    memset(sweep->rounds, 0, sizeof(sweep->rounds));
    for (size_t i = 0; i < count; i++) {
        lb_case_print(&sweep->cases[sweep->first + i], ids[i]);
        names[i] = ids[i];
    }
    enum lb_status st = lb_gbench_run(names, count, run_repetition, sweep, err);
    for (size_t i = 0; i < count; i++) { /* rows that an interruption left unfinished */
        lb_row_free(&sweep->rows[i]);
        sweep->rows[i] = (struct lb_row){0};
    }
    return st;
}

/* Looks for a moment how much of the CPUs other programs use, and says it before a long sweep. */
static void warn_of_busy_machine(void)
{
    enum { LOOK_US = 100000 };
    struct lb_cpu_load before, after;
    lb_cpu_load_read(&before);
    usleep(LOOK_US);
    lb_cpu_load_read(&after);
    double others = lb_cpu_load_others(&before, &after);
    if (others > LB_BUSY_SHARE)
        fprintf(
            stderr,
            "warning: other programs use %.0f %% of the CPUs at least: times will be noisy; stop "
            "them, or measure what they spoil again with --resume DIR --retry-noisy\n",
            100 * others);
}

/* Measures the canaries of a shard, whatever is left of the time budget; when: "start" or "end". */
static enum lb_status run_canaries(struct sweep *sweep, const char *when, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const json_t *texts = json_object_get(sweep->settings.shard, "canaries");
    for (size_t i = 0; i < json_array_size(texts) && !interrupted(sweep); i++) {
        struct lb_case c;
        struct lb_row row = {0};
        struct lb_job job = {.c = &c,
                             .seed = sweep->settings.seed,
                             .sampler = lb_sampler_defaults(),
                             .loss_scale = 1};
        job.sampler.max_ns = CANARY_NS;
        const char *text = json_string_value(json_array_get(texts, i));
        LB_TRY(lb_case_parse(text ? text : "", &c, NULL, NULL, err));
        const struct lb_impl_entry *impl_entry = lb_registry_find(sweep->session->registry, c.impl);
        if (!impl_entry || impl_entry->absent)
            continue; /* the run was begun by another build */
        st = lb_pool_run(sweep->session->pool, impl_entry, &job, &row, err);
        if (st == LB_OK)
            warn_of_others(&row);
        if (st == LB_OK)
            st = lb_run_append_canary(&sweep->file, &row, when, err);
        lb_row_free(&row);
        LB_TRY(st);
    }
done:
    return st == LB_INTERRUPTED ? LB_OK : st;
}

static enum lb_status run_all(struct sweep *sweep, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    if (sweep->count > 0)
        warn_of_busy_machine();
    LB_TRY(run_canaries(sweep, "start", err));
    sweep->start_ns = lb_now_ns();
    lb_progress_start(&sweep->progress, sweep->count * (size_t)rounds_of(&sweep->settings));
    sweep->progress.quiet = sweep->session->options->quiet;
    size_t chunk = sweep->settings.processes > 1 ? PROCESSES_CHUNK : CHUNK;
    for (sweep->first = 0; sweep->first < sweep->count; sweep->first += chunk) {
        size_t left = sweep->count - sweep->first;
        LB_TRY(run_chunk(sweep, left < chunk ? left : chunk, err));
        if (sweep->err.text[0])
            LB_TRY(lb_fail(err, LB_FAILED, "%s", sweep->err.text));
        if (interrupted(sweep))
            break;
    }
    st = run_canaries(sweep, "end", err);
done:
    lb_progress_end(&sweep->progress);
    return st;
}

static int exit_code_of(const struct lb_run *run)
{
    size_t ok = 0;
    for (size_t i = 0; i < run->count; i++) {
        if (lb_verdict_is_failure(run->rows[i].verdict))
            return LB_EXIT_FAILED;
        ok += run->rows[i].verdict == LB_VERDICT_OK;
    }
    bool empty_shard = run->count == 0 && json_object_get(run->header, "shard");
    return ok > 0 || empty_shard ? LB_EXIT_FINE : LB_EXIT_NOTHING;
}

/* Ends a line with the command that resumes the run: what only a command line may name, plug-ins
 * and the file to tune into, is given again. */
static void print_resume(const struct sweep *sweep, const char *folder, const char *more)
{
    const struct lb_options *options = sweep->session->options;
    char word[4 * 4096 + 4];
    lb_shell_word(folder, word, sizeof(word));
    fprintf(stderr, "bench-lstm --resume %s%s", word, more);
    for (size_t i = 0; i < options->plugin_count; i++) {
        lb_shell_word(options->plugins[i], word, sizeof(word));
        fprintf(stderr, " --plugin %s", word);
    }
    if (options->tuned) {
        lb_shell_word(options->tuned, word, sizeof(word));
        fprintf(stderr, " --tuned %s", word);
    }
    fprintf(stderr, "\n");
}

/* Says how many cases were measured while others used their CPUs, which those are, and what
 * measures them again. */
static void say_noisy(const struct sweep *sweep, const struct lb_run *run, const char *folder)
{
    enum { NAMED = 10 };
    char id[LB_CASE_ID_SIZE];
    size_t noisy = 0;
    for (size_t i = 0; i < run->count; i++)
        noisy += is_noisy(&run->rows[i]);
    if (noisy == 0)
        return;
    fprintf(stderr,
            "noisy     %zu of %zu cases %s measured while other programs used more than %.0f %% of "
            "%s CPUs:\n",
            noisy, run->count, noisy == 1 ? "was" : "were", 100 * LB_BUSY_SHARE,
            noisy == 1 ? "its" : "their");
    for (size_t i = 0, named = 0; i < run->count && named < NAMED; i++) {
        if (!is_noisy(&run->rows[i]))
            continue;
        lb_case_print(&run->rows[i].c, id);
        fprintf(stderr, "          %s (%.0f %%)\n", id, 100 * run->rows[i].others_share);
        named++;
    }
    if (noisy > NAMED)
        fprintf(stderr, "          and %zu more\n", noisy - NAMED);
    fprintf(stderr, "          measure %s again with: ", noisy == 1 ? "it" : "them");
    print_resume(sweep, folder, " --retry-noisy");
}

/* Runs the cases, closes the file and writes all other outputs from it. Failures from here on are
 * LB_FAILED, because cases have run. */
static enum lb_status run_and_finish(struct sweep *sweep, const char *folder, int *exit_code,
                                     struct lb_error *err)
{
    struct lb_run run = {0};
    enum lb_status st = run_all(sweep, err);
    /* Even a failed sweep finishes its file. What is reported then is why the sweep failed. */
    enum lb_status closed =
        lb_run_finish(&sweep->file, interrupted(sweep) || st != LB_OK, st == LB_OK ? err : NULL);
    lb_run_close(&sweep->file);
    if (st == LB_OK)
        st = closed;
    LB_TRY(st);
    LB_TRY(lb_run_read_by(folder, LB_BY_DEFAULT, &run, err));
    lb_warn(run.doubt);
    st = lb_write_run_outputs(&run, folder, sweep->session->options, sweep->settings.baseline, err);
    say_noisy(sweep, &run, folder);
    bool stopped = interrupted(sweep); /* possibly while pictures were drawn */
    *exit_code = stopped ? LB_EXIT_INTERRUPTED : exit_code_of(&run);
    if (stopped) {
        fprintf(stderr, "interrupted; continue with: ");
        print_resume(sweep, folder, "");
    }
done:
    lb_run_free(&run);
    return st == LB_OK || st == LB_INTERRUPTED ? st : LB_FAILED;
}

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

/* Hands the arguments in the settings to Google Benchmark. The processes of a case are spread over
 * its chunk in random order, so that a drift of the machine shows as a difference between them. */
static enum lb_status configure_gbench(const struct lb_settings *settings, struct lb_error *err)
{
    char repetitions[64], interleaving[] = "--benchmark_enable_random_interleaving=true";
    size_t count = settings->benchmark_count;
    char **all = calloc(count + 2, sizeof(*all));
    if (!all)
        return lb_fail(err, LB_OOM, "out of memory");
    for (size_t i = 0; i < count; i++)
        all[i] = settings->benchmark[i];
    if (settings->processes > 1) {
        snprintf(repetitions, sizeof(repetitions), "--benchmark_repetitions=%d",
                 rounds_of(settings));
        all[count++] = repetitions;
        all[count++] = interleaving;
    }
    enum lb_status st = lb_gbench_configure(count, all, err);
    free(all);
    return st;
}

/* Keeps the cases that Google Benchmark's filter matches, in place. */
static enum lb_status filter_cases(struct lb_case *cases, size_t *count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t kept = 0;
    char(*ids)[LB_CASE_ID_SIZE] = calloc(*count + 1, sizeof(*ids));
    const char **names = calloc(*count + 1, sizeof(*names));
    bool *keep = calloc(*count + 1, sizeof(*keep));
    if (!ids || !names || !keep) {
        st = lb_fail(err, LB_OOM, "out of memory");
        goto done;
    }
    for (size_t i = 0; i < *count; i++) {
        lb_case_print(&cases[i], ids[i]);
        names[i] = ids[i];
    }
    LB_TRY(lb_gbench_filter(names, *count, keep, err));
    for (size_t i = 0; i < *count; i++)
        if (keep[i])
            cases[kept++] = cases[i];
    *count = kept;
    if (kept == 0)
        st = lb_fail(err, LB_INVALID, "--benchmark_filter: no case matches");
done:
    free(keep);
    free(names);
    free(ids);
    return st;
}

enum lb_status lb_sweep_filter(const struct lb_options *options, struct lb_plan *plan,
                               struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_settings settings = {0};
    LB_TRY(lb_settings_from_options(options, &settings, err));
    LB_TRY(configure_gbench(&settings, err));
    if (options->benchmark_filter && plan->count > 0)
        LB_TRY(filter_cases(plan->cases, &plan->count, err));
done:
    lb_settings_free(&settings);
    return st;
}

/* Notes in the settings which part of a plan this is, and the canaries of its device. */
static enum lb_status note_shard(const struct lb_session *session, const struct lb_plan *plan,
                                 struct lb_settings *settings, struct lb_error *err)
{
    const struct lb_shard *shard = &plan->shard;
    struct lb_case canaries[LB_CANARY_COUNT];
    char hash[17];
    json_t *texts = json_array();
    if (shard->count == 0) {
        json_decref(texts);
        return LB_OK;
    }
    lb_canaries_choose(session->registry, session->gpu != NULL, shard->threads, canaries);
    for (size_t i = 0; i < LB_CANARY_COUNT; i++) {
        char text[LB_CASE_ID_SIZE];
        lb_case_print(&canaries[i], text);
        json_array_append_new(texts, json_string(text));
    }
    snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)shard->plan_hash);
    settings->shard =
        json_pack("{s:i, s:i, s:s, s:I, s:o}", "index", shard->index, "count", shard->count, "plan",
                  hash, "plan_cases", (json_int_t)shard->plan_count, "canaries", texts);
    return settings->shard ? LB_OK : lb_fail(err, LB_OOM, "out of memory for the shard");
}

enum lb_status lb_sweep(const struct lb_session *session, const struct lb_plan *plan,
                        int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char folder[4096];
    json_t *header = NULL;
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    if (!sweep)
        return lb_fail(err, LB_OOM, "out of memory");
    sweep->session = session;
    sweep->cases = plan->cases;
    sweep->count = plan->count;
    LB_TRY(lb_settings_from_options(session->options, &sweep->settings, err));
    LB_TRY(note_shard(session, plan, &sweep->settings, err));
    LB_TRY(lb_check_run_outputs(session->options, err));
    LB_TRY(configure_gbench(&sweep->settings, err));
    LB_TRY(lb_settings_to_header(&sweep->settings, plan->cases, sweep->count, session->libraries,
                                 &header, err));
    lb_gpu_annotate(session, json_object_get(header, "environment"));
    LB_TRY(lb_name_folder(session->options->out, folder, sizeof(folder), err));
    LB_TRY(lb_run_create(folder, header, &sweep->file, err));
    LB_TRY(run_and_finish(sweep, folder, exit_code, err));
done:
    json_decref(header);
    lb_run_close(&sweep->file);
    lb_settings_free(&sweep->settings);
    free(sweep);
    return st;
}

/* Whether the case of a row is run again: always when it was skipped, and as --retry and
 * --retry-noisy say. */
static bool is_run_again(const struct lb_row *row, const struct lb_options *options)
{
    return row->verdict == LB_VERDICT_SKIPPED || (options->retry & 1U << row->verdict) ||
           (options->retry_noisy && is_noisy(row));
}

/* Drops the cases that the run has done, in place. Those that are run again are kept: when the run
 * is read, their new rows replace the old ones. *done_count: how many cases are done. */
static enum lb_status drop_done(const struct lb_run *run, const struct lb_options *options,
                                struct lb_case *cases, size_t *count, size_t *done_count,
                                struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_case_set seen = {0};
    size_t kept = 0, first, rows = 0;
    struct lb_case *all = calloc(run->count + *count + 1, sizeof(*all));
    if (!all)
        return lb_fail(err, LB_OOM, "out of memory");
    for (size_t i = 0; i < run->count; i++) {
        if (is_run_again(&run->rows[i], options))
            continue;
        all[rows] = run->rows[i].c;
        LB_TRY(lb_case_set_add(&seen, all, rows++, &first, err));
    }
    for (size_t i = 0; i < *count; i++) {
        size_t index = rows + i;
        all[index] = cases[i];
        LB_TRY(lb_case_set_add(&seen, all, index, &first, err));
        if (first == index)
            cases[kept++] = cases[i];
    }
    *count = kept;
    *done_count = rows;
done:
    lb_case_set_free(&seen);
    free(all);
    return st;
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
static enum lb_status check_known(const struct lb_session *session,
                                  const struct lb_settings *settings, const struct lb_case *cases,
                                  size_t count, struct lb_error *err)
{
    char names[300] = "";
    size_t i = 0;
    while (i < count && lb_registry_find(session->registry, cases[i].impl))
        i++;
    for (size_t k = 0; k < settings->plugin_count; k++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, " --plugin %s", settings->plugins[k]);
    }
    if (i == count || settings->plugin_count == 0)
        return LB_OK;
    return lb_fail(err, LB_INVALID,
                   "--resume: %s comes from a plug-in, which a run's file may not load by itself; "
                   "if you trust it, give it again:%s",
                   cases[i].impl, names);
}

/* Opens the run and prepares to continue it with its own settings. Writes nothing. */
static enum lb_status prepare_resume(struct lb_session *session, struct sweep *sweep,
                                     const char *folder, struct lb_run *run, struct lb_case **cases,
                                     struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_settings *settings = &sweep->settings;
    LB_TRY(lb_run_open(folder, &sweep->file, run, err));
    if (json_object_get(run->header, "interleaved"))
        LB_TRY(lb_fail(err, LB_INVALID,
                       "--resume %s: this run is one side of --ab, measured in turn with the other "
                       "side: run --ab again",
                       folder));
    if (json_is_true(json_object_get(run->header, "merged")))
        LB_TRY(lb_fail(
            err, LB_INVALID,
            "--resume %s: this run was merged from others: resume these, and merge again", folder));
    LB_TRY(lb_settings_from_run(run, session->options, settings, cases, &sweep->count, err));
    LB_TRY(lb_settings_tune(settings->tune, settings->tuned, err));
    lb_pool_limit(session->pool, &settings->limits);
    LB_TRY(configure_gbench(settings, err));
    if (lb_gpu_wanted(session, NULL))
        LB_TRY(lb_gpu_find(session, err));
done:
    return st;
}

/* The folder of a run that was named by its folder or, as other commands allow, by its run.jsonl.
 */
static void folder_of_run(const char *word, char *folder, size_t size)
{
    const char *slash = strrchr(word, '/');
    if (strcmp(slash ? slash + 1 : word, LB_RUN_FILE_NAME) != 0)
        snprintf(folder, size, "%s", word);
    else
        snprintf(folder, size, "%.*s", slash ? (int)(slash - word) + 1 : 1, slash ? word : ".");
}

/* Says how far the run is that goes on, and what is wrong with its file. */
static void say_left(const struct lb_options *options, const struct lb_run *run, const char *path,
                     size_t done_count, size_t left)
{
    char folder[4096];
    snprintf(folder, sizeof(folder), "%s", path);
    lb_clean_text(folder); /* its name may hold escape sequences */
    lb_warn(run->doubt);
    if (!options->quiet)
        fprintf(stderr, "%s: %zu cases are done, %zu cases are left to run\n", folder, done_count,
                left);
}

enum lb_status lb_sweep_resume(struct lb_session *session, int *exit_code, struct lb_error *err)
{
    char folder[4096];
    enum lb_status st = LB_OK;
    struct lb_run run = {0};
    struct lb_case *cases = NULL;
    json_t *details = NULL;
    size_t done_count = 0;
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    if (!sweep)
        return lb_fail(err, LB_OOM, "out of memory");
    sweep->session = session;
    LB_TRY(lb_check_run_outputs(session->options, err));
    folder_of_run(session->options->subject, folder, sizeof(folder));
    LB_TRY(prepare_resume(session, sweep, folder, &run, &cases, err));
    LB_TRY(lb_settings_to_resume(&sweep->settings, session->options, session->libraries, &details,
                                 err));
    lb_gpu_annotate(session, json_object_get(details, "environment"));
    warn_of_other_environment(&run, json_object_get(details, "environment"));
    LB_TRY(drop_done(&run, session->options, cases, &sweep->count, &done_count, err));
    LB_TRY(check_known(session, &sweep->settings, cases, sweep->count, err));
    LB_TRY(lb_run_resume(&sweep->file, details, err));
    sweep->file.rows = done_count;
    say_left(session->options, &run, folder, done_count, sweep->count);
    sweep->cases = cases;
    LB_TRY(run_and_finish(sweep, folder, exit_code, err));
done:
    lb_run_close(&sweep->file);
    lb_run_free(&run);
    lb_settings_free(&sweep->settings);
    json_decref(details);
    free(cases);
    free(sweep);
    return st;
}
