/* half.h: the half and bfloat16 arithmetic that CUDA's headers declare only for the device.
 *
 * Single operations (+ - * /) on the host go through float and round once more: for 11 and 8
 * bits of significand that equals one rounding of the exact result, so CUDA's own host code
 * serves. A fused multiply-add does not have that property and is done here. The functions
 * (hexp, ...) are rounded from double; those of the device may differ by one ulp. */
#ifndef LB_SIMT_HALF_H
#define LB_SIMT_HALF_H

#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace simt
{

/* a * b + c for operands of at most 11 bits, rounded to odd in double, which a later rounding to 11
 * bits or fewer cannot tell from the exact value (Boldo and Melquiond, 2008). */
inline double fused_to_odd(double a, double b, double c)
{
    double product = a * b; /* exact: 22 bits */
    double sum = product + c;
    double rest = sum - product; /* the error of the sum, exactly (Knuth's two-sum) */
    double error = (product - (sum - rest)) + (c - rest);
    if (error == 0 || !std::isfinite(sum))
        return sum;
    uint64_t bits;
    __builtin_memcpy(&bits, &sum, sizeof bits);
    if (bits & 1)
        return sum;
    return std::nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL);
}

} // namespace simt

inline __half __hfma(const __half &a, const __half &b, const __half &c)
{
    return __double2half(simt::fused_to_odd(__half2float(a), __half2float(b), __half2float(c)));
}

inline __nv_bfloat16 __hfma(const __nv_bfloat16 &a, const __nv_bfloat16 &b, const __nv_bfloat16 &c)
{
    return __double2bfloat16(
        simt::fused_to_odd(__bfloat162float(a), __bfloat162float(b), __bfloat162float(c)));
}

inline __half2 __hfma2(const __half2 &a, const __half2 &b, const __half2 &c)
{
    return __halves2half2(__hfma(__low2half(a), __low2half(b), __low2half(c)),
                          __hfma(__high2half(a), __high2half(b), __high2half(c)));
}

inline __nv_bfloat162 __hfma2(const __nv_bfloat162 &a, const __nv_bfloat162 &b,
                              const __nv_bfloat162 &c)
{
    return __halves2bfloat162(__hfma(__low2bfloat16(a), __low2bfloat16(b), __low2bfloat16(c)),
                              __hfma(__high2bfloat16(a), __high2bfloat16(b), __high2bfloat16(c)));
}

/* Defines a function of one argument for each of the four types. */
#define SIMT_HALF_FUNCTION(name, name2, expression)                                   \
    inline __half name(const __half &a)                                               \
    {                                                                                 \
        double x = __half2float(a);                                                   \
        return __double2half(expression);                                             \
    }                                                                                 \
    inline __nv_bfloat16 name(const __nv_bfloat16 &a)                                 \
    {                                                                                 \
        double x = __bfloat162float(a);                                               \
        return __double2bfloat16(expression);                                         \
    }                                                                                 \
    inline __half2 name2(const __half2 &a)                                            \
    {                                                                                 \
        return __halves2half2(name(__low2half(a)), name(__high2half(a)));             \
    }                                                                                 \
    inline __nv_bfloat162 name2(const __nv_bfloat162 &a)                              \
    {                                                                                 \
        return __halves2bfloat162(name(__low2bfloat16(a)), name(__high2bfloat16(a))); \
    }

SIMT_HALF_FUNCTION(hexp, h2exp, std::exp(x))
SIMT_HALF_FUNCTION(hexp2, h2exp2, std::exp2(x))
SIMT_HALF_FUNCTION(hlog, h2log, std::log(x))
SIMT_HALF_FUNCTION(hrcp, h2rcp, 1.0 / x)
SIMT_HALF_FUNCTION(hsqrt, h2sqrt, std::sqrt(x))
SIMT_HALF_FUNCTION(hrsqrt, h2rsqrt, 1.0 / std::sqrt(x))
SIMT_HALF_FUNCTION(htanh, h2tanh, std::tanh(x))

#undef SIMT_HALF_FUNCTION

#endif
