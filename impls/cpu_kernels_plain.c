/* cpu_blas's kernels for whatever the compiler targets by default, with 16-byte vectors, and the
 * choice among all widths. */
#define WIDTH        plain
#define WIDTH_NAME   "16-byte vectors"
#define VECTOR_BYTES 16
#define ROWS         3
#define HOLD(vector) (void)0
#include "cpu_kernels_width.inc"

size_t lb_cpu_kernels_all(enum lb_dtype dtype, const struct lb_cpu_kernels *list[3])
{
    size_t count = 0, type = dtype == LB_F64;
#ifdef LB_X86_KERNELS
    if (__builtin_cpu_supports("avx512f"))
        list[count++] = &lb_cpu_kernels_avx512[type];
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        list[count++] = &lb_cpu_kernels_avx2[type];
#endif
    list[count++] = &lb_cpu_kernels_plain[type];
    return count;
}

const struct lb_cpu_kernels *lb_cpu_kernels_best(enum lb_dtype dtype)
{
    const struct lb_cpu_kernels *list[3];
    lb_cpu_kernels_all(dtype, list);
    return list[0];
}
