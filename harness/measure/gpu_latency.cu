/* Kernels that wait for each other, whose latencies are part of the ceilings. One thread per block
 * waits, and nothing else runs on the device. A kernel makes a number of rounds and leaves in *done
 * how many it finished; the cost of a round follows from the difference between a long and a short
 * run. */
#include "measure/gpu_latency.h"

#include <cooperative_groups.h>
#include <cuda_runtime_api.h>
#include <math.h>

#include "device/device.h"

namespace lb_latency
{

namespace cg = cooperative_groups;

constexpr int few_rounds = 200, many_rounds = 2200, repeats = 5;
constexpr int largest_cluster = 16, portable_cluster = 8, threads = 32;
constexpr unsigned spin_limit = 1u << 22; /* polls: from a tenth of a second to two */

/* grid_barrier_kernel: `rounds` barriers of all blocks. grid (SMs), block (32), cooperative. */
__global__ void grid_barrier_kernel(int rounds, int *done, unsigned *)
{
    cg::grid_group grid = cg::this_grid();
    for (int i = 0; i < rounds; i++)
        grid.sync();
    if (grid.thread_rank() == 0)
        *done = rounds;
}

/* cluster_barrier_kernel: `rounds` barriers of one cluster. grid (16 or 8), block (32), one
 * cluster. */
__global__ void cluster_barrier_kernel(int rounds, int *done, unsigned *)
{
#if __CUDA_ARCH__ >= 900
    cg::cluster_group cluster = cg::this_cluster();
    for (int i = 0; i < rounds; i++)
        cluster.sync();
    if (cluster.thread_rank() == 0)
        *done = rounds;
#endif
}

/* The first block writes 1, 2, ... to `theirs`, and after each waits for the same number in `mine`;
 * the other block waits first and writes back. False when the other did not write in time. */
__device__ bool exchange(volatile unsigned *mine, volatile unsigned *theirs, bool first, int rounds)
{
    for (unsigned i = 1; i <= static_cast<unsigned>(rounds); i++) {
        if (first)
            *theirs = i;
        unsigned polls = 0;
        while (*mine != i)
            if (++polls == spin_limit)
                return false;
        if (!first)
            *theirs = i;
    }
    return true;
}

/* peer_kernel: exchanges words in two blocks' shared memory. grid (2), block (32), cluster (2). */
__global__ void peer_kernel(int rounds, int *done, unsigned *)
{
#if __CUDA_ARCH__ >= 900
    __shared__ unsigned word;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    bool answered = true;
    if (threadIdx.x == 0)
        word = 0;
    cluster.sync();
    if (threadIdx.x == 0)
        answered = exchange(&word, cluster.map_shared_rank(&word, 1 - rank), rank == 0, rounds);
    cluster.sync(); /* a block's shared memory must exist as long as the other may write to it */
    if (threadIdx.x == 0 && rank == 0)
        *done = answered ? rounds : -1;
#endif
}

/* l2_kernel: exchanges words in global memory, one per cache line, zeroed before the launch.
 * grid (2), block (32), cooperative. */
__global__ void l2_kernel(int rounds, int *done, unsigned *words)
{
    unsigned rank = blockIdx.x;
    if (threadIdx.x != 0)
        return;
    bool answered = exchange(words + 64 * rank, words + 64 * (1 - rank), rank == 0, rounds);
    if (rank == 0)
        *done = answered ? rounds : -1;
}

/* empty_kernel: what is timed is its launch. grid (1), block (32). */
__global__ void empty_kernel()
{
}

using kernel_function = void (*)(int, int *, unsigned *);

/* What the kernels write to, on the device. */
struct bench {
    void *done, *words;
};

constexpr size_t words_bytes = 128 * sizeof(unsigned);

/* Times one launch of that many rounds. cluster: blocks per cluster; 0: a cooperative launch. */
static enum lb_status run(const bench &b, kernel_function kernel, int blocks, int cluster,
                          int rounds, double *ns, struct lb_error *err)
{
    int done = 0;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    attribute.id =
        cluster > 0 ? cudaLaunchAttributeClusterDimension : cudaLaunchAttributeCooperative;
    if (cluster > 0)
        attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    else
        attribute.val.cooperative = 1;
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(threads);
    config.stream = static_cast<cudaStream_t>(lb_device()->stream());
    config.attrs = &attribute;
    config.numAttrs = 1;
    LB_CHECK(lb_device()->fill(b.words, 0, words_bytes, err));
    LB_CHECK(lb_device()->start(err));
    LB_CHECK(lb_cuda_check(cudaLaunchKernelEx(&config, kernel, rounds, static_cast<int *>(b.done),
                                              static_cast<unsigned *>(b.words)),
                           "launching", err));
    LB_CHECK(lb_device()->stop(ns, err));
    LB_CHECK(lb_device()->download(&done, b.done, sizeof(done), err));
    return done == rounds ? LB_OK : lb_fail(err, LB_FAILED, "an SM waited too long for another SM");
}

/* *ns per round: from the shortest of the long runs minus the shortest of the short runs. */
static enum lb_status time_round(const bench &b, kernel_function kernel, int blocks, int cluster,
                                 double *ns, struct lb_error *err)
{
    double few = INFINITY, many = INFINITY, took = 0;
    for (int i = 0; i < repeats; i++) {
        LB_CHECK(run(b, kernel, blocks, cluster, few_rounds, &took, err));
        few = fmin(few, took);
        LB_CHECK(run(b, kernel, blocks, cluster, many_rounds, &took, err));
        many = fmin(many, took);
    }
    *ns = (many - few) / (many_rounds - few_rounds);
    return LB_OK;
}

/* Times the barrier of a cluster of 16 blocks where the device starts one that large, else of 8. */
static enum lb_status time_cluster(const bench &b, double *ns, struct lb_error *err)
{
    struct lb_error why;
    if (cudaFuncSetAttribute(reinterpret_cast<const void *>(cluster_barrier_kernel),
                             cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess &&
        time_round(b, cluster_barrier_kernel, largest_cluster, largest_cluster, ns, &why) == LB_OK)
        return LB_OK;
    (void)cudaGetLastError();
    return time_round(b, cluster_barrier_kernel, portable_cluster, portable_cluster, ns, err);
}

} // namespace lb_latency

enum lb_status lb_latency_measure(struct lb_ceilings *ceilings, struct lb_error *err)
{
    using namespace lb_latency;
    enum lb_status st = LB_OK;
    const struct lb_device_info *device = lb_device_known(nullptr);
    bench b = {};
    double trip = NAN;
    double *ns = ceilings->all;
    LB_TRY(lb_device()->allocate(sizeof(int), &b.done, err));
    LB_TRY(lb_device()->allocate(words_bytes, &b.words, err));
    LB_TRY(time_round(b, grid_barrier_kernel, ceilings->cores, 0, &ns[LB_BARRIER_NS], err));
    LB_TRY(time_round(b, l2_kernel, 2, 0, &trip, err));
    ns[LB_FAR_NS] = trip / 2;           /* a round is two stores, one in each direction */
    if (device && device->major >= 9) { /* earlier ones have no clusters */
        LB_TRY(time_cluster(b, &ns[LB_CLUSTER_BARRIER_NS], err));
        LB_TRY(time_round(b, peer_kernel, 2, 2, &trip, err));
        ns[LB_PEER_NS] = trip / 2;
    }
done:
    lb_device()->release(b.words);
    lb_device()->release(b.done);
    return st;
}

enum lb_status lb_launch_empty(void *, struct lb_error *err)
{
    lb_latency::empty_kernel<<<1, lb_latency::threads, 0,
                               static_cast<cudaStream_t>(lb_device()->stream())>>>();
    return lb_cuda_check(cudaGetLastError(), "launching an empty kernel", err);
}
