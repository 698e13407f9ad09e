/* ptx_probe.cu: calls every wrapper of ptx.cuh once, so that each is assembled for every
 * architecture. These kernels never run: budgets.csv names the instructions that they must
 * compile to. */
#include "cuda/common/ptx.cuh"

using lb_ptx::scope;

/* The contents of order [2] and wide [2] do not matter. */
template <scope S> __global__ void probe_order(uint32_t *order, uint64_t *wide)
{
    uint32_t sum = lb_ptx::load_relaxed<S>(order) + lb_ptx::load_acquire<S>(order);
    lb_ptx::fence_acq_rel<S>();
    lb_ptx::store_relaxed<S>(order, sum);
    lb_ptx::store_release<S>(wide, lb_ptx::load_acquire<S>(wide + 1));
    lb_ptx::reduce_add_release<S>(wide, static_cast<uint64_t>(sum));
    lb_ptx::store_release<S>(order, lb_ptx::atomic_add_acq_rel<S>(order + 1, sum));
}

template __global__ void probe_order<scope::cta>(uint32_t *, uint64_t *);
template __global__ void probe_order<scope::gpu>(uint32_t *, uint64_t *);
template __global__ void probe_order<scope::sys>(uint32_t *, uint64_t *);

/* from, to [4], aligned to 16 bytes */
__global__ void probe_vector(const uint32_t *from, uint32_t *to)
{
    uint32_t four[4];
    lb_ptx::load_relaxed4<scope::gpu>(four, from);
    lb_ptx::store_relaxed4<scope::gpu>(to, four);
}

__global__ void probe_copy(const float *from)
{
    LB_DYNAMIC_SHARED(float, shared);
    lb_ptx::copy_async<4>(shared, from);
    lb_ptx::copy_async<8>(shared + 2, from + 2, 4);
    lb_ptx::copy_async<16>(shared + 4, from + 4);
    lb_ptx::copy_async_commit();
    lb_ptx::copy_async_wait<0>();
    lb_ptx::barrier_arrive(1, 64);
    lb_ptx::barrier_sync(2, 64);
}

__global__ void probe_tensor(float *out)
{
    LB_DYNAMIC_SHARED(float, shared);
    uint32_t a[4], b[2], one[1], more[4];
    float sum[4] = {lb_ptx::tanh_approx(out[0]), lb_ptx::exp2_approx(out[1]),
                    lb_ptx::reciprocal_approx(out[2]), 0};
    lb_ptx::ldmatrix(a, shared);
    lb_ptx::ldmatrix(b, shared + 4);
    lb_ptx::ldmatrix(one, shared + 8);
    lb_ptx::mma_f16(sum, a, b, sum);
    lb_ptx::ldmatrix_transposed(more, shared + one[0]);
    lb_ptx::ldmatrix_transposed(b, shared + more[0]);
    lb_ptx::ldmatrix_transposed(one, shared + b[0]);
    lb_ptx::mma_bf16(sum, more, b, sum);
    a[0] = lb_ptx::to_tf32(sum[0]) + one[0];
    lb_ptx::mma_tf32(sum, a, b, sum);
    for (int i = 0; i < 4; i++)
        out[i] = sum[i];
}

#ifdef LB_PTX_SM90

template __global__ void probe_order<scope::cluster>(uint32_t *, uint64_t *);

__global__ void probe_dependency()
{
    lb_ptx::grid_dependency_wait();
    lb_ptx::launch_dependents();
}

__global__ void probe_cluster()
{
    LB_DYNAMIC_SHARED(float, shared);
    unsigned peer = lb_ptx::cluster_size() - 1 - lb_ptx::cluster_rank();
    uint32_t there = lb_ptx::map_shared_address(lb_ptx::shared_address(shared), peer);
    lb_ptx::cluster_arrive();
    lb_ptx::cluster_wait();
    lb_ptx::store_cluster(there, lb_ptx::load_cluster(there + 4));
}

__global__ void probe_mbarrier()
{
    LB_DYNAMIC_SHARED(uint64_t, barrier);
    uint32_t there = lb_ptx::map_shared_address(lb_ptx::shared_address(barrier), 0);
    const float four[4] = {1, 2, 3, 4};
    lb_ptx::mbarrier_init(barrier, 1);
    lb_ptx::fence_mbarrier_init();
    lb_ptx::mbarrier_expect_bytes(barrier, 4);
    lb_ptx::mbarrier_arrive_expect_bytes(barrier, 16);
    lb_ptx::mbarrier_arrive(barrier);
    lb_ptx::mbarrier_arrive_cluster(there);
    lb_ptx::store_async(there + 16, four, there);
    lb_ptx::store_async(there + 32, 5.0f, there);
    if (lb_ptx::mbarrier_try_wait<scope::cta>(barrier, 0))
        lb_ptx::mbarrier_wait<scope::cta>(barrier, 1);
    lb_ptx::mbarrier_wait<scope::cluster>(barrier, 1);
    lb_ptx::mbarrier_invalidate(barrier);
}

__global__ void probe_bulk(float *global)
{
    LB_DYNAMIC_SHARED(uint64_t, shared);
    uint32_t there = lb_ptx::map_shared_address(lb_ptx::shared_address(shared), 0);
    lb_ptx::bulk_load(shared + 2, global, 16, shared);
    lb_ptx::fence_proxy_async();
    lb_ptx::bulk_send(there + 32, shared + 2, 16, there);
    lb_ptx::bulk_store(global + 4, shared + 2, 16);
    lb_ptx::bulk_commit();
    lb_ptx::bulk_wait_read<0>();
    lb_ptx::bulk_wait<0>();
}

#endif
