/* The outputs of a run, all written from its records: table, other formats, pictures. */
#ifndef LB_RUN_OUTPUTS_H
#define LB_RUN_OUTPUTS_H

#include "cli/options.h"
#include "record/run_file.h"

/* Prints the table on stdout (Google Benchmark JSON with --benchmark_format=json), writes the other
 * formats and the pictures into the folder, and lists on stderr where everything is. Without
 * gnuplot there are no pictures, which is reported and is no failure. baseline: NULL lets the
 * program choose. When a format can't be written, the table is printed all the same, and the
 * failure is returned afterwards. */
enum lb_status lb_write_run_outputs(const struct lb_run *run, const char *folder,
                                    const struct lb_options *options, const char *baseline,
                                    struct lb_error *err);

/* Checks before anything runs that the file of --benchmark_out can be written, and leaves no trace
 * of the check. LB_INVALID with the reason. */
enum lb_status lb_check_run_outputs(const struct lb_options *options, struct lb_error *err);

/* --export: prints the run options->run in the format options->subject on stdout. LB_INVALID lists
 * the formats. */
enum lb_status lb_export_print(const struct lb_options *options, struct lb_error *err);

/* --plot: draws one kind of picture into the run's folder. LB_INVALID lists the kinds. */
enum lb_status lb_plot_one(const struct lb_options *options, struct lb_error *err);

#endif
