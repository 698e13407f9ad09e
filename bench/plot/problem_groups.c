/* Groups of rows that solved the same problem. */
#include "plot/problem_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row with what it is grouped by. */
struct member {
    char page[LB_PAGE_NAME_SIZE];
    int64_t sizes[LB_SIZE_COUNT];
    struct lb_candidate candidate;
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
    return (p->candidate.series > q->candidate.series) -
           (p->candidate.series < q->candidate.series);
}

static void add_candidate(struct lb_group *group, const struct lb_row *row)
{
    group->count++;
    if (!lb_row_is_timed(row))
        return;
    group->timed++;
    if (!group->best || row->median_ns < group->best->median_ns)
        group->best = row;
}

static void group(const struct member *members, size_t count, struct lb_groups *groups)
{
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || compare_groups(&members[i - 1], &members[i]) != 0) {
            struct lb_group *next = &groups->items[groups->count++];
            *next = (struct lb_group){.candidates = &groups->candidates[i]};
            memcpy(next->page, members[i].page, sizeof(next->page));
            memcpy(next->sizes, members[i].sizes, sizeof(next->sizes));
        }
        groups->candidates[i] = members[i].candidate;
        add_candidate(&groups->items[groups->count - 1], members[i].candidate.row);
    }
}

enum lb_status lb_groups_create(const struct lb_run *run, const struct lb_series_list *series,
                                struct lb_groups *groups, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct member *members = calloc(run->count + 1, sizeof(*members));
    groups->count = 0;
    groups->items = calloc(run->count + 1, sizeof(*groups->items));
    groups->candidates = calloc(run->count + 1, sizeof(*groups->candidates));
    if (!members || !groups->items || !groups->candidates) {
        st = lb_fail(err, LB_OOM, "out of memory for %zu rows", run->count);
        lb_groups_free(groups);
        goto done;
    }
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        const struct lb_problem *p = &row->c.problem;
        members[i] = (struct member){
            .sizes = {p->seq_len, p->batch, p->input, p->hidden},
            .candidate = {row, lb_series_of(series, row)},
        };
        lb_page_name(row, members[i].page);
    }
    qsort(members, run->count, sizeof(*members), compare_members);
    group(members, run->count, groups);
done:
    free(members);
    return st;
}

void lb_groups_free(struct lb_groups *groups)
{
    free(groups->items);
    free(groups->candidates);
    *groups = (struct lb_groups){0};
}

const struct lb_row *lb_group_row(const struct lb_group *group, size_t series)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->candidates[i].series == series)
            return group->candidates[i].row;
    return NULL;
}

const struct lb_row *lb_group_timed(const struct lb_group *group, size_t series)
{
    const struct lb_row *row = lb_group_row(group, series);
    return row && lb_row_is_timed(row) ? row : NULL;
}

const struct lb_row *lb_group_runner_up(const struct lb_group *group, size_t series)
{
    const struct lb_row *best = NULL;
    for (size_t i = 0; i < group->count; i++) {
        const struct lb_row *row = group->candidates[i].row;
        if (group->candidates[i].series != series && lb_row_is_timed(row) &&
            (!best || row->median_ns < best->median_ns))
            best = row;
    }
    return best;
}

bool lb_row_has_interval(const struct lb_row *row)
{
    return isfinite(row->median_lo_ns) && isfinite(row->median_hi_ns);
}

bool lb_row_bounds(const struct lb_row *row, double *lo, double *hi)
{
    *lo = row->median_lo_ns;
    *hi = row->median_hi_ns;
    if (lb_row_has_interval(row))
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
    return lb_row_bounds(a, &a_lo, &a_hi) && lb_row_bounds(b, &b_lo, &b_hi) &&
           (a_hi < b_lo || b_hi < a_lo);
}

bool lb_group_leads(const struct lb_group *group, const struct lb_row *row)
{
    return lb_row_is_timed(row) &&
           (row == group->best || (lb_row_has_interval(row) && lb_row_has_interval(group->best) &&
                                   !lb_rows_apart(row, group->best)));
}
