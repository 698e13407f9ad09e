/* warp.h: shuffles and votes. CUDA C++ Programming Guide, "Warp Shuffle Functions", "Warp Vote
 * Functions". None of them orders memory. */
#ifndef LB_SIMT_WARP_H
#define LB_SIMT_WARP_H

#include "calls.h"

#include <cstdint>

namespace simt
{

/* The value that lane `from` brought. A lane outside the mask brings nothing. */
template <class T>
SIMT_RUNTIME T shuffle(uint32_t mask, T value, int from, const char *name, site at)
{
    static_assert(sizeof(T) <= sizeof(lane_slot::bytes), "a shuffle moves up to 64 bytes");
    const lane_slot *slots = warp_exchange(mask, &value, sizeof value, name, false, nullptr, at);
    if (!(mask >> from & 1))
        fail(at, "%s: lane %u reads lane %d, which is not in mask %08x", name, self->lane, from,
             mask);
    T got;
    __builtin_memcpy(&got, slots[from].bytes, sizeof got);
    return got;
}

/* Lanes are cut into segments of `width`; one that would leave its segment keeps its own. */
inline int within(int lane, int from, int width)
{
    int first = lane & ~(width - 1);
    return from < first || from >= first + width ? lane : from;
}

inline int lane_number()
{
    return static_cast<int>(self->lane);
}

} // namespace simt

template <class T>
inline T __shfl_sync(uint32_t mask, T value, int from, int width = 32,
                     simt::site at = simt::site::here())
{
    int first = simt::lane_number() & ~(width - 1);
    return simt::shuffle(mask, value, first + (from & (width - 1)), "__shfl_sync", at);
}

template <class T>
inline T __shfl_xor_sync(uint32_t mask, T value, int lanes, int width = 32,
                         simt::site at = simt::site::here())
{
    int lane = simt::lane_number();
    /* Unlike the others, xor may read an earlier segment (PTX ISA, "shfl.sync"). */
    int from = (lane ^ lanes) < (lane & ~(width - 1)) + width ? lane ^ lanes : lane;
    return simt::shuffle(mask, value, from, "__shfl_xor_sync", at);
}

template <class T>
inline T __shfl_down_sync(uint32_t mask, T value, unsigned by, int width = 32,
                          simt::site at = simt::site::here())
{
    int lane = simt::lane_number();
    int from = simt::within(lane, lane + static_cast<int>(by), width);
    return simt::shuffle(mask, value, from, "__shfl_down_sync", at);
}

template <class T>
inline T __shfl_up_sync(uint32_t mask, T value, unsigned by, int width = 32,
                        simt::site at = simt::site::here())
{
    int lane = simt::lane_number();
    int from = simt::within(lane, lane - static_cast<int>(by), width);
    return simt::shuffle(mask, value, from, "__shfl_up_sync", at);
}

SIMT_RUNTIME inline uint32_t __ballot_sync(uint32_t mask, int predicate,
                                           simt::site at = simt::site::here())
{
    unsigned char vote = predicate != 0;
    const simt::lane_slot *slots =
        simt::warp_exchange(mask, &vote, 1, "__ballot_sync", false, nullptr, at);
    uint32_t votes = 0;
    for (unsigned lane = 0; lane < simt::warp_lanes; lane++)
        if (mask >> lane & 1)
            votes |= uint32_t{slots[lane].bytes[0]} << lane;
    return votes;
}

inline int __any_sync(uint32_t mask, int predicate, simt::site at = simt::site::here())
{
    return __ballot_sync(mask, predicate, at) != 0;
}

inline int __all_sync(uint32_t mask, int predicate, simt::site at = simt::site::here())
{
    return __ballot_sync(mask, predicate, at) == mask;
}

#endif
