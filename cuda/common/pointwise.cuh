/* What the launchers of pointwise kernels share: a 1-D grid with a thread for each element, one
 * kernel per dtype. */
#ifndef LB_POINTWISE_CUH
#define LB_POINTWISE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "api/problem.h"

namespace lb_cell
{

constexpr int64_t block_threads = 256;

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
