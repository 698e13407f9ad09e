/* Contests: the rows of a run that computed the same thing, and which of them was fastest. */
#ifndef LB_CONTEST_H
#define LB_CONTEST_H

#include "plot_data.h"

enum lb_size { LB_SIZE_T, LB_SIZE_B, LB_SIZE_I, LB_SIZE_H, LB_SIZE_COUNT };

/* One row in a contest. */
struct lb_entrant {
    const struct lb_row *row;
    size_t series;
};

/* One problem, with caches and timing: all that its entrants share. */
struct lb_contest {
    char page[LB_PAGE_NAME_SIZE]; /* everything but sizes, as in lb_page_name */
    int64_t sizes[LB_SIZE_COUNT];
    struct lb_entrant *entrants; /* [count], by series; in the list's own array */
    size_t count, timed;
    const struct lb_row *best; /* smallest median; NULL when none has a time */
};

struct lb_contests {
    struct lb_contest *items; /* [count], by page (lb_page_compare), then H, B, T, I */
    size_t count;
    struct lb_entrant *entrants; /* all of them */
};

/* Groups the rows of the run. LB_OOM. */
enum lb_status lb_contests_create(const struct lb_run *run, const struct lb_series_list *series,
                                  struct lb_contests *contests, struct lb_error *err);
void lb_contests_free(struct lb_contests *contests); /* accepts a zeroed one */

/* The series' row with a time in the contest, or NULL. */
const struct lb_row *lb_contest_timed(const struct lb_contest *contest, size_t series);

/* The series' row with a time or without, or NULL. */
const struct lb_row *lb_contest_row(const struct lb_contest *contest, size_t series);

/* The contest's fastest but for that series, or NULL. */
const struct lb_row *lb_contest_rival(const struct lb_contest *contest, size_t series);

/* Whether the medians' intervals are apart: which one is faster is then beyond the samples' noise.
 * Where there are too few samples for an interval, the range of all samples stands for it; false
 * where there is but one. */
bool lb_rows_apart(const struct lb_row *a, const struct lb_row *b);

/* Whether the row is fastest in its contest, or can't be told from the fastest: intervals overlap.
 */
bool lb_contest_leads(const struct lb_contest *contest, const struct lb_row *row);

#endif
