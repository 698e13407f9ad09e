/* --merge: combines the runs of several machines into one. */
#ifndef LB_MERGE_COMMAND_H
#define LB_MERGE_COMMAND_H

#include <stdio.h>

#include "cli/options.h"

/* Merges runs [count], files or folders, into the folder out. Writes to report which nodes are
 * slower or faster than the others by their canaries (the cases that every shard begins and ends
 * with), and what is missing. *exit_code: LB_EXIT_INCOMPLETE when the result, which is written all
 * the same, lacks a part of what was planned; LB_EXIT_NOTHING when it has no row; LB_EXIT_FINE.
 * LB_INVALID, LB_IO, LB_OOM. */
enum lb_status lb_merge_runs(const char *const *runs, size_t count, const char *out, FILE *report,
                             int *exit_code, struct lb_error *err);

/* --merge: the same for options->runs and the folder options->subject, reported on stdout. */
enum lb_status lb_merge_command(const struct lb_options *options, int *exit_code,
                                struct lb_error *err);

#endif
