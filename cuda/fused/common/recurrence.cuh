/* What the kernels of the families share: the cell's arithmetic, indices, and for cluster and grid
 * the weights that stay in registers and shared memory for the whole sequence, and the shuffles
 * between a matrix product and its cells. All 32 lanes of a warp must call a function that
 * shuffles. A function accesses no memory but what its arguments point to. */
#ifndef LB_FUSED_RECURRENCE_CUH
#define LB_FUSED_RECURRENCE_CUH

#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/common/ptx.cuh"
#include "cuda/common/scalar.cuh"
#include "cuda/fused/common/args.h"

namespace lb_recurrence
{

using lb_cell::convert_to_real;
using lb_cell::convert_to_storage;

constexpr int lanes = 32;

/* Returns the maximum of dynamic shared memory per block, in bytes, in code for an architecture
 * such as 90. A kernel whose tile needs more is compiled with an empty body. Source: CUDA C++
 * Programming Guide, "Technical Specifications per Compute Capability". */
constexpr size_t shared_limit_of(int architecture)
{
    return (architecture >= 120 ? 99 : architecture < 90 ? 163 : 227) << 10;
}

#ifdef __CUDA_ARCH__
constexpr size_t shared_limit = shared_limit_of(__CUDA_ARCH__ / 10);
#else
constexpr size_t shared_limit = shared_limit_of(90);
#endif

/* ---- Experiments ----------------------------------------------------------------------------- */

/* cuda/try_fused.cu is compiled with one of these as 0 to leave out a part of each step. The time
 * that this saves is the cost of the part; the results are wrong. */
#ifndef LB_FUSED_PRODUCT
#define LB_FUSED_PRODUCT 1
#endif
#ifndef LB_FUSED_EXCHANGE
#define LB_FUSED_EXCHANGE 1
#endif

/* The parts of a step that a warp has come to: `met` is after the barrier, or the exchange of sums
 * between warps. Only cuda/try_fused.cu keeps their times. */
enum class part { begun, arrived, multiplied, met, sent, stored };

#ifndef LB_FUSED_TRACE
__device__ inline void trace(int, part)
{
}
#endif

/* ---- Numbers --------------------------------------------------------------------------------- */

/* Sigmoid and tanh from the hardware's approximations of 2^x and 1 / x, without the instructions
 * that handle denormals. The absolute error is a few times 2^-23, far below the rounding of f16 and
 * bf16. Large |v| gives the right limits, because 2^x then goes to 0 or to infinity. A NaN stays a
 * NaN. */
struct fast_functions {
    static constexpr float log2_e = 1.44269504f;

