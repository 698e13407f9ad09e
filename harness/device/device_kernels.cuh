/* Kernels of the harness itself. */
#ifndef LB_DEVICE_KERNELS_CUH
#define LB_DEVICE_KERNELS_CUH

#include <cstddef>
#include <cstdint>

namespace lb_device_kernels
{

constexpr int block_threads = 256;

using word = unsigned long long; /* the type that atomicAdd takes */

/* What the word at `index` adds to a sum: another number for every value of the word, so that a
 * change of one word changes the sum. The output function of SplitMix64, as in base/random.c. */
__device__ inline word term(word value, size_t index)
{
    word z = value + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Adds what each thread of the block has to *sum: one atomic addition per warp. */
__device__ inline void add_of_warp(word own, word *sum)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        own += __shfl_down_sync(~0u, own, lanes);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, own);
}

/* hash_kernel: adds the terms of all words of memory to *sum, in any order, since a sum has none.
 *   memory [bytes], aligned to 8; a last word that is not whole is filled up with zeros.
 *   grid (any), block (block_threads); a thread takes every (grid size)th word.
 *   Cost: reads each byte once; bound by bandwidth. */
__global__ void hash_kernel(const unsigned char *memory, size_t bytes, word *sum)
{
    const word *words = reinterpret_cast<const word *>(memory);
    size_t count = bytes / sizeof(word), first = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
    word own = 0;
    for (size_t i = first; i < count; i += size_t{gridDim.x} * blockDim.x)
        own += term(words[i], i);
    if (first == 0 && bytes % sizeof(word) != 0) {
        word last = 0;
        for (size_t i = 0; i < bytes % sizeof(word); i++)
            last |= word{memory[count * sizeof(word) + i]} << 8 * i;
        own += term(last, count);
    }
    add_of_warp(own, sum);
}

/* How many f16 values in a word are infinite or NaN: all bits of their exponents are set. */
__device__ inline word overflowed(word values)
{
    constexpr word exponent = 0x7c00;
    word found = 0;
    for (int shift = 0; shift < 64; shift += 16)
        found += (values >> shift & exponent) == exponent;
    return found;
}

/* overflow_kernel: adds to *sum how many of the f16 values of memory are infinite or NaN, which is
 * what training with a loss scale asks of its gradients.
 *   memory [count] f16, aligned to 8.
 *   grid (any), block (block_threads); a thread takes every (grid size)th word of four values.
 *   Cost: reads each byte once; bound by bandwidth. */
__global__ void overflow_kernel(const unsigned short *memory, size_t count, word *sum)
{
    const word *words = reinterpret_cast<const word *>(memory);
    size_t first = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
    word own = 0;
    for (size_t i = first; i < count / 4; i += size_t{gridDim.x} * blockDim.x)
        own += overflowed(words[i]);
    if (first < count % 4)
        own += overflowed(memory[count / 4 * 4 + first]);
    add_of_warp(own, sum);
}

/* fixed_kernel: fixed_steps dependent multiply-adds per thread, which take as many cycles whatever
 * the device has done before; the time tells the clock of its multiprocessors.
 *   out [grid * block_threads] f32, written so that the work is not removed.
 *   grid (multiprocessors), block (block_threads). */
constexpr int fixed_steps = 1 << 14;
__global__ void fixed_kernel(float *out)
{
    float sum = static_cast<float>(threadIdx.x);
#pragma unroll 16
    for (int i = 0; i < fixed_steps; i++)
        sum = sum * 0.5f + 1.0f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

} // namespace lb_device_kernels

#endif
