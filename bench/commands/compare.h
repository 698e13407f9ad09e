/* --compare: two runs, a verdict on each case, and an exit code. */
#ifndef LB_COMPARE_COMMAND_H
#define LB_COMPARE_COMMAND_H

#include "cli/options.h"
#include "report/compare.h"

/* Compares the run options->run with the base options->subject and prints the result in
 * options->format. With options->confirm, a second run of the new side, only slowdowns that this
 * run shows too are kept. *exit_code is the first of these that applies:
 * - LB_EXIT_REGRESSION: a case is slower or broken.
 * - LB_EXIT_NOTHING: no case has a time in both runs.
 * - LB_EXIT_INCONCLUSIVE: no case has the several processes per run that a verdict needs or, with
 *   --strict, a case is inconclusive or gone.
 * - LB_EXIT_FINE.
 * LB_IO, LB_INVALID, LB_OOM. */
enum lb_status lb_compare_command(const struct lb_options *options, int *exit_code,
                                  struct lb_error *err);

/* The same for runs that are in memory: the base, the new run, then the further runs of the base
 * and the one that confirms, where the options have them. */
enum lb_status lb_compare_print(const struct lb_run *runs, const char *base_name,
                                const char *now_name, const struct lb_options *options,
                                int *exit_code, struct lb_error *err);

#endif
