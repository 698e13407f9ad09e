/* Launches the kernel of device_hash.cuh. */
#include "device/device_hash.h"

#include <cuda_runtime_api.h>

#include "device/device.h"
#include "device/device_hash.cuh"

enum lb_status lb_device_hash_add(const void *memory, size_t bytes, uint64_t *sum, void *stream,
                                  struct lb_error *err)
{
    constexpr size_t most_blocks = 2048; /* more than any device runs at once */
    size_t block_bytes = lb_hash::block_threads * sizeof(lb_hash::word);
    size_t blocks = (bytes + block_bytes - 1) / block_bytes;
    if (bytes == 0)
        return LB_OK;
    lb_hash::hash_kernel<<<static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks),
                           lb_hash::block_threads, 0, static_cast<cudaStream_t>(stream)>>>(
        static_cast<const unsigned char *>(memory), bytes, reinterpret_cast<lb_hash::word *>(sum));
    return lb_cuda_check(cudaGetLastError(), "launching a hash of device memory", err);
}
