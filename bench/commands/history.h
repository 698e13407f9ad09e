/* --history: many runs of one environment, and where their times changed for good. */
#ifndef LB_HISTORY_H
#define LB_HISTORY_H

#include "cli/options.h"

/* Reads every run in the folder options->subject (sub-folders with a run.jsonl, and files that end
 * in .jsonl), orders them by start, leaves out those of another environment than the latest, and
 * prints a line a case with its change points, then each change with its commit; draws the same in
 * the folder's plots/. A run that can't be read is named and passed over. *exit_code is
 * LB_EXIT_NOTHING when fewer than six runs are left, the fewest that can show a change. */
enum lb_status lb_history(const struct lb_options *options, int *exit_code, struct lb_error *err);

#endif
