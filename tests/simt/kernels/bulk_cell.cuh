/* bulk_cell.cuh: the pointwise LSTM cell as a stream of tiles, loaded and stored by bulk copies. */
#ifndef LB_SIMT_BULK_CELL_CUH
#define LB_SIMT_BULK_CELL_CUH

#include "lstm_common.cuh"

constexpr int bulk_items = 64; /* per tile */

/* pre [tiles, 4, items] (i f g o), c [tiles, items]  ->  h, c_next [tiles, items]. */
struct bulk_args {
    const float *pre, *c;
    float *h, *c_next;
    int tiles;
};

struct bulk_shared {
    float in[2][5][bulk_items]; /* a stage: four gates, and c */
    float out[2][bulk_items];   /* h, c_next */
    uint64_t full[2];
};

#ifdef LB_PTX_SM90

template <int fault>
__device__ inline void bulk_load_tile(const bulk_args &a, bulk_shared &s, int i)
{
    constexpr unsigned row = bulk_items * sizeof(float);
    uint64_t *full = &s.full[i % 2];
    lb_ptx::mbarrier_arrive_expect_bytes(full, fault == 36 ? 4 * row : 5 * row);
    lb_ptx::bulk_load(s.in[i % 2][0], a.pre + i * 4 * bulk_items, 4 * row, full);
    lb_ptx::bulk_load(s.in[i % 2][4], a.c + i * bulk_items, row, full);
}

template <int fault>
__device__ inline void bulk_compute(const float (&in)[5][bulk_items], float (&out)[2][bulk_items])
{
    for (int i = threadIdx.x; i < bulk_items; i += blockDim.x) {
        float c = lstm_sigmoid(in[1][i]) * in[4][i] + lstm_sigmoid(in[0][i]) * tanhf(in[2][i]);
        out[0][i] = lstm_sigmoid(in[3][i]) * tanhf(c);
        out[1][i] = c;
    }
    if (fault != 35)
        lb_ptx::fence_proxy_async(); /* the copies out of shared memory must see what was just
                                        written */
}

/* Each tile is loaded while the previous one is computed, and stored while the next one is
 * computed. */
template <int fault> __device__ inline void bulk_cell_run(const bulk_args &a)
{
    LB_DYNAMIC_SHARED(bulk_shared, s);
    constexpr unsigned row = bulk_items * sizeof(float);
    bool leader = threadIdx.x == 0;
    if (leader) {
        lb_ptx::mbarrier_init(&s->full[0], 1);
        lb_ptx::mbarrier_init(&s->full[1], 1);
        if (fault != 39)
            lb_ptx::fence_mbarrier_init();
        bulk_load_tile<fault>(a, *s, 0);
    }
    __syncthreads();
    for (int i = 0; i < a.tiles; i++) {
        if (leader && i + 1 < a.tiles)
            bulk_load_tile<fault>(a, *s, i + 1);
        unsigned parity = (i / 2 + (fault == 38 ? 1 : 0)) % 2;
        lb_ptx::mbarrier_wait<lb_ptx::scope::cta>(&s->full[i % 2], parity);
        if (leader && fault != 37)
            lb_ptx::bulk_wait_read<0>(); /* the previous tile has been read from `out` */
        __syncthreads();
        bulk_compute<fault>(s->in[i % 2], s->out);
        __syncthreads();
        if (leader) {
            lb_ptx::bulk_store(a.h + i * bulk_items, s->out[0], row);
            lb_ptx::bulk_store(a.c_next + i * bulk_items, s->out[1], row);
            lb_ptx::bulk_commit();
        }
    }
    if (leader && fault != 40)
        lb_ptx::bulk_wait_read<0>(); /* shared memory ends with the block */
}

#endif

/* bulk_cell_kernel: bulk_args above.  grid (1), block (32 n).  Dynamic shared memory:
 * bulk_shared. It exists for every architecture, because host code names it; before sm_90 it is
 * empty. */
template <int fault> __global__ void __launch_bounds__(128) bulk_cell_kernel(bulk_args a)
{
#ifdef LB_PTX_SM90
    bulk_cell_run<fault>(a);
#endif
}

#endif
