/* A hash set over an array of cases, by case or by problem. */
#ifndef LB_CASE_SET_H
#define LB_CASE_SET_H

#include "model/case.h"

/* Zeroed: empty, by case. */
struct lb_case_set {
    bool by_problem; /* implementation, launch, cache, timing and threads do not count */
    uint32_t *slots; /* [capacity] index + 1, 0 free; owned */
    size_t capacity; /* a power of two */
    size_t count;
};

void lb_case_set_free(struct lb_case_set *set); /* accepts a zeroed one */

/* Looks cases[index] up among those added before it and adds it when none is the same.
 * cases is the same array, or a grown copy of it, in every call; index is below 2^32 - 1.
 * *first: the index of the case that was there, index itself when it was added. LB_OOM. */
enum lb_status lb_case_set_add(struct lb_case_set *set, const struct lb_case *cases, size_t index,
                               size_t *first, struct lb_error *err);

#endif
