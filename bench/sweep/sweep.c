/* The sweep: plans cases, runs each of them, records every outcome, and finishes the run. */
#include "sweep/sweep.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/cpu_load.h"
#include "support/terminal.h"
#include "sweep/gbench.h"
#include "sweep/sweep_steps.h"

enum {
    CHUNK = 256,         /* cases given to Google Benchmark at a time: registration is quadratic */
    PROCESSES_CHUNK = 32 /* with --processes: an interruption loses what a chunk has measured */
};

bool lb_sweep_interrupted(const struct lb_session *session)
{
    return (session->stop && *session->stop) || lb_reader_left(stderr);
}

int lb_sweep_rounds(const struct lb_settings *settings)
{
    return settings->processes > 1 ? settings->processes : settings->repetitions;
}

void lb_sweep_free(struct lb_sweep_run *sweep)
{
    lb_run_close(&sweep->file);
    lb_settings_free(&sweep->settings);
    json_decref(sweep->hangs);
    free(sweep->cases);
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
        fprintf(stderr,
                "warning: other programs use at least %.0f %% of the CPUs, so times will be noisy: "
                "stop them, or measure the noisy cases again later with --resume DIR "
                "--retry noisy\n",
                100 * others);
}

/* Measures the canaries of a shard; when: "start" or "end". */
static enum lb_status run_canaries(struct lb_sweep_run *sweep, const char *when,
                                   struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (size_t i = 0; i < sweep->canary_count && !lb_sweep_interrupted(sweep->session); i++) {
        struct lb_row row = {0};
        st = lb_sweep_measure_canary(sweep, &sweep->canaries[i], &row, err);
        if (st == LB_OK)
            st = lb_sweep_record_canary(sweep, &row, when, err);
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
    bool last = round + 1 == lb_sweep_rounds(&sweep->settings);
    char id[LB_CASE_ID_SIZE];
    enum lb_status st = LB_OK;
    lb_case_print(c, id);
    lb_progress_case(&sweep->progress, id);
    LB_TRY(lb_sweep_measure(sweep, c, round, row, err));
    if (last)
        LB_TRY(lb_sweep_record(sweep, row, err));
    lb_progress_done(&sweep->progress, last && lb_verdict_is_failure(row->verdict),
                     last && row->verdict == LB_VERDICT_SKIPPED);
done:
    return st;
}

/* Runs the rounds of some cases [count, at most CHUNK] in the order that Google Benchmark chooses.
 */
static enum lb_status run_chunk(struct lb_sweep_run *sweep, const struct lb_case *cases,
                                size_t count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char ids[CHUNK][LB_CASE_ID_SIZE];
    const char *names[CHUNK] = {NULL};
    int rounds[CHUNK] = {0};
    size_t *order = NULL, length = 0;
    struct lb_row *rows = calloc(CHUNK, sizeof(*rows));
    if (!rows)
        return lb_fail(err, LB_OOM, "out of memory for %d rows", CHUNK);
    for (size_t i = 0; i < count; i++) {
        lb_case_print(&cases[i], ids[i]);
        names[i] = ids[i];
    }
    LB_TRY(lb_gbench_order(names, count, &order, &length, err));
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
    size_t chunk = sweep->settings.processes > 1 ? PROCESSES_CHUNK : CHUNK;
    if (sweep->count > 0)
        warn_of_busy_machine();
    LB_TRY(run_canaries(sweep, "start", err));
    sweep->start_ns = lb_now_ns();
    lb_progress_start(&sweep->progress, sweep->count * (size_t)lb_sweep_rounds(&sweep->settings));
    sweep->progress.quiet = sweep->session->options->quiet;
    for (size_t i = 0; i < sweep->count && !lb_sweep_interrupted(sweep->session); i += chunk) {
        size_t left = sweep->count - i;
        LB_TRY(run_chunk(sweep, &sweep->cases[i], left < chunk ? left : chunk, err));
    }
    LB_TRY(run_canaries(sweep, "end", err));
done:
    lb_progress_end(&sweep->progress);
    return st == LB_INTERRUPTED ? LB_OK : st;
}

/* Runs what was planned, ends the file of the run, and finishes with what is derived from it.
 * Failures from here on are LB_FAILED, because cases have run. */
static enum lb_status run_and_finish(struct lb_sweep_run *sweep, int *exit_code,
                                     struct lb_error *err)
{
    enum lb_status st = run_cases(sweep, err);
    bool stopped = st != LB_OK || lb_sweep_interrupted(sweep->session);
    /* Even a failed sweep ends its file. What is reported then is why the sweep failed. */
    enum lb_status ended = lb_run_finish(&sweep->file, stopped, st == LB_OK ? err : NULL);
    lb_run_close(&sweep->file);
    if (st == LB_OK)
        st = ended;
    if (st == LB_OK)
        st = lb_sweep_finish(sweep->session, sweep->folder, exit_code, err);
    return st == LB_OK || st == LB_INTERRUPTED ? st : LB_FAILED;
}

enum lb_status lb_sweep(const struct lb_session *session, const struct lb_plan *plan,
                        int *exit_code, struct lb_error *err)
{
    struct lb_sweep_run sweep = {.session = session};
    enum lb_status st = lb_sweep_begin(&sweep, plan, err);
    if (st == LB_OK)
        st = run_and_finish(&sweep, exit_code, err);
    lb_sweep_free(&sweep);
    return st;
}

enum lb_status lb_sweep_resume(struct lb_session *session, int *exit_code, struct lb_error *err)
{
    struct lb_sweep_run sweep = {.session = session};
    enum lb_status st = lb_sweep_continue(&sweep, session, err);
    if (st == LB_OK)
        st = run_and_finish(&sweep, exit_code, err);
    lb_sweep_free(&sweep);
    return st;
}
