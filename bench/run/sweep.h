/* The sweep: runs a plan case by case, keeps every outcome, derives files and pictures. */
#ifndef LB_SWEEP_H
#define LB_SWEEP_H

#include "cli/plan.h"
#include "record/run_file.h"
#include "run/session.h"

/* Runs the plan into a new folder. *exit_code is the program's; an error is one that was found
 * before anything ran (LB_INVALID) or that ended the sweep. */
enum lb_status lb_sweep(const struct lb_session *session, const struct lb_plan *plan,
                        int *exit_code, struct lb_error *err);

/* Leaves the plan the cases that --benchmark_filter lets pass. LB_INVALID: an argument that Google
 * Benchmark does not take, or a filter that no case passes. */
enum lb_status lb_sweep_filter(const struct lb_options *options, struct lb_plan *plan,
                               struct lb_error *err);

/* The folder of a new run: out, or where that is NULL bench-lstm-runs/2026-01-31T12-00-00Z, with a
 * number behind it when that is taken: made here, so that two runs never share one. */
enum lb_status lb_name_folder(const char *out, char *folder, size_t size, struct lb_error *err);

/* Goes on with the run in the folder options->subject: its own cases and settings, those only that
 * have no row or one that says "skipped". The file is written to only once all that is known to be
 * fine. */
enum lb_status lb_sweep_resume(struct lb_session *session, int *exit_code, struct lb_error *err);

#endif
