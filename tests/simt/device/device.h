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
void *memcpy(void *to, const void *from, size_t n) noexcept __asm__("simt_memcpy");
void *memmove(void *to, const void *from, size_t n) noexcept __asm__("simt_memmove");
void *memset(void *to, int value, size_t n) noexcept __asm__("simt_memset");
}
#endif

#include <cuda_runtime.h>

#include "calls.h"

#include <cmath>
#include <cstdint>
#include <cstring>

/* Static __shared__ variables lie in the program's thread-local segment: see runtime/memory.cpp.
 * A section of their own does not work, because GCC ignores it for static variables of
 * templates. Without __constinit, GCC would guard a variable whose type has a constructor, even
 * an empty one. Clang is used only to lint this code. */
#ifdef __clang__
#define __constinit
#endif
#undef __shared__
#define __shared__ static thread_local __attribute__((used)) __constinit
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __cluster_dims__
#define __cluster_dims__(...)

#define threadIdx (::simt::self->thread_index)
#define blockIdx  (::simt::self->block_index)
#define blockDim  (::simt::block_size)
#define gridDim   (::simt::grid_size)
static constexpr int warpSize = 32;

/* Barriers and fences. CUDA C++ Programming Guide, "Memory Fence Functions", "Synchronization
 * Functions". */

inline void __syncthreads(simt::site at = simt::site::here())
{
    simt::block_barrier(0, 0, at);
}

inline void __syncwarp(uint32_t mask = ~0u, simt::site at = simt::site::here())
{
    simt::warp_exchange(mask, nullptr, 0, {"__syncwarp", true, nullptr}, at);
}

inline void __threadfence_block()
{
    simt::fence(simt::scope::cta);
}

inline void __threadfence()
{
    simt::fence(simt::scope::gpu);
}

inline void __nanosleep(unsigned, simt::site at = simt::site::here())
{
    simt::yield(at);
}

inline long long clock64(simt::site at = simt::site::here())
{
    static long long ticks;
    simt::yield(at);
    return ++ticks;
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
