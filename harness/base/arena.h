/* Arrays laid out one after another in one buffer that somebody else owns. */
#ifndef LB_ARENA_H
#define LB_ARENA_H

#include <stddef.h>

/* Every array starts at a multiple of this, as cudaMalloc's blocks and the harness's buffers do. */
#define LB_ARENA_ALIGNMENT ((size_t)256)

/* base: the buffer, aligned as above, not owned; NULL only counts, so that one function can say
 * how large the buffer must be and later lay the same arrays out in it. used: bytes taken so far,
 * a multiple of the alignment. */
struct lb_arena {
    char *base;
    size_t used;
};

/* The bytes that an array takes in an arena: rounded up to the alignment. */
static inline size_t lb_arena_round_up(size_t bytes)
{
    return (bytes + LB_ARENA_ALIGNMENT - 1) / LB_ARENA_ALIGNMENT * LB_ARENA_ALIGNMENT;
}

/* Takes the next bytes of the arena; NULL while counting. */
static inline void *lb_arena_take(struct lb_arena *arena, size_t bytes)
{
    char *memory = arena->base ? arena->base + arena->used : NULL;
    arena->used += lb_arena_round_up(bytes);
    return memory;
}
#endif
