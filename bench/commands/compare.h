/* --compare: two runs, a verdict and an exit code. */
#ifndef LB_COMPARE_COMMAND_H
#define LB_COMPARE_COMMAND_H

#include "cli/options.h"
#include "report/compare.h"

/* Compares the runs options->subject and options->run, and where there is one holds what is slower
 * against a second sweep, options->confirm; prints the outcome as options->format says.
 * *exit_code: LB_EXIT_REGRESSION, LB_EXIT_INCONCLUSIVE under --strict, LB_EXIT_NOTHING when no case
 * has a time in both. */
enum lb_status lb_compare_command(const struct lb_options *options, int *exit_code,
                                  struct lb_error *err);

/* The same for runs that are read already. */
enum lb_status lb_compare_print(const struct lb_run *base, const struct lb_run *now,
                                const char *base_name, const char *now_name,
                                const struct lb_options *options, int *exit_code,
                                struct lb_error *err);

#endif
