/* The functions that draw each kind of picture; the table in plot.c says which kind calls which. */
#ifndef LB_PLOT_KINDS_H
#define LB_PLOT_KINDS_H

#include "plot/job.h"

/* Each writes the .dat and .gp files of all pages of its kind and adds them to the job. A kind that
 * has nothing to show adds a note that says why. LB_IO, LB_OOM. */

/* Speed-up over the baseline as heat maps: hidden size across, the axis down. */
enum lb_status lb_plot_speedup(struct lb_plot_job *job, const char *kind, enum lb_plot_axis axis,
                               struct lb_error *err);

/* A row of the table in line_kinds.c over the axis. */
enum lb_status lb_plot_lines(struct lb_plot_job *job, const char *kind, enum lb_plot_axis axis,
                             struct lb_error *err);

/* Speed over error of all precisions; the axis has no effect. */
enum lb_status lb_plot_speed_error(struct lb_plot_job *job, const char *kind,
                                   enum lb_plot_axis axis, struct lb_error *err);

/* Rate over arithmetic intensity; the axis has no effect. */
enum lb_status lb_plot_roofline(struct lb_plot_job *job, const char *kind, enum lb_plot_axis axis,
                                struct lb_error *err);

#endif
