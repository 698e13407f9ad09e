/* The sweep: runs a plan case by case, records every outcome, and writes the outputs of the run. */
#ifndef LB_SWEEP_H
#define LB_SWEEP_H

#include "run/worker.h"

/* Runs the plan, which lb_sweep_filter has seen, and records it in a new folder. *exit_code: the
 * program's. LB_INVALID: an error that was found before anything ran; any other error ended the
 * sweep. */
enum lb_status lb_sweep(const struct lb_session *session, const struct lb_plan *plan,
                        int *exit_code, struct lb_error *err);

/* Keeps the cases of the plan that --benchmark_filter matches. LB_INVALID: Google Benchmark refuses
 * an argument, or the filter matches no case. */
enum lb_status lb_sweep_filter(const struct lb_options *options, struct lb_plan *plan,
                               struct lb_error *err);

/* The folder of a new run: out, or when that is NULL bench-lstm-runs/2026-01-31T12-00-00Z, with a
 * number appended when that exists, which is created so that two runs never share one. */
enum lb_status lb_name_folder(const char *out, char *folder, size_t size, struct lb_error *err);

/* Continues the run in the folder options->words[0] with the run's own settings. It runs the cases
 * that have no row, and those whose row has the verdict "skipped" or is one that --retry or
 * --retry noisy names. From the record it takes only data to read: no plug-ins, and no files to
 * write. It writes to the run's file only after everything has been checked. */
enum lb_status lb_sweep_resume(struct lb_session *session, int *exit_code, struct lb_error *err);

/* Reads the finished run in the folder, writes everything that is derived from it, and says which
 * cases were noisy and how an interrupted run is continued. listed: the problems were printed while
 * they ran, and of the table only the summary is. */
enum lb_status lb_sweep_finish(const struct lb_session *session, const char *folder, bool listed,
                               int *exit_code, struct lb_error *err);

/* Whether the user asked the sweep to stop, or nobody reads stderr any more. */
bool lb_sweep_interrupted(const struct lb_session *session);

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

/* --devices: one process of this program per GPU of this machine sweeps a shard of the cases on
 * CPUs of its own. The runs lie in DIR/devices, in folders called by the number of their GPU, and
 * are merged into DIR/run.jsonl.
 *
 * With --sweep it sweeps on the GPUs of options->devices; with --resume it continues every
 * unfinished run in options->words[0], and merges all again. *exit_code is also 1 when one of the
 * processes failed. LB_INVALID: one of the GPUs can't be used. Other errors are those of lb_sweep.
 */
enum lb_status lb_devices_sweep(struct lb_session *session, int *exit_code, struct lb_error *err);

/* Whether the folder, or that of the file run.jsonl, holds such a sweep. */
bool lb_is_devices_run(const char *name);

/* --merge: merges runs [count] of several machines, files or folders, into the folder out. Writes
 * to report which nodes are slower or faster than the others by their canaries (the cases that
 * every shard begins and ends with), and what is missing. *exit_code: LB_EXIT_INCOMPLETE when the
 * result, which is written all the same, lacks a part of what was planned; LB_EXIT_NOTHING when it
 * has no row; LB_EXIT_FINE. LB_INVALID, LB_IO. */
enum lb_status lb_merge_runs(const char *const *runs, size_t count, const char *out, FILE *report,
                             int *exit_code, struct lb_error *err);

#endif
