/* Which implementations have hung in a sweep, so that those that go on hanging don't take all its
 * time. */
#ifndef LB_STRIKES_H
#define LB_STRIKES_H

#include "case.h"

enum { LB_STRIKES_MAX = 64 /* variants of implementations; those beyond are not counted */ };

struct lb_strikes {
    struct lb_strike {
        char impl[LB_NAME_SIZE], variant[LB_NAME_SIZE];
        int count;
    } items[LB_STRIKES_MAX];
    size_t count;
};

/* How often the case's implementation and variant have hung so far. */
int lb_strikes_of(const struct lb_strikes *strikes, const struct lb_case *c);

/* One time more. */
void lb_strikes_add(struct lb_strikes *strikes, const struct lb_case *c);

#endif
