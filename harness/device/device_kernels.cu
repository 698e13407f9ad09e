/* Launches the kernel of device_kernels.cuh. */
#include "device/device_kernels.h"

#include <cuda_runtime_api.h>

#include "device/device.h"
#include "device/device_kernels.cuh"

namespace kernels = lb_device_kernels;

enum lb_status lb_device_hash_add(const void *memory, size_t bytes, uint64_t *sum, void *stream,
                                  struct lb_error *err)
{
    constexpr size_t most_blocks = 2048; /* more than any device runs at once */
    size_t block_bytes = kernels::block_threads * sizeof(kernels::word);
    size_t blocks = (bytes + block_bytes - 1) / block_bytes;
    if (bytes == 0)
        return LB_OK;
    kernels::hash_kernel<<<static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks),
                           kernels::block_threads, 0, static_cast<cudaStream_t>(stream)>>>(
        static_cast<const unsigned char *>(memory), bytes, reinterpret_cast<kernels::word *>(sum));
    return lb_cuda_check(cudaGetLastError(), "launching a hash of device memory", err);
}

enum lb_status lb_device_fixed_work(float *out, int multiprocessors, void *stream,
                                    struct lb_error *err)
{
    kernels::fixed_kernel<<<static_cast<unsigned>(multiprocessors), kernels::block_threads, 0,
                            static_cast<cudaStream_t>(stream)>>>(out);
    return lb_cuda_check(cudaGetLastError(), "launching fixed work", err);
}
