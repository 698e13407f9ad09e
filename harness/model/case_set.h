/* A hash set over an array of cases, by case or by problem. */
#ifndef LB_CASE_SET_H
#define LB_CASE_SET_H

#include "model/case.h"

/* Zero it before use: it is then empty and compares whole cases. */
struct lb_case_set {
    bool by_problem; /* compares problems alone: lb_case_same_problem, not lb_case_same */
    uint32_t *slots; /* [capacity] index + 1, 0 free; owned */
    size_t capacity; /* a power of two */
    size_t count;
};

void lb_case_set_free(struct lb_case_set *set); /* accepts a zeroed one */

/* Adds cases[index] unless the same case was added before. Every call must get the same array, or a
 * grown copy of it, because the set keeps only indices; index is below 2^32 - 1. Returns
 * the index of the same case that was added before, or index itself when there was none. */
size_t lb_case_set_add(struct lb_case_set *set, const struct lb_case *cases, size_t index);

#endif
