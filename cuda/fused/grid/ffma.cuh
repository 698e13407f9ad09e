/* The number format of f32 without tensor cores, for the grid kernels. Packets and the order of
 * weights are those of TF32. A lane needs units that other lanes have received, so that packets go
 * through shared memory first. */
#ifndef LB_GRID_FFMA_CUH
#define LB_GRID_FFMA_CUH

#include "cuda/fused/grid/grid.cuh"

namespace lb_grid
{

/* With the same weights as in TF32, a lane multiplies rows g and g + 8 at its 4 units
 * by all 8 columns, and finish adds the sums of the 4 lanes that share these rows. */
struct fma_sums {
    float v[2][8];
    __device__ inline void finish(float (&d)[4], int lane) const
    {
        bool high = lane & 2,
             odd = lane & 1; /* high: columns 4 to 7; odd: the last two of four columns */
        for (int r = 0; r < 2; r++) {
            float half[4];
            for (int e = 0; e < 4; e++) {
                float got = __shfl_xor_sync(~0u, high ? v[r][e] : v[r][e + 4], 2);
                half[e] = (high ? v[r][e + 4] : v[r][e]) + got;
            }
            for (int e = 0; e < 2; e++) {
                float got = __shfl_xor_sync(~0u, odd ? half[e] : half[e + 2], 1);
                d[2 * r + e] = (odd ? half[e + 2] : half[e]) + got;
            }
        }
    }
};

struct fma_operand {
    const float4 *slice;
    int t; /* this lane's quarter of the depth */
};

struct f32_math : float_math {
    static constexpr lb_grid_math figure = LB_GRID_F32;
    using sums = fma_sums;
    using operand = fma_operand;
    static constexpr bool staged = true; /* a lane needs what other lanes received */

    static __device__ inline uint32_t bits(float v)
    {
        return __float_as_uint(v);
    }
    static __device__ inline operand take(const unsigned char *slice, int lane)
    {
        return {reinterpret_cast<const float4 *>(slice), lane % 4};
    }

    /* The operands of a packet go through stage [slices], so that all lanes can read what each lane
     * received. A packet of a later window takes the place of one that all lanes have read: they
     * have met for others since then. */
    template <int slices, class Word>
    static __device__ inline void receive(const Word &word, unsigned char *stage, int lane,
                                          operand (&b)[slices])
    {
        for (int i = 0; i < slices; i++)
            *reinterpret_cast<uint4 *>(stage + i * slice_bytes + place_in_slice(lane)) =
                make_uint4(word(i, 0), word(i, 1), word(i, 2), word(i, 3));
        __syncwarp();
        for (int i = 0; i < slices; i++)
            b[i] = take(stage + i * slice_bytes, lane);
    }

    static __device__ inline void multiply(sums &s, const uint32_t (&a)[2][4], const operand &b)
    {
        for (int column = 0; column < 8; column++) {
            float4 h = b.slice[chunk_in_slice(column, b.t)]; /* 4 units */
            for (int r = 0; r < 2; r++) {
                float &sum = s.v[r][column];
                sum = __fmaf_rn(__uint_as_float(a[0][r]), h.x, sum);
                sum = __fmaf_rn(__uint_as_float(a[0][r + 2]), h.y, sum);
                sum = __fmaf_rn(__uint_as_float(a[1][r]), h.z, sum);
                sum = __fmaf_rn(__uint_as_float(a[1][r + 2]), h.w, sum);
            }
        }
    }
};

} // namespace lb_grid

#endif
