/* Runs the pointwise kernels on the host, from their own source. A grid runs as a loop when its
 * turn comes in its stream. Threads share nothing, so their order does not matter; tests/simt
 * checks which memory each thread touches. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#undef __device__
#undef __global__
#define __device__
#define __global__ static

static struct {
    unsigned x;
} blockIdx, blockDim, threadIdx;

#define LB_POINTWISE_LAUNCH_CUH /* launch() below stands for that file */
#include "cuda/common/scalar.cuh"
#include "launch_limits.h"
#include "queue.h"

namespace lb_cell
{

template <class... Parameters, class... Arguments>
enum lb_status launch(const char *what, void (*kernel)(Parameters...), int64_t count, void *stream,
                      struct lb_error *err, Arguments... arguments)
{
    if (count == 0)
        return LB_OK;
    const unsigned blocks = static_cast<unsigned>((count + block_threads - 1) / block_threads);
    struct fake_launch shape = {};
    shape.grid[0] = blocks, shape.grid[1] = shape.grid[2] = 1;
    shape.block[0] = block_threads, shape.block[1] = shape.block[2] = 1;
    if (fake_launch_allow(&shape, what, err) != LB_OK)
        return LB_FAILED;
    auto grid = [=](struct lb_error *late) {
        if (fake_launch_begin(late) != LB_OK)
            return LB_FAILED;
        blockDim.x = (unsigned)block_threads;
        for (blockIdx.x = 0; blockIdx.x * block_threads < count; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
                kernel(static_cast<Parameters>(arguments)...);
        return LB_OK;
    };
    return fake_enqueue_call(stream, grid, err);
}

} // namespace lb_cell

#include "cuda/common/cell.cu"
#include "cuda/fused/common/weights.cu"
