/* Chooses among the vector kernels by the instruction sets that the CPU reports. */
#include "impls/common/simd_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "host/cpu_units.h"

_Static_assert((int)LB_SIMD_UNIT_COUNT == (int)LB_CPU_UNIT_COUNT, "a list has room for every unit");

#ifdef LB_X86_KERNELS

static const struct row {
    enum lb_dtype dtype;
    enum lb_cpu_unit unit;
    const struct lb_simd_kernels *kernels;
} rows[] = {
    {LB_F64, LB_CPU_AVX512, &lb_simd_kernels_avx512_f64},
    {LB_F64, LB_CPU_AVX2, &lb_simd_kernels_avx2_f64},
    {LB_F64, LB_CPU_PLAIN, &lb_simd_kernels_plain_f64},
    {LB_F32, LB_CPU_AVX512, &lb_simd_kernels_avx512_f32},
    {LB_F32, LB_CPU_AVX2, &lb_simd_kernels_avx2_f32},
    {LB_F32, LB_CPU_PLAIN, &lb_simd_kernels_plain_f32},
    {LB_BF16, LB_CPU_AMX, &lb_simd_kernels_amx_bf16},
    {LB_BF16, LB_CPU_AVX512BF16, &lb_simd_kernels_avx512bf16_bf16},
    {LB_BF16, LB_CPU_AVX512, &lb_simd_kernels_avx512_bf16},
    {LB_BF16, LB_CPU_AVX2, &lb_simd_kernels_avx2_bf16},
    {LB_BF16, LB_CPU_PLAIN, &lb_simd_kernels_plain_bf16},
    {LB_F16, LB_CPU_AMX, &lb_simd_kernels_amx_f16},
    {LB_F16, LB_CPU_AVX512, &lb_simd_kernels_avx512_f16},
    {LB_F16, LB_CPU_AVX2, &lb_simd_kernels_avx2_f16},
    {LB_F16, LB_CPU_PLAIN, &lb_simd_kernels_plain_f16},
};

#else

static const struct row {
    enum lb_dtype dtype;
    enum lb_cpu_unit unit;
    const struct lb_simd_kernels *kernels;
} rows[] = {
    {LB_F64, LB_CPU_PLAIN, &lb_simd_kernels_plain_f64},
    {LB_F32, LB_CPU_PLAIN, &lb_simd_kernels_plain_f32},
    {LB_BF16, LB_CPU_PLAIN, &lb_simd_kernels_plain_bf16},
    {LB_F16, LB_CPU_PLAIN, &lb_simd_kernels_plain_f16},
};

#endif

/* Lists the kernels of the units up to `best`. */
static size_t list_up_to(enum lb_cpu_unit best, enum lb_dtype dtype,
                         const struct lb_simd_kernels *list[LB_SIMD_UNIT_COUNT])
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].dtype == dtype && rows[i].unit <= best && lb_cpu_has(rows[i].unit, dtype))
            list[count++] = rows[i].kernels;
    return count;
}

size_t lb_simd_kernels_all(enum lb_dtype dtype,
                           const struct lb_simd_kernels *list[LB_SIMD_UNIT_COUNT])
{
    return list_up_to(LB_CPU_AMX, dtype, list);
}

enum lb_status lb_simd_kernels_choose(enum lb_dtype dtype, const struct lb_simd_kernels **kernels,
                                      struct lb_error *err)
{
    const struct lb_simd_kernels *list[LB_SIMD_UNIT_COUNT];
    const char *limit = getenv("LB_SIMD_UNIT");
    size_t best = LB_CPU_AMX;
    if (limit)
        for (best = 0; best < LB_SIMD_UNIT_COUNT &&
                       strcmp(limit, lb_cpu_unit_name((enum lb_cpu_unit)best)) != 0;)
            best++;
    if (best >= LB_SIMD_UNIT_COUNT)
        return lb_fail(err, LB_INVALID,
                       "LB_SIMD_UNIT=%s: allowed are plain, avx2, avx512, avx512bf16 and amx",
                       limit);
    list_up_to((enum lb_cpu_unit)best, dtype, list);
    *kernels = list[0];
    return LB_OK;
}
