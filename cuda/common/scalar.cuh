/* Scalar functions inside kernels: conversion between a storage type T and its type of arithmetic
 * R, and the functions of the LSTM cell. */
#ifndef LB_SCALAR_CUH
#define LB_SCALAR_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stdint.h>

#include "api/dtype.h"
#include "api/status.h"

namespace lb_cell
{

/* R of T, the type of arithmetic for storage type T: double for double, else float. */
template <class T> struct inside {
    using type = float;
};
template <> struct inside<double> {
    using type = double;
};
template <class T> using inside_t = typename inside<T>::type;

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

/* Converts T to R, exactly. */
template <class T> __device__ inline inside_t<T> convert_to_real(T v)
{
    return static_cast<inside_t<T>>(v);
}

/* Converts R to T with one rounding, to nearest even. */
template <class T> __device__ inline T convert_to_storage(inside_t<T> v)
{
    return static_cast<T>(v);
}

/* Large |v| gives the right limits, because exp then goes to 0 or to infinity. */
template <class R> __device__ inline R sigmoid(R v)
{
    return R(1) / (R(1) + exp(-v));
}
template <class R> __device__ inline R tangent(R v)
{
    return tanh(v);
}

/* The activation of g and of c: tanh, or a relu that propagates NaN. */
template <class R> __device__ inline R squash(R v, bool relu)
{
    if (relu)
        return v < R(0) ? R(0) : v;
    return tangent(v);
}

/* The derivative of squash, computed from squash's value. */
template <class R> __device__ inline R squash_slope(R value, bool relu)
{
    if (relu)
        return value > R(0) ? R(1) : R(0);
    return R(1) - value * value;
}

constexpr int64_t block_threads = 256; /* of pointwise kernels */

/* The index of this thread in a 1-D grid. */
__device__ inline int64_t thread_index()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

} // namespace lb_cell

#endif
