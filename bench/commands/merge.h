/* --merge: combines the runs of several machines into one. */
#ifndef LB_MERGE_COMMAND_H
#define LB_MERGE_COMMAND_H

#include "cli/options.h"

/* Merges options->runs into the folder options->subject, and prints which nodes are off by their
 * canaries and which shards are missing. *exit_code: the exit code of the program. LB_INVALID,
 * LB_IO, LB_OOM. */
enum lb_status lb_merge_command(const struct lb_options *options, int *exit_code,
                                struct lb_error *err);

#endif
