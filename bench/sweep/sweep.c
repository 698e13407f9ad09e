/* The sweep: plans cases, measures each in a worker, records every outcome, shows it on a terminal,
 * and finishes the run. */
#include "sweep/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "plot/grouped_run.h"
#include "support/cpu_load.h"
#include "support/terminal.h"
#include "support/texts.h"
#include "sweep/gbench.h"
#include "sweep/sweep_steps.h"

enum {
    PROCESSES_CHUNK = 32, /* with --processes: an interruption loses what a chunk has measured */
    CANARY_NS = 500000000 /* sampling time of a canary, at most, but never more than a case's */
};

bool lb_sweep_interrupted(const struct lb_session *session)
{
    return (session->stop && *session->stop) || lb_reader_left(stderr);
}

int lb_sweep_rounds(const struct lb_options *options)
{
    return options->processes > 1 ? options->processes : options->repetitions;
}

/* ---- Measuring one case ---- */

static void count_hang(struct lb_sweep_run *sweep, const struct lb_case *c)
{
    const char *name = LB_IMPL_LABEL(c);
    if (!sweep->hangs)
        sweep->hangs = json_object();
    json_int_t before = json_integer_value(json_object_get(sweep->hangs, name));
    json_object_set_new(sweep->hangs, name, json_integer(before + 1));
}

/* Whether so many cases of the variant have hung that no more of them are run. */
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

/* Whether the case is known not to run; row then has the verdict and its reason. */
static bool cannot_run(const struct lb_sweep_run *sweep, const struct lb_case *c, bool first,
                       struct lb_row *row)
{
    const struct lb_session *session = sweep->session;
    const struct lb_impl_entry *impl_entry = lb_registry_find(session->registry, c->impl);
    if (!impl_entry) {
        row->verdict = LB_VERDICT_ABSENT;
        lb_row_print(&row->reason, "this program has no %s", c->impl);
    } else if (impl_entry->absent) {
        row->verdict = LB_VERDICT_ABSENT;
        lb_row_print(&row->reason, "%s", impl_entry->absent);
    } else if (first && out_of_time(sweep)) {
        row->verdict = LB_VERDICT_SKIPPED;
        lb_row_print(&row->reason, "the time budget of %.3g s ran out",
                     session->options->time_budget_s);
    } else if (reached_hang_limit(sweep, c)) {
        row->verdict = LB_VERDICT_SKIPPED;
        lb_row_print(&row->reason,
                     "%s has hung %d times: its other cases are not run (--hang-limit)",
                     LB_IMPL_LABEL(c), session->options->hang_limit);
    } else {
        return false;
    }
    return true;
}

/* Measures one block of the case. first: its very first one. */
static enum lb_status measure_block(struct lb_sweep_run *sweep, const struct lb_case *c, bool first,
                                    struct lb_row *block, struct lb_error *err)
{
    const struct lb_session *session = sweep->session;
    const struct lb_options *options = session->options;
    const struct lb_job job = {
        .c = c,
        .seed = options->seed,
        .sampler = lb_options_sampler(options),
        .kernels = options->kernels && first,
        .loss_scale = options->loss_scale,
        .dynamic_loss_scale = options->dynamic_loss_scale,
    };
    *block = lb_row_make(c);
    if (cannot_run(sweep, c, first, block))
        return LB_OK;
    enum lb_status st =
        lb_pool_run(session->pool, lb_registry_find(session->registry, c->impl), &job, block, err);
    if (st == LB_OK && block->verdict == LB_VERDICT_TIMEOUT)
        count_hang(sweep, c);
    return st;
}

/* Measures a case once more, round 0 first, and merges the result into its row: one block, or with
 * --processes all blocks of a fresh process. A case that did not run, or failed, is not measured
 * again; one that has a block keeps it when time runs out or when other cases of its variant hang.
 * LB_INTERRUPTED; LB_FAILED when no worker can be started. */
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

/* Begins the table on stdout with the line of the machine. header: of the run, borrowed until the
 * end. */
