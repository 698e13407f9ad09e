/* --merge: combines the runs of several machines into one. */
#ifndef LB_MERGE_COMMAND_H
#define LB_MERGE_COMMAND_H

#include "cli/options.h"

/* Merges options->runs into the folder options->subject. Prints which nodes are slower or faster
 * than the others by their canaries (the cases that every shard begins and ends with), and which
 * shards are missing. *exit_code: LB_EXIT_FINE, or LB_EXIT_NOTHING when the result has no row.
 * LB_INVALID, LB_IO, LB_OOM. */
enum lb_status lb_merge_command(const struct lb_options *options, int *exit_code,
                                struct lb_error *err);

#endif