    static __device__ inline float sigmoid(float v)
    {
        return lb_ptx::reciprocal_approx(1.0f + lb_ptx::exp2_approx(-log2_e * v));
    }
    static __device__ inline float tangent(float v)
    {
        float above_one = 1.0f + lb_ptx::exp2_approx(2.0f * log2_e * v);
        return 1.0f - 2.0f * lb_ptx::reciprocal_approx(above_one);
    }
};

/* The same with exp, division and tanh in full precision, for f64, f32 and TF32. */
struct exact_functions {
    template <class R> static __device__ inline R sigmoid(R v)
    {
        return lb_cell::sigmoid(v);
    }
    template <class R> static __device__ inline R tangent(R v)
    {
        return lb_cell::tangent(v);
    }
};

/* The functions for storage type T. */
template <class T> struct functions_of : exact_functions {
};
template <> struct functions_of<__half> : fast_functions {
};
template <> struct functions_of<__nv_bfloat16> : fast_functions {
};

/* The activation of g and of c for storage type T: tanh, or a relu that propagates NaN. */
template <class T, class R> __device__ inline R squash(R v, bool relu)
{
    if (relu)
        return v < R(0) ? R(0) : v;
    return functions_of<T>::tangent(v);
}

/* Returns the 32 bits of two 16-bit numbers. */
template <class Pair> __device__ inline uint32_t bits_of(Pair pair)
{
    uint32_t bits;
    memcpy(&bits, &pair, sizeof(bits));
    return bits;
}

/* Returns two values, each rounded once to T, as the low and the high half of 32 bits. That is one
 * instruction. The one that converts a single value to f16 takes several times as long. */
template <class T> __device__ inline uint32_t bits_of_pair(float low, float high);
template <> __device__ inline uint32_t bits_of_pair<__half>(float low, float high)
{
    return bits_of(__floats2half2_rn(low, high));
}
template <> __device__ inline uint32_t bits_of_pair<__nv_bfloat16>(float low, float high)
{
    return bits_of(__floats2bfloat162_rn(low, high));
}

/* ---- Indices --------------------------------------------------------------------------------- */

/* Returns the number of steps of a batch row. */
template <class Args> __device__ inline int length_of(const Args &a, int row)
{
    return a.lengths ? a.lengths[row] : a.seq_len;
}

/* Returns the time that a row reads at step `step`. Direction 1 starts at the row's own end. Past
 * the end, time is equal to step in both directions. */
__device__ inline int time_of(int length, int direction, int step)
{
    return direction == 1 && step < length ? length - 1 - step : step;
}

/* Return the index in [T, B, D], and in [T, B, D, H], of what a row of that length reads at step
 * `step`. Calling time_of here would make the tf32 kernels of family step longer. */
template <class Args>
__device__ inline size_t row_in_sequence(const Args &a, int direction, int length, int step,
                                         int row)
{
    int time = direction == 1 && step < length ? length - 1 - step : step;
    return (static_cast<size_t>(time) * a.batch + row) * a.directions + direction;
}
template <class Args>
__device__ inline size_t sequence_index(const Args &a, int direction, int length, int step, int row,
                                        int unit)
{
    return row_in_sequence(a, direction, length, step, row) * a.hidden + unit;
}

/* Return an index in [D, B], and in [D, B, H]. */
template <class Args> __device__ inline size_t row_in_state(const Args &a, int direction, int row)
{
    return static_cast<size_t>(direction) * a.batch + row;
}
template <class Args>
__device__ inline size_t state_index(const Args &a, int direction, int row, int unit)
{
    return row_in_state(a, direction, row) * a.hidden + unit;
}

/* Returns the number of elements of [D, B, H]. */
template <class Args> __device__ inline size_t state_size(const Args &a)
{
    return static_cast<size_t>(a.directions) * a.batch * a.hidden;
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* A warp's weight fragments, which stay in place for the whole sequence: 16 bytes per lane and
 * fragment, Tile::resident fragments in registers and Tile::spilled in shared memory. With
 * Tile::spread the spilled ones lie evenly among the others, so that they are read while the others
 * are multiplied; without it they are the last. */
template <class Tile> struct stationary {
    uint32_t held[Tile::resident][4];
    const uint4 *spilled; /* [spilled, 32]; a lane reads only what it copied itself */

    /* The number of spilled fragments before fragment f, and whether f itself is spilled. */
    static __device__ constexpr int spilled_before(int f)
    {
        return Tile::spread         ? f * Tile::spilled / Tile::fragments
               : f > Tile::resident ? f - Tile::resident
                                    : 0;
    }
    static __device__ constexpr bool is_spilled(int f)
    {
        return spilled_before(f + 1) > spilled_before(f);
    }

    /* Loads the fragments of the warp that has number `warp_of_all` in packed [D, blocks, warps,
     * fragments, 32] in global memory. room [warps, spilled, 32] is in shared memory. */
    __device__ inline void load(const void *packed, size_t warp_of_all, int warp, int lane,
                                uint4 *room)
    {
        const uint4 *from =
            static_cast<const uint4 *>(packed) + warp_of_all * Tile::fragments * lanes + lane;
        room += warp * Tile::spilled * lanes + lane;
        spilled = room;
        constexpr int parts = Tile::spilled > 0 ? Tile::spilled : 1; /* no division by 0 */
        for (int n = 0; n < Tile::spilled; n++) {
            int f = Tile::spread ? ((n + 1) * Tile::fragments - 1) / parts : Tile::resident + n;
            lb_ptx::copy_async<16>(room + n * lanes, from + f * lanes);
        }
        lb_ptx::copy_async_commit();
#pragma unroll
        for (int f = 0; f < Tile::fragments; f++) {
            if (is_spilled(f))
                continue;
            uint4 v = from[f * lanes];
            uint32_t(&a)[4] = held[f - spilled_before(f)];
            a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
        }
        lb_ptx::copy_async_wait<0>();
    }

    /* Waits until all weights are in their registers. Otherwise each step's first product waits for
     * the scoreboard of their loads, which other loads share. A lane hands each register to itself,
     * because the compiler does not move a shuffle behind a loop's beginning. */
    __device__ inline void settle(int lane)
    {
#pragma unroll
        for (int f = 0; f < Tile::resident; f++)
            for (int r = 0; r < 4; r++)
                held[f][r] = __shfl_sync(~0u, held[f][r], lane);
    }

    /* Copies fragment f to a. f must be a compile-time constant after unrolling, because registers
     * cannot be indexed. */
    __device__ inline void get(int f, uint32_t (&a)[4]) const
    {
        if (!is_spilled(f)) {
            for (int r = 0; r < 4; r++)
                a[r] = held[f - spilled_before(f)][r];
        } else {
            uint4 v = spilled[spilled_before(f) * lanes];
            a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
        }
    }
};

/* ---- Between a product and its cells --------------------------------------------------------- */

/* Returns the gates i f g o of one cell. A lane's four sums are two gates of two columns, and lane
 * ^ 4 has the other two gates of the same columns. Two shuffles exchange them, so that each lane
 * has all gates of one column. */
__device__ inline float4 gather_gates(const float (&sum)[4], int lane)
{
    bool odd = lane / 4 % 2;
    float keep0 = odd ? sum[1] : sum[0], keep1 = odd ? sum[3] : sum[2];
    float got0 = __shfl_xor_sync(~0u, odd ? sum[0] : sum[1], 4);
    float got1 = __shfl_xor_sync(~0u, odd ? sum[2] : sum[3], 4);
    return odd ? make_float4(got0, got1, keep0, keep1) : make_float4(keep0, keep1, got0, got1);
}

/* Gathers four columns of one unit in `four`, which may be sum. A lane's four sums are two units
 * (rows g and g + 8) of two columns, and lane ^ 1 has the same units of the two neighbouring
 * columns. Two shuffles exchange them, so that an even lane has all four columns of row g and an
 * odd lane those of row g + 8. */
__device__ inline void gather_columns(const float (&sum)[4], int lane, float (&four)[4])
{
    bool odd = lane % 2;
    float got0 = __shfl_xor_sync(~0u, odd ? sum[0] : sum[2], 1);
    float got1 = __shfl_xor_sync(~0u, odd ? sum[1] : sum[3], 1);
    four[0] = odd ? got0 : sum[0], four[1] = odd ? got1 : sum[1];
    four[2] = odd ? sum[2] : got0, four[3] = odd ? sum[3] : got1;
}

/* ---- Backward cell --------------------------------------------------------------------------- */

/* What the backward step of one cell reads from global memory. */
template <class T> struct cell_inputs {
    float4 gates; /* i f g o, activated */
    float c, c_prev;
    T dy; /* as it was loaded: to convert it is to wait for it */
};

/* Returns the gradients of the pre-activations i f g o. dh and dc are the gradients of the state
 * after the step, dh without dy. On return dc is the gradient of the c before the step. */
template <class Functions, class T>
__device__ inline float4 cell_back(const cell_inputs<T> &in, float dh, float &dc)
{
    const float4 &g = in.gates;
    float squashed = Functions::tangent(in.c);
    dh += convert_to_real(in.dy);
    dc += dh * g.w * (1 - squashed * squashed);
    float4 d = make_float4(dc * g.z * g.x * (1 - g.x), dc * in.c_prev * g.y * (1 - g.y),
                           dc * g.x * (1 - g.z * g.z), dh * squashed * g.w * (1 - g.w));
    dc *= g.y;
    return d;
}

} // namespace lb_recurrence

#endif
