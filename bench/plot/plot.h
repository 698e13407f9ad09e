/* Pictures of a run, drawn by gnuplot.
 *
 * Every page is four files: NAME.dat holds numbers from the records, NAME.gp draws them
 * (`gnuplot NAME.gp` draws them again), and NAME.svg and NAME.png are the pictures. */
#ifndef LB_PLOT_H
#define LB_PLOT_H

#include "plot/job.h"

/* All kinds, as in --plot KIND, and the first part of their files' names; the last is NULL. */
extern const char *const lb_plot_kinds[];

/* Checks a list of kinds as lb_plot_options.kinds takes it, the argument of --plots or --plot. flag
 * is the option's name for the message. LB_INVALID lists the kinds. */
enum lb_status lb_plot_check_kinds(const char *flag, const char *kinds, struct lb_error *err);

/* Draws every page that has something to show: an axis with at least two values. A run without such
 * a page, and the kinds "none", are no error: report->notes says why there are none. The caller
 * frees options->pages. LB_INVALID: there is no such kind. LB_ABSENT: gnuplot is not installed; the
 * .gp and .dat files are written. LB_IO: a file can't be read or written. LB_FAILED,
 * LB_INTERRUPTED: see gnuplot.h. */
enum lb_status lb_plot(const struct lb_run *run, const struct lb_plot_options *options,
                       struct lb_plot_report *report, struct lb_error *err);

#endif
