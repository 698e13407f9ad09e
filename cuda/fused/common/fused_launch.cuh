/* Readies and launches the fused kernels of all families. The tests replace this file by one that
 * runs kernels on the emulator. */
#ifndef LB_FUSED_LAUNCH_CUH
#define LB_FUSED_LAUNCH_CUH

#include <cuda_runtime.h>
#include <stdio.h>

#include "cuda/common/launch_error.cuh"
#include "cuda/fused/common/launch_shape.cuh"
#include "cuda/fused/common/recurrence.cuh"

namespace lb_fused_launch
{

inline enum lb_status failed(const char *doing, const shape &s, cudaError_t error,
                             struct lb_error *err)
{
    char kernel[40];
    snprintf(kernel, sizeof(kernel), "the %s kernel", s.family);
    return lb_launch_failed(doing, kernel, error, err);
}

/* The highest priority of the device's work, which is the smallest number. */
inline int greatest_priority()
{
    static const int greatest = [] {
        int least = 0, most = 0;
        return cudaDeviceGetStreamPriorityRange(&least, &most) == cudaSuccess ? most : 0;
    }();
    return greatest;
}

enum { LAUNCH_ATTRIBUTES_MAX = 4 };

/* The result points to `attributes`, which must live as long. */
inline cudaLaunchConfig_t config_of(const shape &s, void *stream,
                                    cudaLaunchAttribute (&attributes)[LAUNCH_ATTRIBUTES_MAX])
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(s.grid[0], s.grid[1], s.grid[2]);
    config.blockDim = dim3(s.threads);
    config.dynamicSmemBytes = s.shared;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = attributes;
    auto add = [&](cudaLaunchAttributeID id) -> cudaLaunchAttributeValue & {
        attributes[config.numAttrs].id = id;
        return attributes[config.numAttrs++].val;
    };
    if (s.cluster > 0) {
        auto &cluster = add(cudaLaunchAttributeClusterDimension).clusterDim;
        cluster.x = s.cluster, cluster.y = cluster.z = 1;
    }
    if (s.cooperative)
        add(cudaLaunchAttributeCooperative).cooperative = 1;
    if (s.follows)
        add(cudaLaunchAttributeProgrammaticStreamSerialization)
            .programmaticStreamSerializationAllowed = 1;
    return config;
}

/* Asks the device how many clusters of the shape it runs at the same time. */
inline enum lb_status ask_clusters(const void *kernel, const shape &s, int *resident,
                                   struct lb_error *err)
{
    cudaLaunchAttribute attributes[LAUNCH_ATTRIBUTES_MAX];
    cudaLaunchConfig_t config = config_of(s, nullptr, attributes);
    cudaError_t error = cudaSuccess;
    if (s.cluster > 8) /* the portable limit of sm_90 */
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveClusters(resident, kernel, &config);
    if (error == cudaErrorInvalidClusterSize) { /* more blocks than the architecture allows */
        (void)cudaGetLastError();
        *resident = 0;
    } else if (error != cudaSuccess) {
        return failed("asking the occupancy of", s, error, err);
    }
    if (*resident < 1)
        return lb_fail(err, LB_UNSUPPORTED, "this device cannot run a cluster of %d blocks",
                       s.cluster);
    return LB_OK;
}

/* Readies a kernel for launches by this process, and asks the device how many blocks of the shape
 * it runs at the same time, or how many clusters where the shape has clusters. A device runs code
 * for older ones too, where a kernel that needs clusters or more shared memory is empty: then
 * LB_UNSUPPORTED. follows, unless it is NULL: whether launches may follow each other. Code for
 * architectures before sm_90 does not wait, and a graph keeps such launches since CUDA 12.3. */
inline enum lb_status ask_resident(any_kernel function, const shape &s, int *resident,
                                   bool *follows, struct lb_error *err)
{
    const void *kernel = reinterpret_cast<const void *>(function);
    cudaFuncAttributes code = {};
    int device = 0, each = 0, driver = 0;
    cudaError_t error = cudaGetDevice(&device);
    auto ask = [&](cudaDeviceAttr attribute) {
        int value = 0;
        if (error == cudaSuccess)
            error = cudaDeviceGetAttribute(&value, attribute, device);
        return value;
    };
    const int cooperative = ask(cudaDevAttrCooperativeLaunch);
    const int multiprocessors = ask(cudaDevAttrMultiProcessorCount);
    const int shared = ask(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    if (error == cudaSuccess)
        error = cudaFuncGetAttributes(&code, kernel);
    if (error == cudaSuccess)
        error = cudaDriverGetVersion(&driver);
    if (follows)
        *follows = code.ptxVersion >= 90 && CUDART_VERSION >= 12030 && driver >= 12030;
    if (error == cudaSuccess && (s.shared > lb_recurrence::shared_limit_of(code.ptxVersion) ||
                                 (s.cluster > 0 && code.ptxVersion < 90)))
        return lb_fail(
            err, LB_UNSUPPORTED,
            "the %s kernel is empty, because its code here is for compute capability %d.%d: "
            "set LB_CUDA_ARCHITECTURES to that of this device",
            s.family, code.ptxVersion / 10, code.ptxVersion % 10);
    if (error == cudaSuccess) /* the maximum, because later launches may need more than this one */
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    /* A step's block must find shared memory beside the block of the step before. */
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared);
    if (error == cudaSuccess && s.cluster > 0)
        return ask_clusters(kernel, s, resident, err);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, function, s.threads, s.shared);
    if (error != cudaSuccess)
        return failed("readying", s, error, err);
    if (s.cooperative && !cooperative)
        return lb_fail(err, LB_UNSUPPORTED, "this device has no cooperative launch");
    *resident = each * multiprocessors;
    return LB_OK;
}

inline enum lb_status clear(const shape &s, void *memory, size_t bytes, void *stream,
                            struct lb_error *err)
{
    cudaError_t error = cudaMemsetAsync(memory, 0, bytes, static_cast<cudaStream_t>(stream));
    return error == cudaSuccess ? LB_OK : failed("clearing the exchange of", s, error, err);
}

/* Enqueues one launch. The arguments have the types of the kernel's parameters. Where not all
 * blocks of a cooperative launch fit on the device at once, the driver refuses it and starts none
 * of them. The launch has the highest priority: every step waits for it, and a cluster must find
 * all its SMs free in one GPC, while GEMMs of other layers' streams can wait and take any SM. */
template <class... Arguments>
enum lb_status enqueue(any_kernel kernel, const shape &s, void *stream, struct lb_error *err,
                       Arguments... arguments)
{
    cudaLaunchAttribute attributes[LAUNCH_ATTRIBUTES_MAX];
    cudaLaunchConfig_t config = config_of(s, stream, attributes);
    cudaLaunchAttribute &priority = attributes[config.numAttrs++];
    priority.id = cudaLaunchAttributePriority;
    priority.val.priority = greatest_priority();
    void *addresses[] = {&arguments...};
    cudaError_t error =
        cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel), addresses);
    return error == cudaSuccess ? LB_OK : failed("launching", s, error, err);
}

} // namespace lb_fused_launch

#endif
