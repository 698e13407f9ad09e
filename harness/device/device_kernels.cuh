/* Kernels of the harness itself. */
#ifndef LB_DEVICE_KERNELS_CUH
#define LB_DEVICE_KERNELS_CUH

#include <cstddef>
#include <cstdint>

namespace lb_device_kernels
{

constexpr int block_threads = 256;

using word = unsigned long long; /* the type that atomicAdd takes */

/* What the word at `index` adds to a sum: another number for every value of the word, so a change
 * of one word always changes the sum. The output function of SplitMix64, as in base/random.c. */
__device__ inline word term(word value, size_t index)
{
    word z = value + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
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
    for (int lanes = 16; lanes > 0; lanes /= 2)
        own += __shfl_down_sync(~0u, own, lanes);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, own);
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
