/* A hash set over an array of cases, by case or by problem. */
#ifndef LB_CASE_SET_H
#define LB_CASE_SET_H

#include "model/case.h"

/* Zeroed: empty, by case. */
struct lb_case_set {
    bool by_problem; /* compares problems alone: lb_case_same_problem, not lb_case_same */
    uint32_t *slots; /* [capacity] index + 1, 0 free; owned */
    size_t capacity; /* a power of two */
    size_t count;
};

void lb_case_set_free(struct lb_case_set *set); /* accepts a zeroed one */

/* Adds cases[index] unless the same case was added before.
 * cases must be the same array, or a grown copy of it, in every call; index below 2^32 - 1.
 * *first: the index of the case that was there before; index itself when it was added. LB_OOM. */
enum lb_status lb_case_set_add(struct lb_case_set *set, const struct lb_case *cases, size_t index,
                               size_t *first, struct lb_error *err);

#endif
