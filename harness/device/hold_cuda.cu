/* The kernel that holds a stream until the host has enqueued what is to be timed. */
#include <cuda_runtime_api.h>

#include "device/device.h"

namespace lb_hold
{

__device__ unsigned long long now_ns()
{
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/* hold_kernel: waits for the host, and no longer than limit_ns. grid (1), block (1). */
__global__ void hold_kernel(volatile unsigned *flags, unsigned ticket, unsigned long long limit_ns)
{
    unsigned long long start = now_ns();
    while (static_cast<int>(flags[0] - ticket) < 0)
        if (now_ns() - start > limit_ns) {
            flags[1] = ticket;
            return;
        }
}

} // namespace lb_hold

int lb_cuda_hold(unsigned *flags, unsigned ticket, void *stream)
{
    lb_hold::hold_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(flags, ticket, LB_HOLD_NS);
    return cudaGetLastError();
}
