/* fused_grid_launch.cuh: finding a grid kernel by its tile, and launching it with all its blocks
 * resident. */
#ifndef LB_FUSED_GRID_LAUNCH_CUH
#define LB_FUSED_GRID_LAUNCH_CUH

#include <cuda_runtime.h>
#include <string.h>

#include "cuda/common/launch_error.cuh"
#include "cuda/fused/grid/grid.cuh"

/* Half of lb_grid_ready: each pass has its kernels in a source of its own. */
enum lb_status lb_grid_ready_forward(const struct lb_grid_kernel *kernel, int needed, int *resident,
                                     struct lb_error *err);

namespace lb_grid
{

template <class Args> struct kernel_row {
    lb_grid_tile tile;
    enum lb_grid_math math;
    void (*kernel)(Args);
};

template <class Args, size_t count>
const kernel_row<Args> *find(const kernel_row<Args> (&rows)[count], const lb_grid_kernel &k)
{
    for (const auto &row : rows)
        if (!memcmp(&row.tile, &k.tile, sizeof(k.tile)) && row.math == k.math)
            return &row;
    return nullptr;
}

/* What a device, or whatever stands for one, is asked: how many blocks it keeps resident; zeros to
 * the exchange buffers; one launch of (blocks, groups, directions). */
struct grid_shape {
    unsigned blocks, groups, directions, threads;
    size_t shared;
};

#ifdef __CUDACC__

inline enum lb_status failed(const char *what, cudaError_t error, struct lb_error *err)
{
    return lb_launch_failed(what, "the grid kernel", error, err);
}

template <class Args>
enum lb_status ask_resident(void (*kernel)(Args), const grid_shape &shape, int *resident,
                            struct lb_error *err)
{
    int device = 0, multiprocessors = 0, cooperative = 0, shared = 0, each = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess) /* all there is: the same kernel may be readied for more chunks */
        error = cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &each, kernel, static_cast<int>(shape.threads), shape.shared);
    if (error != cudaSuccess)
        return failed("readying", error, err);
    if (!cooperative)
        return lb_fail(err, LB_UNSUPPORTED, "this device has no cooperative launch");
    *resident = each * multiprocessors;
    return LB_OK;
}

inline enum lb_status clear_exchange(void *exchange, size_t bytes, void *stream,
                                     struct lb_error *err)
{
    cudaError_t error = cudaMemsetAsync(exchange, 0, bytes, static_cast<cudaStream_t>(stream));
    return error == cudaSuccess ? LB_OK : failed("clearing the exchange of", error, err);
}

/* Cooperative: the driver refuses what cannot be resident at once, and does not start a part. */
template <class Args>
enum lb_status enqueue(void (*kernel)(Args), const grid_shape &shape, const Args &args,
                       void *stream, struct lb_error *err)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(shape.blocks, shape.groups, shape.directions);
    config.blockDim = dim3(shape.threads);
    config.dynamicSmemBytes = shape.shared;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaError_t error = cudaLaunchKernelEx(&config, kernel, args);
    return error == cudaSuccess ? LB_OK : failed("launching", error, err);
}

#else /* a host compiler: whoever includes this runs kernels in its own way */

template <class Args>
enum lb_status ask_resident(void (*kernel)(Args), const grid_shape &shape, int *resident,
                            struct lb_error *err);
enum lb_status clear_exchange(void *exchange, size_t bytes, void *stream, struct lb_error *err);
template <class Args>
enum lb_status enqueue(void (*kernel)(Args), const grid_shape &shape, const Args &args,
                       void *stream, struct lb_error *err);

#endif

inline grid_shape shape_of(const lb_grid_kernel &k, size_t shared, int hidden, int directions)
{
    return {static_cast<unsigned>(lb_grid_blocks(&k.tile, hidden)),
            static_cast<unsigned>(k.split.groups),
            k.beside ? static_cast<unsigned>(directions) : 1u,
            static_cast<unsigned>(lanes * k.tile.warps), shared};
}

template <class Args, size_t count>
enum lb_status ready(const kernel_row<Args> (&rows)[count], const lb_grid_kernel &k, size_t shared,
                     int needed, int *resident, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const kernel_row<Args> *row = find(rows, k);
    if (!row)
        return lb_fail(err, LB_UNSUPPORTED, "no grid kernel was built for this tile");
    LB_TRY(ask_resident(row->kernel, shape_of(k, shared, 1, 1), resident, err));
    if (*resident < needed)
        return lb_fail(
            err, LB_UNSUPPORTED,
            "%d blocks of the grid kernel must run at once, and this device has room for "
            "%d",
            needed, *resident);
done:
    return st;
}

/* All directions of a layer: in one launch, or one after the other. */
template <class Args, size_t count, class Layer>
enum lb_status launch(const kernel_row<Args> (&rows)[count], const lb_grid_kernel &k, size_t shared,
                      size_t exchange, const Layer &layer, void *stream, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const kernel_row<Args> *row = find(rows, k);
    if (!row)
        return lb_fail(err, LB_UNSUPPORTED, "no grid kernel was built for this tile");
    grid_shape shape = shape_of(k, shared, layer.hidden, layer.directions);
    Args args = {};
    args.layer = layer;
    args.rows = k.split.rows;
    args.spin_limit = LB_GRID_SPIN_LIMIT;
    LB_TRY(clear_exchange(layer.scratch, exchange, stream, err));
    for (; args.direction < layer.directions; args.direction += (int)shape.directions)
        LB_TRY(enqueue(row->kernel, shape, args, stream, err));
done:
    return st;
}

} // namespace lb_grid

#endif
