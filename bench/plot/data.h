/* The rows of a run in the order in which pictures need them: by page, panel, line and place. */
#ifndef LB_PLOT_DATA_H
#define LB_PLOT_DATA_H

#include "record/run_file.h"

enum lb_plot_axis { LB_PLOT_AXIS_T, LB_PLOT_AXIS_B, LB_PLOT_AXIS_H };

/* A line in the pictures: an implementation's variant at one launch form and thread count. Colour,
 * mark and dash are numbers from 1 into the arrays of plots/style.gp. */
struct lb_series {
    char name[3 * LB_NAME_SIZE]; /* "cpu_simd", "cudnn:persist_static", "cpu_simd/th2" */
    const struct lb_case *example;
    int color, mark, dash;
};

struct lb_series_list {
    struct lb_series *items; /* [count], in order of their names */
    size_t count;
};

/* Every series that the run has a row of. The look follows from all names of the run, so that it is
 * the same in all pictures. LB_OOM. */
enum lb_status lb_series_collect(const struct lb_run *run, struct lb_series_list *list,
                                 struct lb_error *err);
void lb_series_free(struct lb_series_list *list); /* accepts a zeroed one */

/* The number of the row's series. */
size_t lb_series_of(const struct lb_series_list *list, const struct lb_row *row);

/* The series that a baseline names: of that very name, else the first of that implementation and
 * variant; list->count when there is none. */
size_t lb_series_baseline(const struct lb_series_list *list, const char *baseline);

#define LB_PAGE_NAME_SIZE 96

/* What a line shows of a row: value / divisor, and its interval. A value of NaN is a gap. */
struct lb_value {
    double value, lo, hi;
    double divisor; /* of all four */
    double floor;   /* the least that the machine allows; NaN: not known */
};

/* A row and its place in the pictures of one kind. */
struct lb_point {
    const struct lb_row *row;
    struct lb_value shown;        /* in line pictures */
    char page[LB_PAGE_NAME_SIZE]; /* what all of a page share: "f32_infer", "f32_train_L2" */
    int64_t input;                /* I where it is not H, else 0 */
    int64_t panel[2];             /* what all of a panel share besides input */
    size_t series;
    int64_t x, y; /* y is 0 in line pictures */
};

int64_t lb_plot_axis_value(const struct lb_problem *problem, enum lb_plot_axis axis);
const char *lb_plot_axis_letter(enum lb_plot_axis axis); /* "T", "B", "H" */
const char *lb_plot_axis_words(enum lb_plot_axis axis);  /* "sequence length T", ... */

/* The part of a page's name that follows from what its rows share. */
void lb_page_name(const struct lb_case *c, char page[LB_PAGE_NAME_SIZE]);

/* The order of pages: f32, f16, bf16, f64, then by name. */
int lb_page_compare(const char *a, const char *b);

/* "LSTM inference, f32": the heading of such a page, up to what its kind adds. */
void lb_page_heading(const struct lb_case *c, char *heading, size_t size);

/* Sorts by page, panel, input, series, y, x. */
void lb_points_sort(struct lb_point *points, size_t count);

/* How far the points from first on share page, or page, panel and input, or also the series. */
enum lb_share { LB_SHARE_PAGE, LB_SHARE_PANEL, LB_SHARE_SERIES };
size_t lb_points_end(const struct lb_point *points, size_t count, size_t first,
                     enum lb_share share);

/* Sorts values and drops the repeated: returns how many are left. */
size_t lb_distinct(int64_t *values, size_t count);

/* Thins ascending values to at most limit, evenly, with both ends kept: returns how many are left.
 */
size_t lb_thin(int64_t *values, size_t count, size_t limit);

bool lb_contains(const int64_t *values, size_t count, int64_t value); /* values ascend */

#endif
