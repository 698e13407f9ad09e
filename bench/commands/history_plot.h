/* The picture of a history. */
#ifndef LB_HISTORY_PLOT_H
#define LB_HISTORY_PLOT_H

#include "record/record.h"

/* The times of one case over the runs, on one device where the runs have several. */
struct lb_history_line {
    char id[LB_ROW_ID_SIZE]; /* lb_row_print_id */
    size_t *run;       /* [count] index of each run that has a time, ascending in time; owned */
    double *median_ns; /* [count], owned */
    size_t count;
    size_t *points; /* [point_count] indices into run where a new level begins; owned */
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
