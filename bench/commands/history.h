/* --history: many runs of one environment, and the change points of their times. */
#ifndef LB_HISTORY_H
#define LB_HISTORY_H

#include "cli/options.h"

/* Reads every run in the folder options->subject (sub-folders with a run.jsonl, and files that end
 * in .jsonl), sorts them by start time and leaves out those of another environment than the latest.
 * Rows of one case that several nodes measured count as one. Prints one line per case with its
 * change points, then each change with its commit, and draws the same in the folder's plots/. A run
 * that can't be read is named and skipped. *exit_code is LB_EXIT_NOTHING when fewer than six runs
 * are left: the fewest that can show a change. */
enum lb_status lb_history(const struct lb_options *options, int *exit_code, struct lb_error *err);

#endif
