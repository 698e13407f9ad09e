/* ptx_probe.cu: calls every wrapper of ptx.cuh once, so that each is assembled for every
 * architecture. These kernels never run: budgets.csv names the instructions that they must
 * compile to. */
#include "cuda/common/ptx.cuh"

using lb_ptx::scope;

/* order [3], wide [2] */
__global__ void probe_order(uint32_t *order, uint64_t *wide)
{
    lb_ptx::store_relaxed<scope::cta>(order, lb_ptx::load_relaxed<scope::gpu>(order));
    lb_ptx::store_relaxed<scope::gpu>(order + 1, lb_ptx::load_relaxed<scope::gpu>(order + 2));
    lb_ptx::store_relaxed<scope::gpu>(wide, lb_ptx::load_relaxed<scope::gpu>(wide + 1));
}

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
    lb_ptx::copy_async<16>(shared, from, 4);
    lb_ptx::copy_async_commit();
    lb_ptx::copy_async_wait<0>();
    lb_ptx::barrier_sync(2, 64);
}

__global__ void probe_tensor(float *out)
{
    LB_DYNAMIC_SHARED(float, shared);
    uint32_t a[4];
    float sum[4] = {0, lb_ptx::exp2_approx(out[1]), lb_ptx::reciprocal_approx(out[2]), 0};
    lb_ptx::ldmatrix(a, shared);
    lb_ptx::mma<__half>(sum, a, {a[0], a[1]});
    lb_ptx::mma<__nv_bfloat16>(sum, a, {a[2], a[3]});
    a[0] = lb_ptx::to_tf32(sum[0]);
    lb_ptx::mma<float>(sum, a, {a[0], a[1]});
    for (int i = 0; i < 4; i++)
        out[i] = sum[i];
}

#ifdef LB_PTX_SM90

__global__ void probe_dependency()
{
    lb_ptx::grid_dependency_wait();
    lb_ptx::launch_dependents();
}

__global__ void probe_cluster()
{
    LB_DYNAMIC_SHARED(float, shared);
    unsigned peer = 1 - lb_ptx::cluster_rank();
    lb_ptx::cluster_arrive();
    lb_ptx::cluster_wait();
    shared[0] =
        static_cast<float>(lb_ptx::map_shared_address(lb_ptx::shared_address(shared), peer));
}

__global__ void probe_mbarrier()
{
    LB_DYNAMIC_SHARED(uint64_t, barrier);
    uint32_t there = lb_ptx::map_shared_address(lb_ptx::shared_address(barrier), 0);
    const float four[4] = {1, 2, 3, 4};
    lb_ptx::mbarrier_init(barrier, 1);
    lb_ptx::fence_mbarrier_init();
    lb_ptx::mbarrier_arrive_expect_bytes(barrier, 16);
    lb_ptx::store_async(there + 16, four, there);
    if (lb_ptx::mbarrier_try_wait<scope::cluster>(barrier, 0))
        lb_ptx::mbarrier_wait<scope::cluster>(barrier, 1);
}

#endif
