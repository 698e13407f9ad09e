/* warp.h: shuffles and votes of whole warps. CUDA C++ Programming Guide, "Warp Shuffle Functions",
 * "Warp Vote Functions". None of them orders memory. */
#ifndef LB_SIMT_WARP_H
#define LB_SIMT_WARP_H

#include "calls.h"

#include <cstdint>

namespace simt
{

/* A vote or a shuffle whose mask is not that of the whole warp is refused. */
inline const meeting &masked_exchange(uint32_t mask, const void *operand, size_t bytes,
                                      const char *name, site at)
{
    if (mask != ~0u)
        fail(at, "%s with mask %08x: the emulator knows whole warps", name, mask);
    return warp_exchange(operand, bytes, {name, false, nullptr}, at);
}

/* Returns the value that lane `from` passed. A lane that has exited passes none, which is an error.
 */
template <class T>
SIMT_RUNTIME T shuffle(uint32_t mask, T value, unsigned from, const char *name, site at)
{
    static_assert(sizeof(T) <= sizeof(lane_slot::bytes), "a shuffle moves up to 64 bytes");
    const meeting &met = masked_exchange(mask, &value, sizeof value, name, at);
    if (!(met.lanes >> from & 1))
        fail(at, "%s: lane %u reads lane %u, which has exited", name, self->lane, from);
    T got;
    __builtin_memcpy(&got, met.slots[from].bytes, sizeof got);
    return got;
}

} // namespace simt

template <class T>
inline T __shfl_sync(uint32_t mask, T value, int from, simt::site at = simt::site::here())
{
    return simt::shuffle(mask, value, from % simt::warp_lanes, "__shfl_sync", at);
}

template <class T>
inline T __shfl_xor_sync(uint32_t mask, T value, int lanes, simt::site at = simt::site::here())
{
    unsigned from = (simt::self->lane ^ lanes) % simt::warp_lanes;
    return simt::shuffle(mask, value, from, "__shfl_xor_sync", at);
}

/* A lane that would read from behind the warp reads its own value. */
template <class T>
inline T __shfl_down_sync(uint32_t mask, T value, unsigned by, simt::site at = simt::site::here())
{
    unsigned lane = simt::self->lane, from = lane + by < simt::warp_lanes ? lane + by : lane;
    return simt::shuffle(mask, value, from, "__shfl_down_sync", at);
}

SIMT_RUNTIME inline int __all_sync(uint32_t mask, int predicate, simt::site at = simt::site::here())
{
    unsigned char own = predicate != 0;
    const simt::meeting &met = simt::masked_exchange(mask, &own, 1, "__all_sync", at);
    for (unsigned lane = 0; lane < simt::warp_lanes; lane++)
        if (met.lanes >> lane & 1 && !met.slots[lane].bytes[0])
            return 0;
    return 1;
}

#endif
