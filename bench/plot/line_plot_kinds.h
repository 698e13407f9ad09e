/* The table of line pictures: how a row of the run becomes a value on a line. */
#ifndef LB_PLOT_LINE_KINDS_H
#define LB_PLOT_LINE_KINDS_H

#include "plot/plot_data.h"
#include "support/row_index.h"

enum lb_plot_unit { LB_PLOT_TIME, LB_PLOT_BYTES, LB_PLOT_RATIO };

struct lb_measure {
    const char *kind; /* one of lb_plot_kinds */
    enum lb_plot_axis x;
    const char *heading; /* between "LSTM inference, f32: " and the name of the axis */
    const char *reading; /* which direction is better, and what the marks are */
    const char *columns; /* of the data file, behind the first */
    const char *label;   /* of the y axis; a unit follows where there is one */
    const char *missing; /* what a run lacks when it has no such page */
    enum lb_plot_unit unit;

    /* False when the row takes no part in such pictures. */
    bool (*take)(const struct lb_row_index *index, const struct lb_row *row,
                 struct lb_value *value);
};

/* NULL when the kind draws no lines. */
const struct lb_measure *lb_measure_find(const char *kind);

#endif
