/* Counts how often each variant of an implementation has hung in a sweep, so that a variant that
 * hangs again and again does not use up the time of the others. */
#ifndef LB_HANG_COUNT_H
#define LB_HANG_COUNT_H

#include "model/case.h"

enum { LB_HANG_COUNTS_MAX = 64 /* variants; further ones are not counted */ };

struct lb_hang_counts {
    struct lb_hang_count {
        char impl[LB_NAME_SIZE], variant[LB_NAME_SIZE];
        int count;
    } items[LB_HANG_COUNTS_MAX];
    size_t count;
};

/* How often the case's implementation has hung in the case's variant so far. */
int lb_hang_counts_of(const struct lb_hang_counts *hang_counts, const struct lb_case *c);

/* Adds one hang of the case's variant. */
void lb_hang_counts_add(struct lb_hang_counts *hang_counts, const struct lb_case *c);

#endif
