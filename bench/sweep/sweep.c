/* The sweep: plans cases, measures each in a worker, records every outcome, shows it on a terminal,
 * and finishes the run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "plot/grouped_run.h"
#include "support/cpu_load.h"
#include "support/texts.h"
#include "sweep/gbench.h"
#include "sweep/sweep.h"
#include "sweep/sweep_steps.h"

enum {
    PROCESSES_CHUNK = 32, /* with --processes: an interruption loses what a chunk has measured */
    CANARY_NS = 500000000 /* sampling time of a canary, at most, but never more than a case's */
};

bool lb_sweep_interrupted(const struct lb_session *session)
{
    return *session->stop || lb_reader_left(stderr);
}

int lb_sweep_rounds(const struct lb_options *options)
{
    return options->processes > 1 ? options->processes : options->repetitions;
}

static json_int_t add_count(json_t *counts, const char *name, json_int_t more)
{
    json_int_t count = json_integer_value(json_object_get(counts, name)) + more;
    json_object_set_new(counts, name, json_integer(count));
    return count;
}

/* ---- Measuring one case ---- */

static bool reached_hang_limit(const struct lb_sweep_run *sweep, const struct lb_case *c)
{
    int limit = sweep->session->options->hang_limit;
    return limit > 0 &&
           json_integer_value(json_object_get(sweep->hangs, LB_IMPL_LABEL(c))) >= limit;
}

static bool out_of_time(const struct lb_sweep_run *sweep)
{
    return (lb_now_ns() - sweep->start_ns) / 1e9 > sweep->session->options->time_budget_s;
}

/* Measures one block. first: it is the very first of the case. */
static enum lb_status measure_block(struct lb_sweep_run *sweep, const struct lb_case *c, bool first,
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
    if (!impl_entry) {
        block->verdict = LB_VERDICT_ABSENT;
        lb_row_print(&block->reason, "this program has no %s", c->impl);
    } else if (!impl_entry->absent && first && out_of_time(sweep)) {
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
static enum lb_status measure(struct lb_sweep_run *sweep, const struct lb_case *c, int round,
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

static void print_problem(struct lb_sweep_run *sweep, const char *problem)
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
static enum lb_status record(struct lb_sweep_run *sweep, struct lb_row *row, struct lb_error *err)
{
    const struct lb_options *options = sweep->session->options;
    const char *limit = reached_hang_limit(sweep, &row->c) ? "hang limit" : "time budget";
    bool by_process = options->processes > 1, timed = lb_row_is_timed(row);
    size_t planned = (size_t)(by_process ? options->processes : 1) * (size_t)options->repetitions;
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

/* Measures the canaries, whatever is left of the time budget; when: "start" or "end". */
static enum lb_status run_canaries(struct lb_sweep_run *sweep, const char *when,
                                   struct lb_error *err)
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
static enum lb_status run_chunk(struct lb_sweep_run *sweep, const struct lb_case *cases,
                                size_t count, struct lb_error *err)
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
        if (rounds[at] == lb_sweep_rounds(sweep->session->options))
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

/* Warns where other programs use the CPUs, after a tenth of a second. */
static void look_at_load(void)
{
    struct lb_cpu_load before, after;
    lb_cpu_load_read(&before);
    usleep(100000);
    lb_cpu_load_read(&after);
    double others = lb_cpu_load_others(&before, &after);
    if (others > LB_BUSY_SHARE)
        fprintf(stderr,
                "warning: other programs use at least %.0f %% of the CPUs, so times will be noisy: "
                "stop them, or measure the noisy cases again later with --resume DIR "
                "--retry noisy\n",
                100 * others);
}

/* Runs all cases. An interruption is no failure: the user asked for it. */
static enum lb_status run_cases(struct lb_sweep_run *sweep, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t chunk = sweep->session->options->processes > 1 ? PROCESSES_CHUNK : LB_GBENCH_MAX;
    if (sweep->count > 0)
        look_at_load();
    LB_TRY(run_canaries(sweep, "start", err));
    sweep->hangs = json_object();
    sweep->start_ns = lb_now_ns();
    lb_progress_start(&sweep->progress,
                      sweep->count * (size_t)lb_sweep_rounds(sweep->session->options));
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

/* Runs what was planned, unless planning failed, and finishes the run. LB_IO: its file can't be
 * written. Other failures once cases have run are LB_FAILED. Frees the sweep. */
static enum lb_status run_and_finish(enum lb_status planned, struct lb_sweep_run *sweep,
                                     int *exit_code, struct lb_error *err)
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
            lb_sweep_say_resume(sweep->session->options, sweep->folder,
                                "the run stops here; once its file can be written, continue with",
                                "");
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
    struct lb_sweep_run sweep = {.session = session};
    enum lb_status st = lb_sweep_begin(&sweep, plan, err);
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
    struct lb_sweep_run sweep = {.session = session};
    session->options = &options;
    enum lb_status st =
        run_and_finish(lb_sweep_continue(&sweep, session, &options, err), &sweep, exit_code, err);
    session->options = given;
    return st;
}
