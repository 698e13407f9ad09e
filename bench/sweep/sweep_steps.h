/* The steps of a sweep, one file each: plan, run, finish. sweep.c runs the cases, and calls the
 * others. */
#ifndef LB_SWEEP_STEPS_H
#define LB_SWEEP_STEPS_H

#include <jansson.h>

#include "cli/options.h"
#include "cli/plan.h"
#include "model/case.h"
#include "record/run_file.h"
#include "report/canaries.h"
#include "run/session.h"
#include "support/progress.h"

/* The table of a sweep on a terminal. Zero it before use; zeroed, it shows nothing. */
struct lb_live_table {
    json_t *left;      /* object: from a problem's text to how many of its cases have no row yet;
                          NULL: nothing is shown */
    struct lb_run run; /* its header, and the rows whose problems have cases left */
    char baseline[2 * LB_NAME_SIZE]; /* that the table's latest heading names */
};

/* A sweep that runs. Zero it before the first step. */
struct lb_sweep_run {
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
    struct lb_live_table live; /* shown on a terminal */
    json_t *hangs; /* object: how often cases of "impl:variant" have hung; NULL: none has; owned */
};

/* Whether the user asked the sweep to stop, or nobody reads stderr any more. */
bool lb_sweep_interrupted(const struct lb_session *session);

/* How often each case is measured: once per process with --processes, else once per block. */
int lb_sweep_rounds(const struct lb_options *options);

/* ---- sweep_plan.c: what is run, with which settings ---- */

/* Plans a new run, and creates its folder and the header of its file. Errors are those of lb_sweep.
 */
enum lb_status lb_sweep_begin(struct lb_sweep_run *sweep, const struct lb_plan *plan,
                              struct lb_error *err);

/* Plans the rest of the run in the folder options->words[0], as lb_sweep_resume says. Its settings
 * become those of the options. */
enum lb_status lb_sweep_continue(struct lb_sweep_run *sweep, struct lb_session *session,
                                 struct lb_options *options, struct lb_error *err);

/* ---- sweep_finish.c: what a run ends with ---- */

/* Whether others used so much of its CPUs, or the machine was so slow, that the case is worth
 * measuring again. */
bool lb_row_is_noisy(const struct lb_row *row);

/* Says why a run is to be resumed, and the command that does it: what only a command line may name,
 * plug-ins and the file to tune into, is given again. more: further words of the command. */
void lb_sweep_say_resume(const struct lb_options *options, const char *folder, const char *why,
                         const char *more);

/* Reads the finished run in the folder, writes everything that is derived from it, and says which
 * cases were noisy and how an interrupted run is continued. listed: as in lb_derive_outputs.
 * *exit_code: the program's. */
enum lb_status lb_sweep_finish(const struct lb_session *session, const char *folder, bool listed,
                               int *exit_code, struct lb_error *err);

/* The settings of a sweep, kept in the header of its run so that --resume continues with them. */

/* A new object: environment and command line of this session, for lb_run_resume. */
json_t *lb_settings_of_session(const struct lb_options *options, json_t *libraries);

/* The same with the settings and the text of each case, for lb_run_create. The caller releases
 * *header, also after a failure. LB_INVALID: a path is not UTF-8. */
enum lb_status lb_settings_to_header(const struct lb_options *options,
                                     const struct lb_sampler_options *sampler,
                                     const struct lb_case *cases, size_t count, json_t *libraries,
                                     json_t **header, struct lb_error *err);

/* Sets the settings with which the run began, and gives its files to this process
 * (lb_give_files). Limits, device and tuning stay those of the command line where it gives them.
 * New strings of the options lie in the header. The caller frees *cases [*count], also after a
 * failure. LB_INVALID names what is missing. */
enum lb_status lb_settings_from_header(const json_t *header, struct lb_options *options,
                                       struct lb_case **cases, size_t *count, struct lb_error *err);

#endif
