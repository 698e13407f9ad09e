/* The steps of a sweep: sweep_plan.c, sweep.c (which runs the cases) and sweep_finish.c. */
#ifndef LB_SWEEP_STEPS_H
#define LB_SWEEP_STEPS_H

#include "report/canaries.h"
#include "run/worker.h"
#include "support/texts.h"

/* A sweep that runs. */
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
    json_t *hangs; /* object: how often cases of "impl:variant" have hung */

    /* The table on a terminal. */
    json_t *left;        /* object: from a problem's text to how many of its cases have no row yet;
                            NULL: nothing is shown */
    struct lb_run table; /* the run's header, and the rows whose problems have cases left */
    char baseline[2 * LB_NAME_SIZE]; /* that the table's latest heading names */
};

/* How often each case is measured: once per process with --processes, else once per block. */
int lb_sweep_rounds(const struct lb_options *options);

/* Plans a new run, and creates its folder and the header of its file. Errors are those of lb_sweep.
 */
enum lb_status lb_sweep_begin(struct lb_sweep_run *sweep, const struct lb_plan *plan,
                              struct lb_error *err);

/* Plans the rest of the run in the folder options->words[0], as lb_sweep_resume says. Its settings
 * become those of the options. */
enum lb_status lb_sweep_continue(struct lb_sweep_run *sweep, struct lb_session *session,
                                 struct lb_options *options, struct lb_error *err);

/* Whether others used so much of its CPUs, or the machine was so slow, that the case is worth
 * measuring again. */
bool lb_row_is_noisy(const struct lb_row *row);

/* Says the command that resumes the run; what only a command line may name, plug-ins and the file
 * to tune into, is given again. more: further words. */
void lb_sweep_say_resume(const struct lb_options *options, const char *folder, const char *why,
                         const char *more);

#endif
