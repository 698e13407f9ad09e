/* lstm_cluster.cuh: h goes from shared memory to the peers' shared memory, double-buffered. One
 * cluster is the whole grid. */
#ifndef LB_SIMT_LSTM_CLUSTER_CUH
#define LB_SIMT_LSTM_CLUSTER_CUH

#include "lstm_common.cuh"

#ifdef LB_PTX_SM90

/* Loads state 0 into slot 0 of the buffer. A barrier must follow. */
__device__ inline void lstm_load_h(const lstm_args &a, const lstm_tile &t)
{
    for (int i = threadIdx.x; i < a.batch * a.hidden; i += blockDim.x)
        t.h[i] = a.h0[i];
}

/* Sends h by plain stores to the peers, with one cluster barrier per step. */
template <int fault> __device__ inline void lstm_cluster_run(const lstm_args &a)
{
    LB_DYNAMIC_SHARED(float, shared);
    auto cluster = cooperative_groups::this_cluster();
    int blocks = cluster.num_blocks(), rank = cluster.block_rank();
    lstm_tile t = lstm_make_tile(a, shared, blocks, rank);
    lstm_load<fault>(a, t);
    lstm_load_h(a, t);
    if (fault == 7)
        __syncthreads();
    else
        cluster.sync(); /* a peer's memory may be written only after the peer has started */
    for (int step = 0; step < a.seq_len; step++) {
        lstm_gates(a, t, t.h + step % 2 * a.batch * a.hidden, step);
        if (fault != 22)
            __syncthreads();
        float *h_next = t.h + (fault == 20 ? step : step + 1) % 2 * a.batch * a.hidden;
        for (int i = threadIdx.x; i < t.units * a.batch; i += blockDim.x) {
            int b = i % a.batch, unit = t.first_unit + i / a.batch;
            float h = lstm_cell(a, t, i);
            for (int p = fault == 21 ? 1 : 0; p < blocks; p++)
                cluster.map_shared_rank(h_next, p)[b * a.hidden + unit] = h;
            a.y[(step * a.batch + b) * a.hidden + unit] = h;
        }
        if (fault != 8 || step + 1 < a.seq_len)
            cluster.sync(); /* also after the last step: no block may exit while others write to its
                               memory */
    }
}

/* The barriers that signal the arrival of h in each slot, and how many bytes make a state
 * complete. */
struct lstm_arrivals {
    uint64_t *full; /* [2] */
    unsigned bytes;
};

/* Computes the cells of one step and sends h to all blocks, including its own, so that all
 * blocks wait for the same number of bytes. */
template <int fault>
__device__ inline void lstm_send_cells(const lstm_args &a, const lstm_tile &t,
                                       const lstm_arrivals &to, int step, bool send)
{
    int slot = (fault == 28 ? step : step + 1) % 2;
    uint32_t h_next = lb_ptx::shared_address(t.h + slot * a.batch * a.hidden);
    uint32_t barrier = lb_ptx::shared_address(to.full + (step + 1) % 2);
    for (int i = threadIdx.x; i < t.units * a.batch; i += blockDim.x) {
        int b = i % a.batch, unit = t.first_unit + i / a.batch;
        float h = lstm_cell(a, t, i);
        a.y[(step * a.batch + b) * a.hidden + unit] = h;
        uint32_t offset = (b * a.hidden + unit) * sizeof(float);
        for (unsigned p = 0; send && p < lb_ptx::cluster_size(); p++)
            lb_ptx::store_async(lb_ptx::map_shared_address(h_next + offset, p), h,
                                lb_ptx::map_shared_address(barrier, p));
    }
}

template <int fault> __device__ inline void lstm_expect(const lstm_arrivals &at, int slot)
{
    unsigned bytes = at.bytes;
    if (fault == 24)
        bytes -= sizeof(float);
    if (fault == 25)
        bytes += sizeof(float);
    lb_ptx::mbarrier_arrive_expect_bytes(at.full + slot, bytes);
}

/* Sends h by asynchronous stores, whose arrival is the only barrier. State s (h after s steps)
 * lies in slot s % 2; its phase of that slot's mbarrier is (s - 1) / 2.
 *   A slot is overwritten with state s + 2 only after all blocks have received state s + 1, which
 *   each block sent after all its threads had read state s. */
template <int fault> __device__ inline void lstm_async_run(const lstm_args &a)
{
    LB_DYNAMIC_SHARED(float, shared);
    using lb_ptx::scope;
    int blocks = lb_ptx::cluster_size(), rank = lb_ptx::cluster_rank();
    lstm_tile t = lstm_make_tile(a, shared, blocks, rank);
    float *end = t.h + 2 * a.batch * a.hidden;
    lstm_arrivals h = {reinterpret_cast<uint64_t *>(end),
                       static_cast<unsigned>(a.batch * a.hidden * sizeof(float))};
    lstm_load<fault>(a, t);
    lstm_load_h(a, t);
    if (threadIdx.x == 0) {
        for (int slot = 0; slot < 2; slot++)
            lb_ptx::mbarrier_init(h.full + slot, fault == 30 ? 2 : 1);
        lb_ptx::fence_mbarrier_init();
        for (int state = 1; state < 3 && state < a.seq_len; state++)
            lstm_expect<fault>(h, state % 2);
    }
    if (fault == 26)
        __syncthreads();
    else
        cooperative_groups::this_cluster().sync();
    for (int step = 0; step < a.seq_len; step++) {
        uint64_t *full = h.full + step % 2;
        unsigned parity = ((step - 1) / 2 + (fault == 23 ? 1 : 0)) % 2;
        if (step > 0 && fault == 29)
            lb_ptx::mbarrier_wait<scope::cta>(full, parity);
        else if (step > 0)
            lb_ptx::mbarrier_wait<scope::cluster>(full, parity);
        if (threadIdx.x == 0 && step > 0 && step + 2 < a.seq_len)
            lstm_expect<fault>(h, step % 2);
        lstm_gates(a, t, t.h + step % 2 * a.batch * a.hidden, step);
        __syncthreads();
        lstm_send_cells<fault>(a, t, h, step, fault == 27 || step + 1 < a.seq_len);
    }
}

#endif

/* lstm_cluster_kernel, lstm_async_kernel: lstm_args; exchange and counter unused.  grid (cluster),
 * block (32 n).  Dynamic shared memory: lstm_shared_bytes.
 * They exist for every architecture, since host code names them; before sm_90 they are empty. */

template <int fault> __global__ void __launch_bounds__(256) lstm_cluster_kernel(lstm_args a)
{
#ifdef LB_PTX_SM90
    lstm_cluster_run<fault>(a);
#endif
}

template <int fault> __global__ void __launch_bounds__(256) lstm_async_kernel(lstm_args a)
{
#ifdef LB_PTX_SM90
    lstm_async_run<fault>(a);
#endif
}

#endif
