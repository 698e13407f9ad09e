/* warp.h: shuffles and votes. CUDA C++ Programming Guide, "Warp Shuffle Functions", "Warp Vote
 * Functions". None of them orders memory. */
#ifndef LB_SIMT_WARP_H
#define LB_SIMT_WARP_H

#include "calls.h"

#include <cstdint>

namespace simt
{

/* Returns the value that lane `from` passed. A lane that is outside the mask or has exited
 * passes none, which is an error. */
template <class T>
SIMT_RUNTIME T shuffle(uint32_t mask, T value, int from, const char *name, site at)
{
    static_assert(sizeof(T) <= sizeof(lane_slot::bytes), "a shuffle moves up to 64 bytes");
    const meeting &met = warp_exchange(mask, &value, sizeof value, {name, false, nullptr}, at);
    if (!(met.lanes >> from & 1))
        fail(at, "%s: lane %u reads lane %d, which %s", name, self->lane, from,
             mask >> from & 1 ? "has exited" : "is not in its mask");
    T got;
    __builtin_memcpy(&got, met.slots[from].bytes, sizeof got);
    return got;
}

/* Returns the lane to read from. Lanes form segments of `width`; a lane that would read outside
 * its segment reads its own value. */
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
    /* Unlike the other shuffles, xor may read from an earlier segment (PTX ISA, "shfl.sync"). */
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

namespace simt
{

/* The lanes that took part in a vote, and the lanes that voted yes. */
struct vote {
    uint32_t lanes, yes;
};

SIMT_RUNTIME inline vote take_vote(uint32_t mask, int predicate, const char *name, site at)
{
    unsigned char own = predicate != 0;
    const meeting &met = warp_exchange(mask, &own, 1, {name, false, nullptr}, at);
    vote v = {met.lanes, 0};
    for (unsigned lane = 0; lane < warp_lanes; lane++)
        if (v.lanes >> lane & 1)
            v.yes |= uint32_t{met.slots[lane].bytes[0]} << lane;
    return v;
}

} // namespace simt

inline uint32_t __ballot_sync(uint32_t mask, int predicate, simt::site at = simt::site::here())
{
    return simt::take_vote(mask, predicate, "__ballot_sync", at).yes;
}

inline int __any_sync(uint32_t mask, int predicate, simt::site at = simt::site::here())
{
    return simt::take_vote(mask, predicate, "__any_sync", at).yes != 0;
}

inline int __all_sync(uint32_t mask, int predicate, simt::site at = simt::site::here())
{
    simt::vote v = simt::take_vote(mask, predicate, "__all_sync", at);
    return v.yes == v.lanes;
}

#endif
