/* A hash of memory, for telling whether bits changed. */
#ifndef LB_HASH_H
#define LB_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Takes bytes into a running hash, which starts at any number: about 10 bytes per ns from a cache.
 * A change of one bit always changes the result. Not for adversaries. */
uint64_t lb_hash_bytes(uint64_t hash, const void *memory, size_t bytes);

#endif
