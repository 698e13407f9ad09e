/* Chooses among the vector kernels by the instruction sets that the CPU reports. */
#include "impls/common/simd_kernels.h"

size_t lb_simd_kernels_all(enum lb_dtype dtype, const struct lb_simd_kernels *list[3])
{
    size_t count = 0;
    bool f32 = dtype == LB_F32;
#ifdef LB_X86_KERNELS
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        list[count++] = f32 ? &lb_simd_kernels_avx512_f32 : &lb_simd_kernels_avx512_f64;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        list[count++] = f32 ? &lb_simd_kernels_avx2_f32 : &lb_simd_kernels_avx2_f64;
#endif
    list[count++] = f32 ? &lb_simd_kernels_plain_f32 : &lb_simd_kernels_plain_f64;
    return count;
}

const struct lb_simd_kernels *lb_simd_kernels_best(enum lb_dtype dtype)
{
    const struct lb_simd_kernels *list[3];
    lb_simd_kernels_all(dtype, list);
    return list[0];
}
