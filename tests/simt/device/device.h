/* CUDA's device names for a kernel compiled for the host.
 *
 * Kernels include it through cuda/common/ptx.cuh of this folder, which precedes
 * CUDA's headers on the include path. CUDA's own headers are used unchanged: they declare
 * the vector types and the conversions of half and bfloat16 for the host too. */
#ifndef LB_SIMT_DEVICE_H
#define LB_SIMT_DEVICE_H

#include <cstddef>

#ifdef __SANITIZE_THREAD__
/* The compiler's instrumentation does not announce these calls, so they are redirected to the
 * runtime by name. */
extern "C" {
void *memcpy(void *to, const void *from, size_t n) noexcept __asm__("simt_memmove");
void *memmove(void *to, const void *from, size_t n) noexcept __asm__("simt_memmove");
void *memset(void *to, int value, size_t n) noexcept __asm__("simt_memset");
}
#endif

#include <cuda_runtime.h>

#include "calls.h"

#include <cmath>
#include <cstdint>
#include <cstring>

/* Kernels have dynamic shared memory only: LB_DYNAMIC_SHARED. Static variables do not compile. */
#undef __shared__
#undef __launch_bounds__
#define __launch_bounds__(...)

#define threadIdx (::simt::self->thread_index)
#define blockIdx  (::simt::self->block_index)
#define blockDim  (::simt::block_size)
#define gridDim   (::simt::grid_size)

/* CUDA C++ Programming Guide, "Synchronization Functions". */

inline void __syncthreads(simt::site at = simt::site::here())
{
    simt::block_barrier(0, 0, at);
}

inline void __syncwarp(simt::site at = simt::site::here())
{
    simt::warp_exchange(nullptr, 0, {"__syncwarp", true, nullptr}, at);
}

/* PTX ISA, "ld.global.nc": the memory must not change while the kernel runs. */
template <class T> inline T __ldg(const T *from, simt::site at = simt::site::here())
{
    simt::load_read_only(from, sizeof(T), at);
    return *from;
}

/* Loads and stores with cache hints, which are plain ones here. */

template <class T> inline T __ldcs(const T *from)
{
    return *from;
}

template <class T> inline void __stcs(T *to, T value)
{
    *to = value;
}

/* Arithmetic. */

inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

template <class To, class From> inline To simt_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "a reinterpretation keeps the size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

inline float __uint_as_float(unsigned x)
{
    return simt_bits<float>(x);
}

inline unsigned __float_as_uint(float x)
{
    return simt_bits<unsigned>(x);
}

template <class T> inline T min(T a, T b)
{
    return b < a ? b : a;
}

template <class T> inline T max(T a, T b)
{
    return a < b ? b : a;
}

#include "atomics.h"
#include "warp.h"

#endif
