/* The rows of a run as pictures need them: named series, and points sorted by page, panel, series
 * and size. */
#ifndef LB_PLOT_DATA_H
#define LB_PLOT_DATA_H

#include "record/run_file.h"

enum lb_plot_axis { LB_PLOT_AXIS_T, LB_PLOT_AXIS_B, LB_PLOT_AXIS_H };

/* A line in the pictures: one variant of an implementation, launched in one way with one number of
 * threads, and where devices are side by side, on one of these. Colour, mark and dash count from 1
 * into the arrays of plots/style.gp. */
struct lb_series {
    char name[3 * LB_NAME_SIZE + LB_LABEL_SIZE]; /* "cpu_simd", "cudnn:persist_static",
                                                    "cpu_simd/th2", "cudnn on NVIDIA H100" */
    const struct lb_case *example;
    int color, mark, dash;
};

struct lb_series_list {
    struct lb_series *items; /* [count], in order of their names */
    size_t count;
};

/* Finds all series of the run. Colours and marks depend on all names of the run together, so that
 * they are the same in all its pictures. LB_OOM. */
enum lb_status lb_series_collect(const struct lb_run *run, struct lb_series_list *list,
                                 struct lb_error *err);
void lb_series_free(struct lb_series_list *list); /* accepts a zeroed one */

/* The index of the row's series in the list. */
size_t lb_series_of(const struct lb_series_list *list, const struct lb_row *row);

/* The index of the series that a baseline names: the one of exactly this name, else the first of
 * this implementation and variant, else list->count. */
size_t lb_series_baseline(const struct lb_series_list *list, const char *baseline);

#define LB_PAGE_NAME_SIZE 192

/* What a line shows of a row: value / divisor with the interval lo to hi. A value of NaN is a gap.
 */
struct lb_value {
    double value, lo, hi;
    double divisor;     /* divides all other members */
    double lower_bound; /* the least that the machine allows; NaN: unknown */
};

/* A row and its position in the pictures of one kind. */
struct lb_point {
    const struct lb_row *row;
    struct lb_value shown;        /* in line pictures */
    char page[LB_PAGE_NAME_SIZE]; /* shared by all of a page: "f32_infer", "f32_train_L2" */
    int64_t input;                /* I where it is not H, else 0 */
    int64_t panel[2];             /* sizes shared by all of a panel, besides input */
    size_t series;
    int64_t x, y; /* y is 0 in line pictures */
};

int64_t lb_plot_axis_value(const struct lb_problem *problem, enum lb_plot_axis axis);
const char *lb_plot_axis_letter(enum lb_plot_axis axis); /* "T", "B", "H" */
const char *lb_plot_axis_words(enum lb_plot_axis axis);  /* "sequence length T", ... */

/* The part of a page's name that its rows determine: dtype, pass and everything else but sizes,
 * implementation, launch form and threads; where devices are apart, the device. */
void lb_page_name(const struct lb_row *row, char page[LB_PAGE_NAME_SIZE]);

/* Compares pages for sorting: f32, f16, bf16, f64, then by name. */
int lb_page_compare(const char *a, const char *b);

/* "LSTM inference, f32": the start of a page's heading, to which its kind adds. */
void lb_page_heading(const struct lb_row *row, char *heading, size_t size);

/* Sorts by page, panel, input, series, y, x. */
void lb_points_sort(struct lb_point *points, size_t count);

/* What neighbouring points have in common: the page; also panel and input; also the series. */
enum lb_share { LB_SHARE_PAGE, LB_SHARE_PANEL, LB_SHARE_SERIES };

/* The end of the range of points that begins at first and shares all that. */
size_t lb_points_end(const struct lb_point *points, size_t count, size_t first,
                     enum lb_share share);

/* Sorts the values in place and removes duplicates. Returns how many are left. */
size_t lb_distinct(int64_t *values, size_t count);

/* Keeps at most limit of the ascending values, evenly chosen, with both ends. Returns how many are
 * left. */
size_t lb_thin(int64_t *values, size_t count, size_t limit);

bool lb_contains(const int64_t *values, size_t count, int64_t value); /* values ascend */

#endif
