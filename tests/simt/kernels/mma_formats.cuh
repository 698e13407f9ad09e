/* mma_formats.cuh: one matrix product in each tensor-core format that the project uses. */
#ifndef LB_SIMT_MMA_FORMATS_CUH
#define LB_SIMT_MMA_FORMATS_CUH

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/common/ptx.cuh"

/* Packs two consecutive elements into a register, the first into the low half. */
__device__ inline uint32_t pack_half(float low, float high)
{
    return __half_as_ushort(__float2half_rn(low)) |
           static_cast<uint32_t>(__half_as_ushort(__float2half_rn(high))) << 16;
}

__device__ inline uint32_t pack_bfloat(float low, float high)
{
    return __bfloat16_as_ushort(__float2bfloat16_rn(low)) |
           static_cast<uint32_t>(__bfloat16_as_ushort(__float2bfloat16_rn(high))) << 16;
}

/* Stores a fragment as d [16, 8] in row-major order. */
__device__ inline void store_tile(float *d, const float (&sum)[4])
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    for (int i = 0; i < 4; i++)
        d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
}

/* mma_formats_kernel: d [3, 16, 8] f32 = a [16, 16] b [16, 8], f32 rounded to f16, bf16 and TF32.
 *   grid (1), block (32).  No shared memory. */
template <int fault>
__global__ void __launch_bounds__(32) mma_formats_kernel(const float *a, const float *b, float *d)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    uint32_t half_a[4], half_b[2], bfloat_a[4], bfloat_b[2];
    for (int r = 0; r < 4; r++) {
        int row = fault == 41 ? g + r / 2 * 8 : g + r % 2 * 8;
        const float *from = a + row * 16 + 2 * t + r / 2 * 8;
        half_a[r] = pack_half(from[0], from[1]);
        bfloat_a[r] = pack_bfloat(from[0], from[1]);
    }
    for (int r = 0; r < 2; r++) {
        const float *from = b + (2 * t + r * 8) * 8 + g;
        half_b[r] = pack_half(from[0], from[8]);
        bfloat_b[r] = pack_bfloat(from[0], from[8]);
    }
    float sum[3][4] = {};
    lb_ptx::mma_f16(sum[0], half_a, half_b, sum[0]);
    lb_ptx::mma_bf16(sum[1], bfloat_a, bfloat_b, sum[1]);
    for (int k = 0; k < 16; k += 8) { /* a TF32 product is half as deep, so it takes two */
        uint32_t tf32_a[4], tf32_b[2];
        for (int r = 0; r < 4; r++)
            tf32_a[r] = lb_ptx::to_tf32(a[(g + r % 2 * 8) * 16 + k + t + r / 2 * 4]);
        for (int r = 0; r < 2; r++)
            tf32_b[r] = lb_ptx::to_tf32(b[((fault == 42 ? 0 : k) + t + r * 4) * 8 + g]);
        lb_ptx::mma_tf32(sum[2], tf32_a, tf32_b, sum[2]);
    }
    for (int f = 0; f < 3; f++)
        store_tile(d + f * 128, sum[f]);
}

#endif
