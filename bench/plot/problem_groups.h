/* Groups of rows that solved the same problem, and which row of each group was fastest. */
#ifndef LB_PROBLEM_GROUPS_H
#define LB_PROBLEM_GROUPS_H

#include "plot/plot_data.h"

enum lb_size { LB_SIZE_T, LB_SIZE_B, LB_SIZE_I, LB_SIZE_H, LB_SIZE_COUNT };

/* One row in a group. */
struct lb_candidate {
    const struct lb_row *row;
    size_t series;
};

/* One problem with its state of caches and way of timing, which all candidates share. */
struct lb_group {
    char page[LB_PAGE_NAME_SIZE]; /* everything but sizes, as in lb_page_name */
    int64_t sizes[LB_SIZE_COUNT];
    struct lb_candidate *candidates; /* [count], by series; part of lb_groups.candidates */
    size_t count, timed;
    const struct lb_row *best; /* the smallest median; NULL when no candidate has a time */
};

struct lb_groups {
    struct lb_group *items; /* [count], by page (lb_page_compare), then H, B, T, I */
    size_t count;
    struct lb_candidate *candidates; /* of all groups, owned */
};

/* Groups the rows of the run. LB_OOM. */
enum lb_status lb_groups_create(const struct lb_run *run, const struct lb_series_list *series,
                                struct lb_groups *groups, struct lb_error *err);
void lb_groups_free(struct lb_groups *groups); /* accepts a zeroed one */

/* The series' row in the group if it has a time, else NULL. */
const struct lb_row *lb_group_timed(const struct lb_group *group, size_t series);

/* The series' row in the group, with a time or without, else NULL. */
const struct lb_row *lb_group_row(const struct lb_group *group, size_t series);

/* The fastest row of all other series in the group, else NULL. */
const struct lb_row *lb_group_runner_up(const struct lb_group *group, size_t series);

/* Whether the median has a 95 % interval. It takes 6 samples or, for a row of several processes, 6
 * processes. Without one a row cannot be ranked. */
bool lb_row_has_interval(const struct lb_row *row);

/* The interval of the row's median or, where it has none, the range of the row's samples. False
 * where there are not two samples. */
bool lb_row_bounds(const struct lb_row *row, double *lo, double *hi);

/* Whether the medians' intervals do not overlap, so that the difference is larger than the samples'
 * noise. A row without an interval is judged by the range of its samples; a row with one sample is
 * never apart. */
bool lb_rows_apart(const struct lb_row *a, const struct lb_row *b);

/* Whether the row is the fastest of its group or tied with it: both have an interval, and these
 * overlap. */
bool lb_group_leads(const struct lb_group *group, const struct lb_row *row);

#endif
