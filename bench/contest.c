/* Contests: the rows of a run that computed the same thing. */
#include "contest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row with what it is grouped by. */
struct member {
    char page[LB_PAGE_NAME_SIZE];
    int64_t sizes[LB_SIZE_COUNT];
    struct lb_entrant entrant;
};

static int compare_groups(const struct member *a, const struct member *b)
{
    static const enum lb_size order[] = {LB_SIZE_H, LB_SIZE_B, LB_SIZE_T, LB_SIZE_I};
    int pages = lb_page_compare(a->page, b->page);
    if (pages)
        return pages;
    for (size_t i = 0; i < LB_SIZE_COUNT; i++) {
        int64_t x = a->sizes[order[i]], y = b->sizes[order[i]];
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static int compare_members(const void *a, const void *b)
{
    const struct member *p = a, *q = b;
    int order = compare_groups(p, q);
    if (order)
        return order;
    return (p->entrant.series > q->entrant.series) - (p->entrant.series < q->entrant.series);
}

static void add_entrant(struct lb_contest *contest, const struct lb_row *row)
{
    contest->count++;
    if (!lb_row_is_timed(row))
        return;
    contest->timed++;
    if (!contest->best || row->median_ns < contest->best->median_ns)
        contest->best = row;
}

static void group(const struct member *members, size_t count, struct lb_contests *contests)
{
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || compare_groups(&members[i - 1], &members[i]) != 0) {
            struct lb_contest *next = &contests->items[contests->count++];
            *next = (struct lb_contest){.entrants = &contests->entrants[i]};
            memcpy(next->page, members[i].page, sizeof(next->page));
            memcpy(next->sizes, members[i].sizes, sizeof(next->sizes));
        }
        contests->entrants[i] = members[i].entrant;
        add_entrant(&contests->items[contests->count - 1], members[i].entrant.row);
    }
}

enum lb_status lb_contests_create(const struct lb_run *run, const struct lb_series_list *series,
                                  struct lb_contests *contests, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct member *members = calloc(run->count + 1, sizeof(*members));
    contests->count = 0;
    contests->items = calloc(run->count + 1, sizeof(*contests->items));
    contests->entrants = calloc(run->count + 1, sizeof(*contests->entrants));
    if (!members || !contests->items || !contests->entrants) {
        st = lb_fail(err, LB_OOM, "out of memory for %zu rows", run->count);
        lb_contests_free(contests);
        goto done;
    }
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        const struct lb_problem *p = &row->c.problem;
        members[i] = (struct member){
            .sizes = {p->seq_len, p->batch, p->input, p->hidden},
            .entrant = {row, lb_series_of(series, row)},
        };
        lb_page_name(&row->c, members[i].page);
    }
    qsort(members, run->count, sizeof(*members), compare_members);
    group(members, run->count, contests);
done:
    free(members);
    return st;
}

void lb_contests_free(struct lb_contests *contests)
{
    free(contests->items);
    free(contests->entrants);
    *contests = (struct lb_contests){0};
}

const struct lb_row *lb_contest_row(const struct lb_contest *contest, size_t series)
{
    for (size_t i = 0; i < contest->count; i++)
        if (contest->entrants[i].series == series)
            return contest->entrants[i].row;
    return NULL;
}

const struct lb_row *lb_contest_timed(const struct lb_contest *contest, size_t series)
{
    const struct lb_row *row = lb_contest_row(contest, series);
    return row && lb_row_is_timed(row) ? row : NULL;
}

const struct lb_row *lb_contest_rival(const struct lb_contest *contest, size_t series)
{
    const struct lb_row *best = NULL;
    for (size_t i = 0; i < contest->count; i++) {
        const struct lb_row *row = contest->entrants[i].row;
        if (contest->entrants[i].series != series && lb_row_is_timed(row) &&
            (!best || row->median_ns < best->median_ns))
            best = row;
    }
    return best;
}

/* What the row's median lies between; false where nothing is known. */
static bool bounds_of(const struct lb_row *row, double *lo, double *hi)
{
    *lo = row->median_lo_ns;
    *hi = row->median_hi_ns;
    if (isfinite(*lo) && isfinite(*hi))
        return true;
    if (row->samples < 2)
        return false;
    *lo = *hi = row->samples_ns[0];
    for (size_t i = 1; i < row->samples; i++) {
        *lo = fmin(*lo, row->samples_ns[i]);
        *hi = fmax(*hi, row->samples_ns[i]);
    }
    return true;
}

bool lb_rows_apart(const struct lb_row *a, const struct lb_row *b)
{
    double a_lo, a_hi, b_lo, b_hi;
    return bounds_of(a, &a_lo, &a_hi) && bounds_of(b, &b_lo, &b_hi) && (a_hi < b_lo || b_hi < a_lo);
}

bool lb_contest_leads(const struct lb_contest *contest, const struct lb_row *row)
{
    return lb_row_is_timed(row) && (row == contest->best || !lb_rows_apart(row, contest->best));
}
