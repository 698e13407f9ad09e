/* A hash of memory, for telling whether bits changed. */
#include "base/hash.h"

#include <string.h>

enum { PARTIAL_HASHES = 8 /* independent ones, because a multiplication takes several clocks */ };

/* Multiply and fold, as FNV does with single bytes; both steps can be undone, so that no change is
 * lost. The factor is 2^64 divided by the golden ratio. */
static uint64_t take(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

uint64_t lb_hash_bytes(uint64_t hash, const void *memory, size_t bytes)
{
    const char *at = memory;
    uint64_t partial[PARTIAL_HASHES], words[PARTIAL_HASHES];
    for (size_t i = 0; i < PARTIAL_HASHES; i++)
        partial[i] = take(hash, i);
    for (; bytes >= sizeof(words); at += sizeof(words), bytes -= sizeof(words)) {
        memcpy(words, at, sizeof(words));
        for (size_t i = 0; i < PARTIAL_HASHES; i++)
            partial[i] = take(partial[i], words[i]);
    }
    memset(words, 0, sizeof(words));
    if (bytes > 0)
        memcpy(words, at, bytes);
    for (size_t i = 0; i < PARTIAL_HASHES; i++)
        hash = take(hash, take(partial[i], words[i]));
    return take(hash, bytes);
}
