/* The steps of a sweep, one file each: plan, measure, record, finish. sweep.c calls them in order.
 */
#ifndef LB_SWEEP_STEPS_H
#define LB_SWEEP_STEPS_H

#include "cli/plan.h"
#include "record/run_file.h"
#include "report/canaries.h"
#include "run/session.h"
#include "support/progress.h"
#include "sweep/run_settings.h"

/* A sweep that runs. Zero it before the first step. */
struct lb_sweep_run {
    const struct lb_session *session;
    struct lb_settings settings;
    char folder[4096];
    struct lb_run_file file;
    struct lb_case *cases; /* [count] still to run; owned */
    size_t count;
    struct lb_case canaries[LB_CANARY_COUNT]; /* [canary_count] of a shard */
    size_t canary_count;
    double start_ns; /* when the first case began */
    struct lb_progress progress;
    json_t *hangs; /* object: how often cases of "impl:variant" have hung; NULL: none has; owned */
};

void lb_sweep_free(struct lb_sweep_run *sweep);

/* Whether the user asked the sweep to stop, or nobody reads stderr any more. */
bool lb_sweep_interrupted(const struct lb_session *session);

/* How often each case is measured: once per process with --processes, else once per block. */
int lb_sweep_rounds(const struct lb_settings *settings);

/* ---- sweep_plan.c: what is run, with which settings ---- */

/* Plans a new run, and creates its folder and the header of its file. Errors are those of lb_sweep.
 */
enum lb_status lb_sweep_begin(struct lb_sweep_run *sweep, const struct lb_plan *plan,
                              struct lb_error *err);

/* Plans the rest of the run in the folder options->subject, as lb_sweep_resume says. */
enum lb_status lb_sweep_continue(struct lb_sweep_run *sweep, struct lb_session *session,
                                 struct lb_error *err);

/* ---- sweep_measure.c: one case in a worker ---- */

/* Measures a case once more, round 0 first, and merges the result into its row: one block, or with
 * --processes all blocks of a fresh process. A case that did not run, or failed, is not measured
 * again; one that has a block keeps it when time runs out or when other cases of its variant hang.
 * LB_INTERRUPTED; LB_FAILED when no worker can be started; LB_OOM. */
enum lb_status lb_sweep_measure(struct lb_sweep_run *sweep, const struct lb_case *c, int round,
                                struct lb_row *row, struct lb_error *err);

/* Measures a canary, whatever is left of the time budget. */
enum lb_status lb_sweep_measure_canary(struct lb_sweep_run *sweep, const struct lb_case *c,
                                       struct lb_row *row, struct lb_error *err);

/* Whether so many cases of the variant have hung that no more of them are run. */
bool lb_sweep_reached_hang_limit(const struct lb_sweep_run *sweep, const struct lb_case *c);

/* ---- sweep_record.c: one row of the run ---- */

/* Adds the warnings that concern the whole case, and appends the row to the run. LB_IO, LB_OOM. */
enum lb_status lb_sweep_record(struct lb_sweep_run *sweep, struct lb_row *row,
                               struct lb_error *err);

/* Appends the row of a canary; when: "start" or "end". LB_IO, LB_OOM. */
enum lb_status lb_sweep_record_canary(struct lb_sweep_run *sweep, struct lb_row *row,
                                      const char *when, struct lb_error *err);

/* Whether others used so much of its CPUs, or the machine was so slow, that the case is worth
 * measuring again. */
bool lb_row_is_noisy(const struct lb_row *row);

/* ---- sweep_finish.c: what a run ends with ---- */

/* Reads the finished run in the folder, writes everything that is derived from it, and says which
 * cases were noisy and how an interrupted run is continued. *exit_code: the program's. */
enum lb_status lb_sweep_finish(const struct lb_session *session, const char *folder, int *exit_code,
                               struct lb_error *err);

#endif
