/* Contests: the rows of a run that computed the same thing, and which of them was fastest. */
#ifndef LB_PROBLEM_GROUPS_H
#define LB_PROBLEM_GROUPS_H

#include "plot/data.h"

enum lb_size { LB_SIZE_T, LB_SIZE_B, LB_SIZE_I, LB_SIZE_H, LB_SIZE_COUNT };

/* One row in a group. */
struct lb_candidate {
    const struct lb_row *row;
    size_t series;
};

/* One problem, with caches and timing: all that its candidates share. */
struct lb_group {
    char page[LB_PAGE_NAME_SIZE]; /* everything but sizes, as in lb_page_name */
    int64_t sizes[LB_SIZE_COUNT];
    struct lb_candidate *candidates; /* [count], by series; in the list's own array */
    size_t count, timed;
    const struct lb_row *best; /* smallest median; NULL when none has a time */
};

struct lb_groups {
    struct lb_group *items; /* [count], by page (lb_page_compare), then H, B, T, I */
    size_t count;
    struct lb_candidate *candidates; /* all of them */
};

/* Groups the rows of the run. LB_OOM. */
enum lb_status lb_groups_create(const struct lb_run *run, const struct lb_series_list *series,
                                struct lb_groups *groups, struct lb_error *err);
void lb_groups_free(struct lb_groups *groups); /* accepts a zeroed one */

/* The series' row with a time in the group, or NULL. */
const struct lb_row *lb_group_timed(const struct lb_group *group, size_t series);

/* The series' row with a time or without, or NULL. */
const struct lb_row *lb_group_row(const struct lb_group *group, size_t series);

/* The group's fastest but for that series, or NULL. */
const struct lb_row *lb_group_runner_up(const struct lb_group *group, size_t series);

/* Whether the medians' intervals are apart: which one is faster is then beyond the samples' noise.
 * Where there are too few samples for an interval, the range of all samples stands for it; false
 * where there is but one. */
bool lb_rows_apart(const struct lb_row *a, const struct lb_row *b);

/* Whether the row has too few samples for an interval of its median, so that nothing can be said of
 * its place. */
bool lb_too_few_samples(const struct lb_row *row);

/* Whether the row is fastest in its group, or can't be told from the fastest: intervals overlap.
 * Of rows with too few samples only the fastest one leads. */
bool lb_group_leads(const struct lb_group *group, const struct lb_row *row);

#endif
