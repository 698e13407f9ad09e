/* What is derived from the records of a run: table, pictures, other formats. */
#ifndef LB_DERIVED_OUTPUTS_H
#define LB_DERIVED_OUTPUTS_H

#include "cli/options.h"
#include "record/run_file.h"

/* Prints the table on stdout (Google Benchmark JSON with --benchmark_format=json), draws the
 * pictures into the folder, writes the file of --benchmark_out, and lists on stderr where
 * everything is. Without gnuplot there are no pictures, which is reported and is no failure.
 * listed: the problems were printed while they ran, and of the table only the summary is. */
enum lb_status lb_derive_outputs(const struct lb_run *run, const char *folder,
                                 const struct lb_options *options, bool listed,
                                 struct lb_error *err);

/* Checks before anything runs that the file of --benchmark_out can be written, and leaves no trace
 * of the check. LB_INVALID with the reason. */
enum lb_status lb_check_derived_outputs(const struct lb_options *options, struct lb_error *err);

/* --export: prints the run options->words[1] in the format options->words[0] on stdout. Several
 * formats with commas between are written into the run's folder instead, each into the file that
 * results/README.md names. LB_INVALID lists the formats. LB_IO. */
enum lb_status lb_export_command(const struct lb_options *options, struct lb_error *err);

/* --plot: draws one kind of picture, or none (LB_EXIT_NOTHING). LB_INVALID lists the kinds. */
enum lb_status lb_plot_one(const struct lb_options *options, int *exit_code, struct lb_error *err);

#endif
