/* fused_step_launch.cuh: finding a step kernel by its tile and types, and launching it. */
#ifndef LB_FUSED_STEP_LAUNCH_CUH
#define LB_FUSED_STEP_LAUNCH_CUH

#include <string.h>

#include "cuda/common/launch_error.cuh"
#include "cuda/fused/step/step.h"

namespace lb_fused_step
{

template <class Args> struct kernel_row {
    lb_fused_step_tile tile;
    enum lb_dtype dtype;
    bool tensor; /* f32: TF32 products */
    void (*kernel)(Args, int step, bool relu);
};

template <class Args, size_t count>
const kernel_row<Args> *find(const kernel_row<Args> (&rows)[count], const lb_fused_step_kernel &k)
{
    bool tf32 = k.dtype == LB_F32 && k.math != LB_IEEE;
    for (const auto &row : rows)
        if (!memcmp(&row.tile, &k.tile, sizeof(k.tile)) && row.dtype == k.dtype &&
            (row.dtype != LB_F32 || row.tensor == tf32))
            return &row;
    return nullptr;
}

/* Blocks of one direction. */
template <class Args> long block_count(const lb_fused_step_kernel &k, const Args &args)
{
    long units = lb_fused_step_units(&k.tile, k.backward);
    long rows = (args.batch + k.tile.columns - 1) / k.tile.columns;
    return (args.hidden + units - 1) / units * rows;
}

#ifdef __CUDACC__

inline enum lb_status failed(const char *what, cudaError_t error, struct lb_error *err)
{
    return lb_launch_failed(what, "the step kernel", error, err);
}

template <class Args, size_t count>
enum lb_status ready(const kernel_row<Args> (&rows)[count], const lb_fused_step_kernel &k,
                     int *blocks, struct lb_error *err)
{
    const kernel_row<Args> *row = find(rows, k);
    if (!row)
        return lb_fail(err, LB_UNSUPPORTED, "no step kernel was built for this tile");
    const void *kernel = reinterpret_cast<const void *>(row->kernel);
    size_t shared = lb_fused_step_shared(&k.tile);
    int device = 0, sms = 0, each = 0;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(shared));
    if (error == cudaSuccess)
        error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &each, kernel, lb_fused_step_threads(&k.tile), shared);
    if (error != cudaSuccess)
        return failed("readying", error, err);
    *blocks = each * sms;
    return LB_OK;
}

template <class Args, size_t count>
enum lb_status launch(const kernel_row<Args> (&rows)[count], const lb_fused_step_kernel &k,
                      const Args &args, int step, void *stream, struct lb_error *err)
{
    const kernel_row<Args> *row = find(rows, k);
    if (!row)
        return lb_fail(err, LB_UNSUPPORTED, "no step kernel was built for this tile");
    dim3 grid(static_cast<unsigned>(block_count(k, args)), static_cast<unsigned>(args.directions));
    row->kernel<<<grid, static_cast<unsigned>(lb_fused_step_threads(&k.tile)),
                  lb_fused_step_shared(&k.tile), static_cast<cudaStream_t>(stream)>>>(
        args, step, k.act == LB_ACT_RELU);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? LB_OK : failed("launching", error, err);
}

#else /* a host compiler: whoever includes this runs kernels in its own way */

template <class Args, size_t count>
enum lb_status ready(const kernel_row<Args> (&rows)[count], const lb_fused_step_kernel &k,
                     int *blocks, struct lb_error *err);
template <class Args, size_t count>
enum lb_status launch(const kernel_row<Args> (&rows)[count], const lb_fused_step_kernel &k,
                      const Args &args, int step, void *stream, struct lb_error *err);

#endif

} // namespace lb_fused_step

#endif
