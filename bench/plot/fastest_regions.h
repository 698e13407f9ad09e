/* Regions of a grid of sizes in which one implementation is fastest.
 *
 * A decision tree over T, B, H and I with few leaves. What a leaf costs is what it would cost to
 * use the leaf's one choice everywhere in it: the sum over its problems of log(time / best time),
 * nothing where the choice can't be told from the fastest (intervals overlap), and the log of 4
 * where it has no time. A leaf is split where that saves at least 2 % a problem and a third of the
 * cost, so that a region stands for a difference worth a sentence, not for noise in single cells.
 * A region is where the choice serves best; how many of its problems it wins is counted, and said.
 */
#ifndef LB_FASTEST_REGIONS_H
#define LB_FASTEST_REGIONS_H

#include "plot/problem_groups.h"

enum { LB_REGION_DEPTH = 2, LB_REGION_MOST = 1 << LB_REGION_DEPTH };

/* A leaf. */
struct lb_region {
    size_t *groups; /* [count] numbers in the list that was given, ascending; owned */
    size_t count;
    size_t series; /* the choice */
    /* Its sizes are over low and up to high where it was cut: else 0 and INT64_MAX. */
    int64_t low[LB_SIZE_COUNT], high[LB_SIZE_COUNT];
};

struct lb_regions {
    struct lb_region items[LB_REGION_MOST];
    size_t count;
};

/* The regions of groups [count], all of one page; those without a time in them are left out.
 * LB_OOM. */
enum lb_status lb_regions_find(const struct lb_group *groups, size_t count, size_t series_count,
                               struct lb_regions *regions, struct lb_error *err);
void lb_regions_free(struct lb_regions *regions); /* accepts a zeroed one */

#endif
