/* --merge: combines the runs of several machines into one. */
#ifndef LB_MERGE_COMMAND_H
#define LB_MERGE_COMMAND_H

#include <stdio.h>

#include "cli/options.h"

/* Merges runs [count], files or folders, into the folder out. Writes to report which nodes are
 * slower or faster than the others by their canaries (the cases that every shard begins and ends
 * with), and which shards are missing. *rows: how many the result has. LB_INVALID, LB_IO, LB_OOM.
 */
enum lb_status lb_merge_runs(const char *const *runs, size_t count, const char *out, FILE *report,
                             size_t *rows, struct lb_error *err);

/* --merge: the same for options->runs and the folder options->subject, reported on stdout.
 * *exit_code: LB_EXIT_FINE, or LB_EXIT_NOTHING when the result has no row. */
enum lb_status lb_merge_command(const struct lb_options *options, int *exit_code,
                                struct lb_error *err);

#endif
