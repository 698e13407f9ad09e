/* Regions of a grid of sizes in which one implementation is fastest.
 *
 * The regions are the leaves of a small decision tree over T, B, H and I. Each leaf chooses one
 * implementation. The cost of a leaf is the sum over its problems of log(time of the choice / best
 * time); a problem costs nothing where the choice ties with the fastest (the intervals overlap),
 * and log 4 where the choice has no time. A leaf is split where this saves at least 2 % per problem
 * and a third of its cost, so that a region stands for a difference worth a sentence and not for
 * noise in single problems. The choice need not win every problem of its region: readers of a
 * region count how many it wins. */
#ifndef LB_FASTEST_REGIONS_H
#define LB_FASTEST_REGIONS_H

#include "plot/grouped_run.h"

enum { LB_REGION_DEPTH = 2, LB_REGION_MOST = 1 << LB_REGION_DEPTH };

/* A leaf. */
struct lb_region {
    size_t *groups; /* [count] indices into the given groups, ascending; owned */
    size_t count;
    size_t series; /* the chosen one */
    /* low < size <= high for each size; 0 and INT64_MAX where the tree did not cut. */
    int64_t low[LB_SIZE_COUNT], high[LB_SIZE_COUNT];
};

struct lb_regions {
    struct lb_region items[LB_REGION_MOST];
    size_t count;
};

/* Finds the regions of groups [count], which all belong to one page. Groups in which no row has a
 * time belong to no region. LB_OOM. */
enum lb_status lb_regions_find(const struct lb_group *groups, size_t count, size_t series_count,
                               struct lb_regions *regions, struct lb_error *err);
void lb_regions_free(struct lb_regions *regions); /* accepts a zeroed one */

#endif