static void begin_table(struct lb_live_table *live, json_t *header, const struct lb_case *cases,
                        size_t count)
{
    char machine[1024];
    live->left = json_object();
    live->run.header = json_incref(header);
    live->run.environments = json_pack("[O]", json_object_get(header, "environment"));
    for (size_t i = 0; i < count; i++) {
        const char *problem = LB_PROBLEM_TEXT(&cases[i]);
        json_int_t others = json_integer_value(json_object_get(live->left, problem));
        json_object_set_new(live->left, problem, json_integer(others + 1));
    }
    lb_run_machine_line(&live->run, machine, sizeof(machine));
    printf("%s\n", machine);
    fflush(stdout);
}

/* Takes the rows of the problem out of the table and prints them. */
static void print_problem(struct lb_live_table *live, const char *problem)
{
    struct lb_run shown = live->run;
    struct lb_grouped_run grouped;
    size_t waiting = 0;
    shown.count = 0;
    shown.rows = lb_needed(calloc(live->run.count, sizeof(*shown.rows)));
    for (size_t i = 0; i < live->run.count; i++) {
        struct lb_row *row = &live->run.rows[i];
        if (strcmp(LB_PROBLEM_TEXT(&row->c), problem) == 0)
            shown.rows[shown.count++] = *row;
        else
            live->run.rows[waiting++] = *row;
    }
    live->run.count = waiting;
    lb_group_run(&shown, NULL, &grouped);
    lb_table_print_problems(stdout, &grouped, live->baseline);
    fflush(stdout);
    lb_grouped_run_free(&grouped);
    for (size_t i = 0; i < shown.count; i++)
        lb_row_free(&shown.rows[i]);
    free(shown.rows);
}

/* Takes a row, which becomes empty, and prints its problem when no other case of it is left. */
static void add_to_table(struct lb_live_table *live, struct lb_row *row)
{
    const char *problem = LB_PROBLEM_TEXT(&row->c);
    live->run.rows = lb_room(live->run.rows, live->run.count, sizeof(*live->run.rows));
    live->run.rows[live->run.count++] = *row;
    *row = (struct lb_row){0};
    json_int_t others = json_integer_value(json_object_get(live->left, problem)) - 1;
    json_object_set_new(live->left, problem, json_integer(others));
    if (others <= 0)
        print_problem(live, problem);
}

/* Prints the problems that an interruption has cut short. Accepts a zeroed table. */
static void end_table(struct lb_live_table *live)
{
    while (live->run.count > 0)
        print_problem(live, LB_PROBLEM_TEXT(&live->run.rows[0].c));
}

/* ---- Recording one row ---- */

/* Adds a warning to the row of a case with a time when a limit stopped the case early. */
static void warn_of_early_stop(const struct lb_sweep_run *sweep, struct lb_row *row)
{
    const struct lb_options *options = sweep->session->options;
    const char *limit = reached_hang_limit(sweep, &row->c) ? "hang limit" : "time budget";
    bool by_process = options->processes > 1;
    int processes = by_process ? options->processes : 1;
    if (!lb_verdict_has_samples(row->verdict) ||
        row->block_count >= (size_t)processes * (size_t)options->repetitions)
        return;
    lb_row_warn(row, "the %s left it %zu of %d %s", limit,
                by_process ? row->process_count : row->block_count,
                by_process ? processes : options->repetitions, by_process ? "processes" : "blocks");
}

/* Adds a warning to the row of a case that was measured while others used its CPUs. */
static void warn_of_others(struct lb_row *row)
{
    if (lb_row_is_timed(row) && row->others_share > LB_BUSY_SHARE)
        lb_row_warn(row, "other programs used %.0f %% of its CPUs while it was measured",
                    100 * row->others_share);
}

/* --verbose: "ok           1.05 ms  cpu_ref/..." or "timeout  cpu_ref/...: the reason". */
static void say_result(const struct lb_sweep_run *sweep, const struct lb_row *row)
{
    bool timed = lb_row_is_timed(row);
    lb_progress_clear(&sweep->progress);
    fprintf(stderr, "%-11s %9s  %s%s%s\n", lb_verdict_name(row->verdict),
            timed ? LB_NS_TEXT(row->median_ns) : "", LB_CASE_TEXT(&row->c), timed ? "" : ": ",
            timed ? "" : row->reason);
}

