/* What the small persistent LSTM kernels of these tests share.
 *
 * These kernels test the emulator and are broken on purpose. Each has a compile-time `fault`: 0
 * for the correct kernel, else the number of a row of mutants.csv. Each fault stands in the code
 * that it breaks. */
#ifndef LB_SIMT_LSTM_COMMON_CUH
#define LB_SIMT_LSTM_COMMON_CUH

#include <cooperative_groups.h>
#include <cstdint>

#include "cuda/common/ptx.cuh"

/* Arguments of the recurrent part of one layer's forward pass. The gate order is i f g o.
 *   pre [T, B, 4, H]  w_ih x + biases      w_hh [4, H, H]     h0, c0 [B, H]
 *   y [T, B, H] out   exchange [2, B, H] and counter [1]: scratch, the counter zero at launch
 * A block owns H / blocks hidden units with their four gates, and holds their weights and cell
 * state in shared memory. H is a multiple of 4 * blocks; the block is a multiple of a warp. */
struct lstm_args {
    const float *pre, *w_hh, *h0, *c0;
    float *y, *exchange;
    uint32_t *counter;
    int seq_len, batch, hidden;
};

/* A block's part of dynamic shared memory; units = H / blocks. */
struct lstm_tile {
    float *weights; /* [4, units, H] */
    float *gates;   /* [4, units, B] */
    float *cell;    /* [units, B] */
    float *h;       /* [2, B, H], clusters only */
    int units, first_unit;
};

inline size_t lstm_shared_bytes(int units, int batch, int hidden, bool cluster)
{
    size_t floats =
        4 * static_cast<size_t>(units) * hidden + 5 * static_cast<size_t>(units) * batch;
    floats += cluster ? 2 * static_cast<size_t>(batch) * hidden : 0;
    return floats * sizeof(float) + 2 * sizeof(uint64_t); /* the mbarriers come last */
}

__device__ inline lstm_tile lstm_make_tile(const lstm_args &a, float *shared, int blocks, int rank)
{
    lstm_tile t;
    t.units = a.hidden / blocks;
    t.first_unit = rank * t.units;
    t.weights = shared;
    t.gates = t.weights + 4 * t.units * a.hidden;
    t.cell = t.gates + 4 * t.units * a.batch;
    t.h = t.cell + t.units * a.batch;
    return t;
}

/* Loads weights and cell state into shared memory. A barrier must follow. */
template <int fault> __device__ inline void lstm_load(const lstm_args &a, const lstm_tile &t)
{
    int step = static_cast<int>(blockDim.x), first = static_cast<int>(threadIdx.x);
    for (int i = 4 * first; i < 4 * t.units * a.hidden; i += 4 * step) {
        int row = i / a.hidden, gate = row / t.units, unit = row % t.units;
        const float *from = a.w_hh + (gate * a.hidden + t.first_unit + unit) * a.hidden;
        lb_ptx::copy_async<16>(t.weights + i, from + i % a.hidden);
    }
    lb_ptx::copy_async_commit();
    if (fault != 6)
        lb_ptx::copy_async_wait<0>();
    for (int i = first; i < t.units * a.batch; i += step) {
        if (fault == 12 && i == 0)
            continue;
        t.cell[i] = a.c0[i % a.batch * a.hidden + t.first_unit + i / a.batch];
    }
}

/* gates = pre[step] + w_hh h. One warp computes each (row, b): its lanes split H, and shuffles
 * sum their parts. */
__device__ inline void lstm_gates(const lstm_args &a, const lstm_tile &t, const float *h, int step)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int i = warp; i < 4 * t.units * a.batch; i += warps) {
        int row = i / a.batch, b = i % a.batch;
        float sum = 0;
        for (int k = lane; k < a.hidden; k += 32)
            sum += t.weights[row * a.hidden + k] * h[b * a.hidden + k];
        for (int o = 16; o > 0; o /= 2)
            sum += __shfl_xor_sync(~0u, sum, o);
        int gate = row / t.units, unit = t.first_unit + row % t.units;
        if (lane == 0)
            t.gates[i] = sum + __ldg(&a.pre[((step * a.batch + b) * 4 + gate) * a.hidden + unit]);
    }
}

__device__ inline float lstm_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* Updates the cell state of item i = unit * B + b and returns its new h. */
__device__ inline float lstm_cell(const lstm_args &a, const lstm_tile &t, int i)
{
    int gate = t.units * a.batch;
    float in = lstm_sigmoid(t.gates[i]), forget = lstm_sigmoid(t.gates[gate + i]);
    float input = tanhf(t.gates[2 * gate + i]), out = lstm_sigmoid(t.gates[3 * gate + i]);
    t.cell[i] = forget * t.cell[i] + in * input;
    return out * tanhf(t.cell[i]);
}

#endif
