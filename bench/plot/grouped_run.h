/* A run as all views show it: its series, the rows that solved the same problem, which of them is
 * fastest, and the baseline of speed-ups. Table, page and pictures use this one grouping. */
#ifndef LB_GROUPED_RUN_H
#define LB_GROUPED_RUN_H

#include <stdio.h>

#include "record/run_file.h"

#define LB_PAGE_NAME_SIZE 192

enum lb_size { LB_SIZE_T, LB_SIZE_B, LB_SIZE_I, LB_SIZE_H, LB_SIZE_COUNT };

/* A line in the pictures: one variant of an implementation and, where devices are side by side, on
 * one of these. Colour, mark and dash count from 1 into the arrays of plots/style.gp. */
struct lb_series {
    char name[3 * LB_NAME_SIZE + LB_LABEL_SIZE]; /* "cpu_simd", "cudnn:persist_static",
                                                    "cudnn on NVIDIA H100" */
    const struct lb_case *example;
    int color, mark, dash;
};

/* How a row compares with the other rows of its problem. */
enum lb_rank {
    LB_RANK_NONE,    /* behind the fastest, not apart from it for sure, or the only one */
    LB_RANK_FASTEST, /* its interval lies below those of all others */
    LB_RANK_TIED     /* its interval and that of the fastest overlap */
};

/* One row in a group. */
struct lb_candidate {
    const struct lb_row *row;
    char *page; /* that of its group; owned */
    size_t series;
    enum lb_rank rank;
};

/* One problem with its threads, launch form, state of caches and way of timing, which all
 * candidates share: speed-ups are over the baseline of the same group. */
struct lb_group {
    const char *page; /* everything but sizes; that of its candidates */
    int64_t sizes[LB_SIZE_COUNT];
    struct lb_candidate *candidates; /* [count], those with a time first, the fastest first */
    size_t count, timed;
    size_t first; /* the least index of its rows in the run */
};

struct lb_grouped_run {
    const struct lb_run *run;
    struct lb_series *series; /* [series_count], by implementation, then name; owned */
    size_t series_count;
    struct lb_group *groups; /* [count], by page (lb_page_compare), then H, B, T, I; owned */
    size_t count;
    struct lb_candidate *candidates; /* of all groups, owned */
    char baseline[2 * LB_NAME_SIZE]; /* impl[:variant] that speed-ups are relative to; "": none */
    size_t baseline_series; /* the first of this implementation and variant; series_count where the
                               run has none */
};

/* Groups the rows of the run, which must outlive it. baseline: impl[:variant], or NULL for that of
 * the run's header or else the first of cudnn, onednn and cpu_ref that has an ok row, or else the
 * implementation of the first ok row. Colours and marks depend on all names of the run together,
 * so that they are the same in all its pictures. */
void lb_group_run(const struct lb_run *run, const char *baseline, struct lb_grouped_run *grouped);
void lb_grouped_run_free(struct lb_grouped_run *grouped); /* accepts a zeroed one */

/* The series' candidate in the group, which may be NULL, else NULL; the second returns it only with
 * a time. */
const struct lb_candidate *lb_group_find(const struct lb_group *group, size_t series);
const struct lb_candidate *lb_group_timed(const struct lb_group *group, size_t series);

/* The group that a row of this case and label belongs to, whether or not the run has such a row;
 * NULL when the run has no such group. */
const struct lb_group *lb_group_of_row(const struct lb_grouped_run *grouped,
                                       const struct lb_row *row);

/* The time in ns after which a call of the row's stream is too late: the run's --deadline, else the
 * time until the next call is due; NaN where there is neither. */
double lb_row_deadline(const struct lb_run *run, const struct lb_row *row);

/* Whether the median has a 95 % interval. It takes 6 samples or, for a row of several processes, 6
 * processes. Without one a row cannot be ranked. */
bool lb_row_has_interval(const struct lb_row *row);

/* The interval of the row's median or, where it has none, the range of the row's samples. False,
 * and both NaN, where there are not two samples. */
bool lb_row_bounds(const struct lb_row *row, double *lo, double *hi);

/* Whether the medians' intervals do not overlap, so that the difference is larger than the samples'
 * noise. A row without an interval is judged by the range of its samples; a row with one sample is
 * never apart. */
bool lb_rows_apart(const struct lb_row *a, const struct lb_row *b);

/* Compares pages for sorting: f32, f16, bf16, int8, f64, then by name. */
int lb_page_compare(const char *a, const char *b);

/* "LSTM inference, f32": the start of a page's heading, to which its kind adds. others [size]
 * receives the part behind pass and precision, such as ", 2 layers, ragged"; NULL: it is not
 * wanted. */
void lb_page_heading(const struct lb_row *row, char *heading, char *others, size_t size);

/* Sorts the values in place and removes duplicates. Returns how many are left. */
size_t lb_distinct(int64_t *values, size_t count);

/* Which value of count to show as the i-th of limit: evenly chosen, with both ends. */
size_t lb_evenly(size_t i, size_t count, size_t limit);

/* The price of one cell, or the gain of one precision with the standard cell, on one implementation
 * and variant, in one pass: over all problems of the run that have both times. */
struct lb_price {
    enum lb_cell_kind cell; /* LB_CELL_STANDARD: of a precision */
    enum lb_dtype dtype;    /* f16, bf16 or int8; f32 for a cell, whose price covers all dtypes */
    enum lb_pass pass;
    char impl[2 * LB_NAME_SIZE]; /* "cpu_ref", "cudnn:standard" */
    size_t problems;             /* at least 1 */
    double mean, least, most; /* time with the cell divided by time with the standard cell, or time
                                 in f32 divided by time in the precision: geometric mean, minimum
                                 and maximum */
    double error, base_error; /* largest err_norm with it, and without it */
    char text[256]; /* "int8 is 6.74 times as fast as f32 on cpu_simd, infer (1 problem), with an
                       error of 0.0073 where f32 has 3.5e-07" */
};

/* The prices [*count] of the run, in the order of cell, precision, pass and implementation, which
 * the caller frees. like: of problems of the same sizes alone; NULL: of all. */
struct lb_price *lb_prices(const struct lb_run *run, const struct lb_problem *like, size_t *count);

/* Results as text on the terminal: the table of a sweep, and the GPU kernels of a row. */

/* Prints the rows by problem in the order of the run, fastest first, and what follows them, down to
 * a line that counts the verdicts. Lines fit the width of out's terminal, or 80 columns. */
void lb_table_print(FILE *out, const struct lb_grouped_run *grouped);

/* The two parts of that: the problems, and what follows them. baseline [2 * LB_NAME_SIZE]: that the
 * latest heading names, "" before the first; another heading is printed where this run's differs.
 */
void lb_table_print_problems(FILE *out, const struct lb_grouped_run *grouped, char *baseline);
void lb_table_print_summary(FILE *out, const struct lb_grouped_run *grouped);

/* Prints "cudnn:auto ran 1 persistent kernel, tensor cores: yes", then one line per kernel, the
 * gaps between kernels and the row's warning; or why nothing is known. Indented by four. */
void lb_kernels_print(FILE *out, const struct lb_row *row);

#endif