/* Adds the warnings that concern the whole case, and appends the row to the run. The row becomes
 * empty where a table shows it. LB_IO. */
static enum lb_status record(struct lb_sweep_run *sweep, struct lb_row *row, struct lb_error *err)
{
    warn_of_early_stop(sweep, row);
    warn_of_others(row);
    if (sweep->session->options->verbose)
        say_result(sweep, row);
    lb_progress_done(&sweep->progress, lb_verdict_is_failure(row->verdict),
                     row->verdict == LB_VERDICT_SKIPPED);
    enum lb_status st = lb_run_append(&sweep->file, row, err);
    if (st == LB_OK && sweep->live.left) {
        lb_progress_clear(&sweep->progress);
        add_to_table(&sweep->live, row);
    }
    return st;
}

/* ---- Running all cases ---- */

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
        fprintf(stderr,
                "warning: other programs use at least %.0f %% of the CPUs, so times will be noisy: "
                "stop them, or measure the noisy cases again later with --resume DIR "
                "--retry noisy\n",
                100 * others);
}

/* Measures the canaries of a shard, whatever is left of the time budget; when: "start" or "end". */
static enum lb_status run_canaries(struct lb_sweep_run *sweep, const char *when,
                                   struct lb_error *err)
{
    const struct lb_session *session = sweep->session;
    enum lb_status st = LB_OK;
    for (size_t i = 0; i < sweep->canary_count && !lb_sweep_interrupted(session); i++) {
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
        LB_TRY(st);
    }
done:
    return st;
}

/* Measures the case once more and, in its last round, records it. */
static enum lb_status run_round(struct lb_sweep_run *sweep, const struct lb_case *c, int round,
                                struct lb_row *row, struct lb_error *err)
{
    bool last = round + 1 == lb_sweep_rounds(sweep->session->options);
    lb_progress_case(&sweep->progress, LB_CASE_TEXT(c));
    LB_CHECK(measure(sweep, c, round, row, err));
    if (last)
        LB_CHECK(record(sweep, row, err));
    else
        lb_progress_done(&sweep->progress, false, false);
    return LB_OK;
}

/* Runs the rounds of some cases [count, at most LB_GBENCH_MAX] in the order that Google Benchmark
 * chooses. */
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
        LB_TRY(run_round(sweep, &cases[at], rounds[at]++, &rows[at], err));
    }
done:
    for (size_t i = 0; i < count; i++)
        lb_row_free(&rows[i]);
    free(rows);
    free(order);
    return st;
}

/* Runs the cases that the plan has, between two rounds of canaries where it is a shard. An
 * interruption is no failure: the user asked for it. */
static enum lb_status run_cases(struct lb_sweep_run *sweep, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t chunk = sweep->session->options->processes > 1 ? PROCESSES_CHUNK : LB_GBENCH_MAX;
    if (sweep->count > 0)
        warn_of_busy_machine();
    LB_TRY(run_canaries(sweep, "start", err));
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

/* Runs what was planned, unless planning failed, ends the file of the run, and finishes with what
 * is derived from it. LB_IO: its file can't be written, which says how to continue. Other failures
 * once cases have run are LB_FAILED. Frees the sweep. */
static enum lb_status run_and_finish(enum lb_status planned, struct lb_sweep_run *sweep,
                                     int *exit_code, struct lb_error *err)
{
    enum lb_status st = planned;
    bool listed = sweep->live.left != NULL;
    if (planned == LB_OK) {
        st = run_cases(sweep, err);
        end_table(&sweep->live);
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
    lb_run_free(&sweep->live.run);
    json_decref(sweep->live.left);
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
    if (st == LB_OK && isatty(STDOUT_FILENO) && !session->options->benchmark_json)
        begin_table(&sweep.live, sweep.header, sweep.cases, sweep.count);
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
