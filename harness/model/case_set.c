/* A hash set over an array of cases, by case or by problem: open addressing, linear probing. */
#include "model/case_set.h"

#include <stdlib.h>

#include "base/memory.h"

void lb_case_set_free(struct lb_case_set *set)
{
    free(set->slots);
    set->slots = NULL;
    set->capacity = set->count = 0;
}

static bool same(const struct lb_case_set *set, const struct lb_case *a, const struct lb_case *b)
{
    return set->by_problem ? lb_case_same_problem(a, b) : lb_case_same(a, b);
}

/* The slot of an equal case, or the free slot where this one belongs. */
static uint32_t *find_slot(const struct lb_case_set *set, const struct lb_case *cases,
                           const struct lb_case *c)
{
    size_t mask = set->capacity - 1;
    uint64_t hash = set->by_problem ? lb_case_hash_problem(c) : lb_case_hash(c);
    size_t at = (size_t)(hash ^ hash >> 32) & mask;
    while (set->slots[at] && !same(set, &cases[set->slots[at] - 1], c))
        at = (at + 1) & mask;
    return &set->slots[at];
}

/* Doubles the table, so that it stays at most half full. */
static void grow(struct lb_case_set *set, const struct lb_case *cases)
{
    struct lb_case_set wider = *set;
    wider.capacity = set->capacity ? 2 * set->capacity : 64;
    wider.slots = lb_needed(calloc(wider.capacity, sizeof(*wider.slots)));
    for (size_t i = 0; i < set->capacity; i++)
        if (set->slots[i])
            *find_slot(&wider, cases, &cases[set->slots[i] - 1]) = set->slots[i];
    free(set->slots);
    *set = wider;
}

size_t lb_case_set_add(struct lb_case_set *set, const struct lb_case *cases, size_t index)
{
    if (2 * set->count >= set->capacity)
        grow(set, cases);
    uint32_t *slot = find_slot(set, cases, &cases[index]);
    if (!*slot) {
        *slot = (uint32_t)index + 1;
        set->count++;
    }
    return *slot - 1;
}
