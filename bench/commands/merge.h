/* --merge: runs of several machines into one. */
#ifndef LB_MERGE_COMMAND_H
#define LB_MERGE_COMMAND_H

#include "cli/options.h"

/* Merges options->runs into the folder options->subject, names nodes that are off by their canaries
 * and shards that are missing. *exit_code: the program's. LB_INVALID, LB_IO, LB_OOM. */
enum lb_status lb_merge_command(const struct lb_options *options, int *exit_code,
                                struct lb_error *err);

#endif
