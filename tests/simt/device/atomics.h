/* atomics.h: the relaxed loads and stores of PTX ("ld", "st") and CUDA's atomic functions, which
 * are relaxed and of device scope (CUDA C++ Programming Guide, "Atomic Functions"). */
#ifndef LB_SIMT_ATOMICS_H
#define LB_SIMT_ATOMICS_H

#include "calls.h"

namespace simt
{

template <class T> SIMT_RUNTIME T strong_load(const T *from, scope s, site at)
{
    strong_access(from, sizeof(T), strong::load, s, at);
    return *from;
}

template <class T> SIMT_RUNTIME void strong_store(T *to, T value, scope s, site at)
{
    strong_access(to, sizeof(T), strong::store, s, at);
    *to = value;
    progress();
}

/* Performs *place = change(*place) and returns the earlier value. A thread that spins on an update
 * which changes nothing makes no progress. */
template <class T, class Change> SIMT_RUNTIME T strong_update(T *place, Change change, site at)
{
    strong_access(place, sizeof(T), strong::update, scope::gpu, at);
    T before = *place, after = change(before);
    *place = after;
    if (before != after)
        progress();
    return before;
}

} // namespace simt

template <class T> inline T atomicAdd(T *place, T value, simt::site at = simt::site::here())
{
    return simt::strong_update(
        place, [value](T was) { return static_cast<T>(was + value); }, at);
}

template <class T> inline T atomicExch(T *place, T value, simt::site at = simt::site::here())
{
    return simt::strong_update(
        place, [value](T) { return value; }, at);
}

#endif
