/* Sigmoid and tanh inside the fused kernels, in two precisions. */
#ifndef LB_FUSED_FUNCTIONS_CUH
#define LB_FUSED_FUNCTIONS_CUH

#include "cuda/common/ptx.cuh"
#include "cuda/common/scalar.cuh"

namespace lb_functions
{

/* Sigmoid and tanh from the hardware's approximations of 2^x and 1 / x, without the instructions
 * that handle denormals. The absolute error is a few times 2^-23, far below the rounding of f16 and
 * bf16. Large |v| gives the right limits, because 2^x then goes to 0 or to infinity. A NaN stays a
 * NaN. */
struct fast_functions {
    static constexpr float log2_e = 1.44269504f;

    static __device__ inline float sigmoid(float v)
    {
        return lb_ptx::reciprocal_approx(1.0f + lb_ptx::exp2_approx(-log2_e * v));
    }
    static __device__ inline float tangent(float v)
    {
        float above_one = 1.0f + lb_ptx::exp2_approx(2.0f * log2_e * v);
        return 1.0f - 2.0f * lb_ptx::reciprocal_approx(above_one);
    }
};

/* The same with exp, division and tanh in full precision, for f64, f32 and TF32. */
struct exact_functions {
    template <class R> static __device__ inline R sigmoid(R v)
    {
        return lb_cell::sigmoid(v);
    }
    template <class R> static __device__ inline R tangent(R v)
    {
        return lb_cell::tangent(v);
    }
};

/* The functions for storage type T. */
template <class T> struct functions_of : exact_functions {
};
template <> struct functions_of<__half> : fast_functions {
};
template <> struct functions_of<__nv_bfloat16> : fast_functions {
};

/* The activation of g and of c for storage type T: tanh, or a relu that propagates NaN. */
template <class T, class R> __device__ inline R squash(R v, bool relu)
{
    if (relu)
        return v < R(0) ? R(0) : v;
    return functions_of<T>::tangent(v);
}

} // namespace lb_functions

#endif
