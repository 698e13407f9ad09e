/* The picture of a history. */
#ifndef LB_HISTORY_PLOT_H
#define LB_HISTORY_PLOT_H

#include "model/case.h"

/* One case over the runs that have a time of it. */
struct lb_history_line {
    char id[LB_CASE_ID_SIZE];
    size_t *run;       /* [count] place of each in the order of time */
    double *median_ns; /* [count] */
    size_t count;
    size_t *points; /* [point_count] places in run where a new level begins */
    size_t point_count;
};

#define LB_HISTORY_PANELS 12 /* cases a picture */
#define LB_HISTORY_PAGES  20 /* pictures; cases beyond are left out, and that is said */

/* Writes folder/plots/history.dat and .gp, history-2.dat and .gp, ..., and draws each as .svg and
 * .png with gnuplot: a line a case over the number of the run, change points as vertical strokes;
 * cases with changes first. Errors as of lb_plot. */
enum lb_status lb_history_draw(const char *folder, const struct lb_history_line *lines,
                               size_t line_count, struct lb_error *err);

#endif
