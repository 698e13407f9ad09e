/* fused_launch.cuh: finding a kernel by its tile, and launching it in clusters. */
#ifndef LB_FUSED_LAUNCH_CUH
#define LB_FUSED_LAUNCH_CUH

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <string.h>
#include <type_traits>

#include "cuda/common/launch_error.cuh"
#include "cuda/fused/cluster/cluster.h"

/* Half of lb_fused_ready: each pass has its kernels in a source of its own. */
enum lb_status lb_fused_ready_forward(const struct lb_fused_kernel *kernel, int *clusters,
                                      struct lb_error *err);

namespace lb_fused
{

template <class Args> struct kernel_row {
    lb_fused_tile tile;
    enum lb_dtype dtype;
    bool train;
    void (*kernel)(Args);
};

template <class T>
constexpr enum lb_dtype dtype_of = std::is_same<T, __half>::value ? LB_F16 : LB_BF16;

template <class Args, size_t count>
const kernel_row<Args> *find(const kernel_row<Args> (&rows)[count], const lb_fused_kernel &k)
{
    for (const auto &row : rows)
        if (!memcmp(&row.tile, &k.tile, sizeof(k.tile)) && row.dtype == k.dtype &&
            row.train == k.train)
            return &row;
    return nullptr;
}

#ifdef __CUDACC__

inline enum lb_status failed(const char *what, cudaError_t error, struct lb_error *err)
{
    return lb_launch_failed(what, "the fused kernel", error, err);
}

/* The launch of `clusters` clusters a direction; *attribute must live as long as the result. */
inline cudaLaunchConfig_t launch_config(const lb_fused_tile &tile, size_t shared, int clusters,
                                        int directions, void *stream,
                                        cudaLaunchAttribute *attribute)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)(clusters * tile.blocks), (unsigned)directions);
    config.blockDim = dim3((unsigned)(32 * tile.warps));
    config.dynamicSmemBytes = shared;
    config.stream = static_cast<cudaStream_t>(stream);
    attribute->id = cudaLaunchAttributeClusterDimension;
    attribute->val.clusterDim.x = (unsigned)tile.blocks;
    attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
    config.attrs = attribute;
    config.numAttrs = 1;
    return config;
}

template <class Args, size_t count>
enum lb_status ready(const kernel_row<Args> (&rows)[count], const lb_fused_kernel &k, size_t shared,
                     int *clusters, struct lb_error *err)
{
    const kernel_row<Args> *row = find(rows, k);
    if (!row)
        return lb_fail(err, LB_UNSUPPORTED, "no fused kernel was built for this tile");
    const void *kernel = reinterpret_cast<const void *>(row->kernel);
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(shared));
    if (error == cudaSuccess && k.tile.blocks > 8) /* more than every device of sm_90 has */
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess)
        return failed("readying", error, err);
    cudaLaunchAttribute attribute;
    cudaLaunchConfig_t config = launch_config(k.tile, shared, 1, 1, nullptr, &attribute);
    error = cudaOccupancyMaxActiveClusters(clusters, kernel, &config);
    if (error != cudaSuccess)
        return failed("asking the occupancy of", error, err);
    if (*clusters < 1)
        return lb_fail(err, LB_UNSUPPORTED, "this device cannot run a cluster of %d blocks",
                       k.tile.blocks);
    return LB_OK;
}

template <class Args, size_t count>
enum lb_status launch(const kernel_row<Args> (&rows)[count], const lb_fused_kernel &k,
                      size_t shared, const Args &args, void *stream, struct lb_error *err)
{
    const kernel_row<Args> *row = find(rows, k);
    if (!row)
        return lb_fail(err, LB_UNSUPPORTED, "no fused kernel was built for this tile");
    int clusters = (args.batch + k.tile.columns - 1) / k.tile.columns;
    cudaLaunchAttribute attribute;
    cudaLaunchConfig_t config =
        launch_config(k.tile, shared, clusters, args.directions, stream, &attribute);
    cudaError_t error = cudaLaunchKernelEx(&config, row->kernel, args);
    return error == cudaSuccess ? LB_OK : failed("launching", error, err);
}

#else /* a host compiler: whoever includes this runs kernels in its own way */

template <class Args, size_t count>
enum lb_status ready(const kernel_row<Args> (&rows)[count], const lb_fused_kernel &k, size_t shared,
                     int *clusters, struct lb_error *err);
template <class Args, size_t count>
enum lb_status launch(const kernel_row<Args> (&rows)[count], const lb_fused_kernel &k,
                      size_t shared, const Args &args, void *stream, struct lb_error *err);

#endif

} // namespace lb_fused

#endif
