/* Regions of a grid in which one implementation is fastest: a small decision tree. */
#include "plot/fastest_regions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_TIME_COST  1.3862943611198906 /* log 4 */
#define LEAST_SAVED   0.02               /* least saving of a split, in log of time per problem */
#define LEAST_SHARE   (1.0 / 3)          /* least saving of a split, as a share of the cost */
#define LEAST_MEMBERS 2
#define TIE_COST      1e-6 /* decides between tied series by their medians */

struct finder {
    const struct lb_group *groups;
    const double *costs; /* [group][series] */
    size_t series_count;
    double *sums; /* [2][series_count] scratch: the costs on both sides of a cut */
    struct lb_regions *regions;
    struct lb_error *err;
};

struct cut {
    enum lb_size size;
    int64_t at; /* the left side has sizes <= at */
    double cost;
    size_t left; /* problems on the left side */
};

static double cost_of(const struct lb_group *group, size_t series)
{
    const struct lb_candidate *own = lb_group_timed(group, series), *best = lb_group_best(group);
    if (!own)
        return NO_TIME_COST;
    if (own == best)
        return 0;
    return own->rank == LB_RANK_TIED ? TIE_COST : log(own->row->median_ns / best->row->median_ns);
}

/* Returns the first series with the least sum. */
static size_t least(const double *sums, size_t count)
{
    size_t best = 0;
    for (size_t s = 1; s < count; s++)
        if (sums[s] < sums[best])
            best = s;
    return best;
}

/* Returns the cost of the region's problems when both sides of the cut choose their best series. */
static double cost_of_cut(const struct finder *f, const struct lb_region *region, struct cut *cut)
{
    size_t n = f->series_count;
    memset(f->sums, 0, 2 * n * sizeof(*f->sums));
    cut->left = 0;
    for (size_t i = 0; i < region->count; i++) {
        size_t c = region->groups[i];
        bool left = f->groups[c].sizes[cut->size] <= cut->at;
        double *sums = f->sums + (left ? 0 : n);
        cut->left += left;
        for (size_t s = 0; s < n; s++)
            sums[s] += f->costs[c * n + s];
    }
    cut->cost = f->sums[least(f->sums, n)] + f->sums[n + least(f->sums + n, n)];
    return cut->cost;
}

/* Finds the best cut between two sizes that occur; false when no cut leaves enough problems on both
 * sides. values [region->count] is scratch. */
static bool find_cut(const struct finder *f, const struct lb_region *region, int64_t *values,
                     struct cut *best)
{
    static const enum lb_size sizes[] = {LB_SIZE_H, LB_SIZE_B, LB_SIZE_T, LB_SIZE_I};
    bool found = false;
    for (size_t k = 0; k < LB_SIZE_COUNT; k++) {
        for (size_t i = 0; i < region->count; i++)
            values[i] = f->groups[region->groups[i]].sizes[sizes[k]];
        size_t count = lb_distinct(values, region->count);
        for (size_t i = 0; i + 1 < count; i++) {
            struct cut cut = {.size = sizes[k], .at = values[i]};
            double cost = cost_of_cut(f, region, &cut);
            bool enough = cut.left >= LEAST_MEMBERS && region->count - cut.left >= LEAST_MEMBERS;
            if (enough && (!found || cost < best->cost - 1e-9)) {
                *best = cut;
                found = true;
            }
        }
    }
    return found;
}

/* Splits the region where that saves enough, and adds the leaves to the list. Takes ownership of
 * the region. */
static enum lb_status grow(struct finder *f, struct lb_region region, int depth)
{
    enum lb_status st = LB_OK;
    struct cut whole = {.size = LB_SIZE_T, .at = INT64_MAX}, best = {0};
    double cost = cost_of_cut(f, &region, &whole);
    size_t choice = least(f->sums, f->series_count);
    int64_t *values = malloc((region.count + 1) * sizeof(*values));
    size_t *right = malloc((region.count + 1) * sizeof(*right));
    bool split = values && right && depth < LB_REGION_DEPTH &&
                 find_cut(f, &region, values, &best) &&
                 cost - best.cost >= LEAST_SAVED * (double)region.count &&
                 cost - best.cost >= LEAST_SHARE * cost;
    free(values);
    if (!split) {
        free(right);
        region.series = choice;
        f->regions->items[f->regions->count++] = region;
        return values && right ? LB_OK : lb_fail(f->err, LB_OOM, "out of memory for regions");
    }
    struct lb_region other = region;
    other.groups = right;
    other.count = 0;
    size_t left = 0;
    for (size_t i = 0; i < region.count; i++) {
        size_t c = region.groups[i];
        if (f->groups[c].sizes[best.size] <= best.at)
            region.groups[left++] = c;
        else
            other.groups[other.count++] = c;
    }
    region.count = left;
    region.high[best.size] = other.low[best.size] = best.at;
    st = grow(f, region, depth + 1);
    enum lb_status second = grow(f, other, depth + 1);
    return st == LB_OK ? second : st;
}

enum lb_status lb_regions_find(const struct lb_group *groups, size_t count, size_t series_count,
                               struct lb_regions *regions, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_region all = {0};
    double *costs = malloc((count * series_count + 1) * sizeof(*costs));
    double *sums = malloc((2 * series_count + 1) * sizeof(*sums));
    *regions = (struct lb_regions){0};
    all.groups = malloc((count + 1) * sizeof(*all.groups));
    if (!costs || !sums || !all.groups) {
        free(all.groups);
        st = lb_fail(err, LB_OOM, "out of memory for the regions of %zu problems", count);
        goto done;
    }
    for (size_t c = 0; c < count; c++) {
        if (groups[c].timed > 0)
            all.groups[all.count++] = c;
        for (size_t s = 0; groups[c].timed > 0 && s < series_count; s++)
            costs[c * series_count + s] = cost_of(&groups[c], s);
    }
    for (size_t k = 0; k < LB_SIZE_COUNT; k++)
        all.high[k] = INT64_MAX;
    if (all.count == 0) {
        free(all.groups);
        goto done;
    }
    struct finder finder = {groups, costs, series_count, sums, regions, err};
    st = grow(&finder, all, 0);
done:
    if (st != LB_OK)
        lb_regions_free(regions);
    free(costs);
    free(sums);
    return st;
}

void lb_regions_free(struct lb_regions *regions)
{
    for (size_t i = 0; i < regions->count; i++)
        free(regions->items[i].groups);
    *regions = (struct lb_regions){0};
}
