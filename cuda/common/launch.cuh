/* Launching pointwise kernels: a 1-D grid over so many elements, a kernel for each dtype. */
#ifndef LB_LAUNCH_CUH
#define LB_LAUNCH_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "api/problem.h"
#include "cuda/common/launch_error.cuh"

namespace lb_cell
{

constexpr int64_t block_threads = 256;

#ifdef __CUDACC__

/* kernel(arguments...) for count elements; none is no launch. */
template <class... Parameters, class... Arguments>
enum lb_status launch(const char *what, void (*kernel)(Parameters...), int64_t count, void *stream,
                      struct lb_error *err, Arguments... arguments)
{
    if (count == 0)
        return LB_OK;
    int64_t blocks = (count + block_threads - 1) / block_threads;
    if (blocks > INT32_MAX)
        return lb_fail(err, LB_UNSUPPORTED, "%s: %lld elements are more than a grid holds", what,
                       (long long)count);
    kernel<<<(unsigned)blocks, (unsigned)block_threads, 0, static_cast<cudaStream_t>(stream)>>>(
        arguments...);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? LB_OK : lb_launch_failed("launching", what, error, err);
}

#else /* a host compiler: whoever includes this runs the grid as a loop */

template <class... Parameters, class... Arguments>
enum lb_status launch(const char *what, void (*kernel)(Parameters...), int64_t count, void *stream,
                      struct lb_error *err, Arguments... arguments);

#endif

/* body(T()) for the storage type of a dtype. */
template <class Body> enum lb_status with_type(enum lb_dtype dtype, const Body &body)
{
    switch (dtype) {
    case LB_F64: return body(double());
    case LB_F32: return body(float());
    case LB_F16: return body(__half());
    default: return body(__nv_bfloat16());
    }
}

} // namespace lb_cell

#endif
