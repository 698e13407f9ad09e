/* mma_tile.cuh: one warp's tile on the tensor cores. Its operands pass through shared memory in
 * two stages. */
#ifndef LB_SIMT_MMA_TILE_CUH
#define LB_SIMT_MMA_TILE_CUH

#include <cstdint>
#include <cuda_bf16.h>

#include "cuda/common/ptx.cuh"

struct alignas(16) mma_stage {
    __nv_bfloat16 a[16][16];
    __nv_bfloat16 b[8][16];
};

/* Loads columns k to k + 15 of both operands; each lane copies 16 bytes of a row. */
__device__ inline void mma_load(mma_stage &to, const __nv_bfloat16 *a, const __nv_bfloat16 *b,
                                int depth, int k)
{
    int lane = threadIdx.x % 32, row = lane / 2, part = lane % 2 * 8;
    lb_ptx::copy_async<16>(&to.a[row][part], a + row * depth + k + part);
    if (row < 8)
        lb_ptx::copy_async<16>(&to.b[row][part], b + row * depth + k + part);
    lb_ptx::copy_async_commit();
}

/* mma_tile_kernel: d [16, 8] f32 = a [16, K] b^T, b [8, K], bf16, K a multiple of 16.
 *   grid (1), block (32).  Dynamic shared memory: two stages. */
template <int fault>
__global__ void __launch_bounds__(32)
    mma_tile_kernel(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *d, int depth)
{
    LB_DYNAMIC_SHARED(mma_stage, stages); /* [2] */
    int lane = threadIdx.x % 32;
    float sum[4] = {0, 0, 0, 0};
    mma_load(stages[0], a, b, depth, 0);
    for (int k = 0; k < depth; k += 16) {
        int stage = k / 16 % 2;
        if (k + 16 < depth)
            mma_load(stages[1 - stage], a, b, depth, k + 16);
        else
            lb_ptx::copy_async_commit(); /* an empty group, so that the count below is right at the
                                            end */
        if (fault == 33)
            lb_ptx::copy_async_wait<2>();
        else
            lb_ptx::copy_async_wait<1>();
        if (fault != 32)
            __syncwarp(); /* makes the copies of the other lanes visible */
        const mma_stage &from = stages[stage];
        uint32_t fragment_a[4], fragment_b[2];
        int row = fault == 31 ? lane % 8 : lane % 16;
        lb_ptx::ldmatrix(fragment_a, &from.a[row][lane / 16 * 8]);
        int part = fault == 34 ? 0 : lane / 8 % 2 * 8;
        lb_ptx::ldmatrix(fragment_b, &from.b[lane % 8][part]);
        lb_ptx::mma_bf16(sum, fragment_a, fragment_b, sum);
        if (fault != 9)
            __syncwarp(); /* all lanes have read this stage before the next copies write to it */
    }
    for (int i = 0; i < 4; i++)
        d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];
}

#endif
