/* lstm_grid.cuh: h goes through global memory, with one barrier of the whole grid per step: that
 * of cooperative groups, or one made from a counter. The kernels are launched cooperatively. */
#ifndef LB_SIMT_LSTM_GRID_CUH
#define LB_SIMT_LSTM_GRID_CUH

#include <cstring>

#include "lstm_common.cuh"

/* Computes the cells of one step and writes h to y and to where the next step reads it. */
template <int fault>
__device__ inline void lstm_step_cells(const lstm_args &a, const lstm_tile &t, float *h_next,
                                       int step)
{
    for (int i = threadIdx.x; i < t.units * a.batch; i += blockDim.x) {
        int b = i % a.batch, unit = t.first_unit + i / a.batch;
        float h = lstm_cell(a, t, i);
        h_next[b * a.hidden + unit] = h;
        a.y[(step * a.batch + b) * a.hidden + unit + (fault == 13 ? a.batch * a.hidden : 0)] = h;
    }
}

/* lstm_grid_kernel: lstm_args above.  grid (blocks), block (32 n).  Dynamic shared memory:
 * lstm_shared_bytes. */
template <int fault> __global__ void __launch_bounds__(256) lstm_grid_kernel(lstm_args a)
{
    LB_DYNAMIC_SHARED(float, shared);
    lstm_tile t = lstm_make_tile(a, shared, gridDim.x, blockIdx.x);
    lstm_load<fault>(a, t);
    __syncthreads();
    const float *h = a.h0;
    for (int step = 0; step < a.seq_len; step++) {
        lstm_gates(a, t, h, step);
        if (fault != 1)
            __syncthreads();
        float *h_next = a.exchange + (fault == 3 ? 0 : step % 2) * a.batch * a.hidden;
        lstm_step_cells<fault>(a, t, h_next, step);
        if (fault == 10 && threadIdx.x == 0) /* reads a peer's h before the barrier */
            memcpy(a.y + (step * a.batch) * a.hidden, h_next, a.hidden * sizeof(float));
        if (fault == 11 && blockIdx.x == 1 && step == 1)
            return;
        if (fault == 2)
            __syncthreads();
        else if (fault != 5 || threadIdx.x < blockDim.x / 2)
            cooperative_groups::this_grid().sync();
        h = h_next;
    }
}

/* Waits until every block has added 1 to the counter. What each of their threads wrote before is
 * then visible. */
template <int fault> __device__ inline void counter_barrier(uint32_t *counter, uint32_t target)
{
    using lb_ptx::scope;
    __syncthreads();
    if (threadIdx.x == 0) {
        if (fault == 16)
            __threadfence_block();
        else if (fault != 4 && fault != 15)
            __threadfence();
        if (fault == 17)
            atomicAdd_block(counter, 1u);
        else
            atomicAdd(counter, 1u);
        if (fault == 15)
            __threadfence(); /* too late: it orders only the loads that follow */
        if (fault == 14)
            while (lb_ptx::load_relaxed<scope::gpu>(counter) < target) {
            }
        else
            while (lb_ptx::load_acquire<scope::gpu>(counter) < target) {
            }
    }
    if (fault != 19)
        __syncthreads();
}

/* lstm_counter_kernel: like lstm_grid_kernel, but with the barrier above. */
template <int fault> __global__ void __launch_bounds__(256) lstm_counter_kernel(lstm_args a)
{
    LB_DYNAMIC_SHARED(float, shared);
    lstm_tile t = lstm_make_tile(a, shared, gridDim.x, blockIdx.x);
    lstm_load<fault>(a, t);
    __syncthreads();
    const float *h = a.h0;
    for (int step = 0; step < a.seq_len; step++) {
        lstm_gates(a, t, h, step);
        __syncthreads();
        float *h_next = a.exchange + step % 2 * a.batch * a.hidden;
        lstm_step_cells<fault>(a, t, h_next, step);
        counter_barrier<fault>(a.counter, gridDim.x * (step + (fault == 18 ? 0 : 1)));
        h = h_next;
    }
}

#endif
