/* What the kinds of line pictures show: how a row becomes a value on a line. */
#ifndef LB_PLOT_LINE_KINDS_H
#define LB_PLOT_LINE_KINDS_H

#include "plot/page.h"
#include "support/row_index.h"

enum lb_plot_unit { LB_PLOT_TIME, LB_PLOT_BYTES, LB_PLOT_RATIO };

struct lb_measure {
    const char *kind; /* of lb_plot_kinds */
    enum lb_plot_axis x;
    const char *heading; /* behind "LSTM inference, f32: " and before the axis' words */
    const char *reading; /* which way is better, and what the marks are */
    const char *columns; /* of the data file */
    const char *label;   /* of the y axis; the unit follows where there is one */
    const char *missing; /* what a run without such pictures lacks */
    enum lb_plot_unit unit;

    /* False when the row is no part of such pictures. */
    bool (*take)(const struct lb_row_index *index, const struct lb_row *row,
                 struct lb_value *value);
};

/* NULL when the kind is none of lines. */
const struct lb_measure *lb_measure_find(const char *kind);

/* Writes all pages of a kind of lines. */
enum lb_status lb_plot_lines(struct lb_plot_job *job, const char *kind, enum lb_plot_axis axis,
                             struct lb_error *err);

#endif
