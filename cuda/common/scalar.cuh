/* Numbers inside kernels: storage types to and from the type of arithmetic, and the cell's
 * functions of one number. */
#ifndef LB_SCALAR_CUH
#define LB_SCALAR_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stdint.h>

namespace lb_cell
{

/* R of T: double for double, else float. */
template <class T> struct inside {
    using type = float;
};
template <> struct inside<double> {
    using type = double;
};
template <class T> using inside_t = typename inside<T>::type;

__device__ inline double widen(double v)
{
    return v;
}
__device__ inline float widen(float v)
{
    return v;
}
__device__ inline float widen(__half v)
{
    return __half2float(v);
}
__device__ inline float widen(__nv_bfloat16 v)
{
    return __bfloat162float(v);
}

/* narrow<T>::from(R): one rounding, to nearest even. */
template <class T> struct narrow {
    static __device__ inline T from(T v)
    {
        return v;
    }
};
template <> struct narrow<__half> {
    static __device__ inline __half from(float v)
    {
        return __float2half_rn(v);
    }
};
template <> struct narrow<__nv_bfloat16> {
    static __device__ inline __nv_bfloat16 from(float v)
    {
        return __float2bfloat16_rn(v);
    }
};

/* Right at both ends: exp goes to 0 or to infinity there. */
__device__ inline float sigmoid(float v)
{
    return 1.0f / (1.0f + expf(-v));
}
__device__ inline double sigmoid(double v)
{
    return 1.0 / (1.0 + exp(-v));
}
__device__ inline float tangent(float v)
{
    return tanhf(v);
}
__device__ inline double tangent(double v)
{
    return tanh(v);
}

/* The cell's inner function: tanh, or relu, which keeps a NaN. */
template <class R> __device__ inline R squash(R v, bool relu)
{
    if (relu)
        return v < R(0) ? R(0) : v;
    return tangent(v);
}

/* Its derivative, given its value. */
template <class R> __device__ inline R squash_slope(R value, bool relu)
{
    if (relu)
        return value > R(0) ? R(1) : R(0);
    return R(1) - value * value;
}

/* This thread's place in a 1-D grid. */
__device__ inline int64_t thread_index()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

} // namespace lb_cell

#endif
