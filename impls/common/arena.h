/* Arrays laid out one after another in a buffer of the harness. */
#ifndef LB_ARENA_H
#define LB_ARENA_H

#include <stddef.h>

/* Takes bytes from base, *at on, and moves *at past them; without a base only counts. Arrays start
 * on cache lines of their own when base does. */
static inline void *lb_take(char *base, size_t *at, size_t bytes)
{
    void *memory = base ? base + *at : NULL;
    *at += (bytes + 63) / 64 * 64;
    return memory;
}

#endif
