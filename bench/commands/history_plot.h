/* The picture of a history. */
#ifndef LB_HISTORY_PLOT_H
#define LB_HISTORY_PLOT_H

#include "model/case.h"

/* The times of one case over the runs. */
struct lb_history_line {
    char id[LB_CASE_ID_SIZE];
    size_t *run;       /* [count] index of each run, ascending in time */
    double *median_ns; /* [count] */
    size_t count;
    size_t *points; /* [point_count] indices into run where a new level begins */
    size_t point_count;
};

#define LB_HISTORY_PANELS 12 /* cases per picture */
#define LB_HISTORY_PAGES  20 /* pictures; more cases are left out, and a message says so */

/* Writes folder/plots/history.dat and .gp, history-2.dat and .gp, ..., and draws each as .svg and
 * .png: one panel per case over the number of the run, with change points as vertical strokes;
 * cases with changes come first. Errors as of lb_plot. */
enum lb_status lb_history_draw(const char *folder, const struct lb_history_line *lines,
                               size_t line_count, struct lb_error *err);

#endif
