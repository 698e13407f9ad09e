/* Launches pointwise kernels: a 1-D grid with a thread for each element, one kernel per dtype. */
#ifndef LB_POINTWISE_LAUNCH_CUH
#define LB_POINTWISE_LAUNCH_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "api/problem.h"
#include "cuda/common/launch_error.cuh"

namespace lb_cell
{

constexpr int64_t block_threads = 256;

#ifdef __CUDACC__

/* Launches kernel(arguments...) for count elements; with a count of 0 it launches nothing. */
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

#else /* With a host compiler the including file defines this, as a loop over the grid. */

template <class... Parameters, class... Arguments>
enum lb_status launch(const char *what, void (*kernel)(Parameters...), int64_t count, void *stream,
                      struct lb_error *err, Arguments... arguments);

#endif

/* Calls body(T()), where T is the storage type of the dtype. */
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
