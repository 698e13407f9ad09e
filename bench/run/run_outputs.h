/* Everything that is derived from a run's records: table, other formats, pictures. */
#ifndef LB_RUN_OUTPUTS_H
#define LB_RUN_OUTPUTS_H

#include "cli/options.h"
#include "record/run_file.h"

/* Prints the table (or Google Benchmark JSON, when that was asked for) on stdout, writes the other
 * formats and the pictures into the folder, and says on stderr where everything is. Pictures that
 * can't be drawn (no gnuplot) are no failure: it says so. baseline may be NULL: chosen. */
enum lb_status lb_write_run_outputs(const struct lb_run *run, const char *folder,
                                    const struct lb_options *options, const char *baseline,
                                    struct lb_error *err);

/* Whether the file of --benchmark_out can be written, found before anything runs and without a
 * trace: LB_INVALID with the reason. */
enum lb_status lb_check_run_outputs(const struct lb_options *options, struct lb_error *err);

/* --export: the run in the named format on stdout. LB_INVALID lists the formats. */
enum lb_status lb_export_print(const char *format, const char *run, struct lb_error *err);

/* --plot: one kind of picture, into the run's folder. LB_INVALID lists the kinds. */
enum lb_status lb_plot_one(const struct lb_options *options, struct lb_error *err);

#endif
