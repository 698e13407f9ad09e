/* atomics.h: atomic functions, and the strong loads and stores of PTX.
 *
 * Atomic functions are relaxed and of device scope; the suffixes _block and _system name other
 * scopes (CUDA C++ Programming Guide, "Atomic Functions"). The other accesses follow PTX ISA,
 * "ld", "st", "atom" and "red". */
#ifndef LB_SIMT_ATOMICS_H
#define LB_SIMT_ATOMICS_H

#include "calls.h"

namespace simt
{

template <class T> SIMT_RUNTIME T strong_load(const T *from, bool acquire, scope s, site at)
{
    strong_order order = {strong::load, acquire, false, s};
    strong_begin(from, sizeof(T), order, at);
    return *from;
}

template <class T> SIMT_RUNTIME void strong_store(T *to, T value, bool release, scope s, site at)
{
    strong_order order = {strong::store, false, release, s};
    strong_begin(to, sizeof(T), order, at);
    *to = value;
    strong_end(to, order, true);
}

/* Performs *place = change(*place) and returns the earlier value. */
template <class T, class Change>
SIMT_RUNTIME T strong_update(T *place, Change change, bool acquire, bool release, scope s, site at)
{
    strong_order order = {strong::update, acquire, release, s};
    strong_begin(place, sizeof(T), order, at);
    T before = *place, after = change(before);
    *place = after;
    strong_end(place, order, before != after);
    return before;
}

} // namespace simt

/* Defines the CUDA atomic name(place, value). `result` may use `was`, the value found there. */
#define SIMT_ATOMIC_OF(name, reach, result)                                                 \
    template <class T> inline T name(T *place, T value, simt::site at = simt::site::here()) \
    {                                                                                       \
        auto change = [value](T was) { return static_cast<T>(result); };                    \
        return simt::strong_update(place, change, false, false, simt::scope::reach, at);    \
    }
#define SIMT_ATOMIC(name, result)             \
    SIMT_ATOMIC_OF(name, gpu, result)         \
    SIMT_ATOMIC_OF(name##_block, cta, result) \
    SIMT_ATOMIC_OF(name##_system, sys, result)

SIMT_ATOMIC(atomicAdd, was + value)
SIMT_ATOMIC(atomicExch, ((void)was, value))

#undef SIMT_ATOMIC
#undef SIMT_ATOMIC_OF

#endif
