/* The harness's own kernels: launchers of those in device_kernels.cuh, and the kernels that only a
 * device can run because they read its clocks. */
#include "device/device_kernels.h"

#include <cuda_runtime_api.h>

#include "device/device.h"
#include "device/device_kernels.cuh"

namespace lb_device_kernels
{

__device__ unsigned long long now_ns()
{
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/* hold_kernel: waits until the host has written ticket, or a later one, to flags[0], but no longer
 * than limit_ns; then it writes ticket to flags[1]. grid (1), block (1). */
__global__ void hold_kernel(volatile unsigned *flags, unsigned ticket, unsigned long long limit_ns)
{
    unsigned long long start = now_ns();
    while (static_cast<int>(flags[0] - ticket) < 0)
        if (now_ns() - start > limit_ns) {
            flags[1] = ticket;
            return;
        }
}

/* clock_kernel: each block writes what its multiprocessor's clocks say to readings
 * [LB_CLOCK_SLOTS]. Where two blocks share a multiprocessor, the clocks are those of either. grid
 * (multiprocessors), block (1). */
__global__ void clock_kernel(lb_clock_reading *readings)
{
    unsigned multiprocessor;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    if (multiprocessor < LB_CLOCK_SLOTS) {
        readings[multiprocessor].cycles = static_cast<uint64_t>(clock64());
        readings[multiprocessor].ns = now_ns();
    }
}

} // namespace lb_device_kernels

namespace kernels = lb_device_kernels;

/* The number of blocks that read `bytes` bytes word by word. */
static unsigned blocks_for(size_t bytes)
{
    constexpr size_t most_blocks = 2048; /* more than any device runs at once */
    size_t block_bytes = kernels::block_threads * sizeof(kernels::word);
    size_t blocks = (bytes + block_bytes - 1) / block_bytes;
    return static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks);
}

enum lb_status lb_device_hash_add(const void *memory, size_t bytes, uint64_t *sum, void *stream,
                                  struct lb_error *err)
{
    if (bytes == 0)
        return LB_OK;
    kernels::hash_kernel<<<blocks_for(bytes), kernels::block_threads, 0,
                           static_cast<cudaStream_t>(stream)>>>(
        static_cast<const unsigned char *>(memory), bytes, reinterpret_cast<kernels::word *>(sum));
    return lb_cuda_check(cudaGetLastError(), "launching a hash of device memory", err);
}

enum lb_status lb_device_overflow_add(const void *memory, size_t count, uint64_t *sum, void *stream,
                                      struct lb_error *err)
{
    if (count == 0)
        return LB_OK;
    kernels::overflow_kernel<<<blocks_for(2 * count), kernels::block_threads, 0,
                               static_cast<cudaStream_t>(stream)>>>(
        static_cast<const unsigned short *>(memory), count, reinterpret_cast<kernels::word *>(sum));
    return lb_cuda_check(cudaGetLastError(), "launching a check for overflow", err);
}

int lb_device_find_code(void)
{
    cudaFuncAttributes code;
    return cudaFuncGetAttributes(&code, reinterpret_cast<const void *>(kernels::fixed_kernel));
}

size_t lb_device_fixed_bytes(int multiprocessors)
{
    return static_cast<size_t>(multiprocessors) * kernels::block_threads * sizeof(float);
}

enum lb_status lb_device_fixed_work(float *out, int multiprocessors, void *stream,
                                    struct lb_error *err)
{
    kernels::fixed_kernel<<<static_cast<unsigned>(multiprocessors), kernels::block_threads, 0,
                            static_cast<cudaStream_t>(stream)>>>(out);
    return lb_cuda_check(cudaGetLastError(), "launching fixed work", err);
}

enum lb_status lb_device_hold(volatile unsigned *flags, unsigned ticket, void *stream,
                              struct lb_error *err)
{
    kernels::hold_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(flags, ticket, LB_HOLD_NS);
    return lb_cuda_check(cudaGetLastError(), "holding the stream", err);
}

enum lb_status lb_device_read_clocks(struct lb_clock_reading *readings, int multiprocessors,
                                     void *stream, struct lb_error *err)
{
    kernels::clock_kernel<<<static_cast<unsigned>(multiprocessors), 1, 0,
                            static_cast<cudaStream_t>(stream)>>>(readings);
    return lb_cuda_check(cudaGetLastError(), "reading the device's clocks", err);
}
