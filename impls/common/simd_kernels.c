/* Chooses among the vector kernels by the instruction sets that the CPU reports. */
#include "impls/common/simd_kernels.h"

#include <stdlib.h>
#include <string.h>

#if defined(LB_X86_KERNELS) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* In the order of speed. */
enum unit { PLAIN, AVX2, AVX512, AVX512BF16, AMX };

static const char *const unit_names[LB_SIMD_UNIT_COUNT] = {"plain", "avx2", "avx512", "avx512bf16",
                                                           "amx"};

#ifdef LB_X86_KERNELS

static const struct row {
    enum lb_dtype dtype;
    enum unit unit;
    const struct lb_simd_kernels *kernels;
} rows[] = {
    {LB_F64, AVX512, &lb_simd_kernels_avx512_f64},
    {LB_F64, AVX2, &lb_simd_kernels_avx2_f64},
    {LB_F64, PLAIN, &lb_simd_kernels_plain_f64},
    {LB_F32, AVX512, &lb_simd_kernels_avx512_f32},
    {LB_F32, AVX2, &lb_simd_kernels_avx2_f32},
    {LB_F32, PLAIN, &lb_simd_kernels_plain_f32},
    {LB_BF16, AMX, &lb_simd_kernels_amx_bf16},
    {LB_BF16, AVX512BF16, &lb_simd_kernels_avx512bf16_bf16},
    {LB_BF16, AVX512, &lb_simd_kernels_avx512_bf16},
    {LB_BF16, AVX2, &lb_simd_kernels_avx2_bf16},
    {LB_BF16, PLAIN, &lb_simd_kernels_plain_bf16},
    {LB_F16, AMX, &lb_simd_kernels_amx_f16},
    {LB_F16, AVX512, &lb_simd_kernels_avx512_f16},
    {LB_F16, AVX2, &lb_simd_kernels_avx2_f16},
    {LB_F16, PLAIN, &lb_simd_kernels_plain_f16},
};

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

/* AMX needs the tiles, the instruction for the type, and Linux's permission to use the tiles'
 * state, which a process asks for once, for all its threads. Source: Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 1, chapter 18; Linux,
 * Documentation/arch/x86/xstate.rst. */
static bool has_amx(enum lb_dtype dtype)
{
#ifdef __linux__
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, TILE_STATE = 3 << 17 };
    unsigned a, b, c, d, most, state, high;
    if (!has_avx512() || __get_cpuid_max(0, NULL) < 7)
        return false;
    __cpuid_count(7, 0, most, b, c, d);
    bool tiles = d >> 24 & 1, bf16 = d >> 22 & 1;
    __cpuid_count(7, most >= 1 ? 1 : 0, a, b, c, d);
    bool f16 = most >= 1 && (a >> 21 & 1);
    if (!tiles || !(dtype == LB_BF16 ? bf16 : f16))
        return false;
    __asm__("xgetbv" : "=a"(state), "=d"(high) : "c"(0));
    return (state & TILE_STATE) == TILE_STATE &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    (void)dtype;
    return false;
#endif
}

static bool has(enum unit unit, enum lb_dtype dtype)
{
    switch (unit) {
    case AMX: return has_amx(dtype);
    case AVX512BF16: return has_avx512() && __builtin_cpu_supports("avx512bf16");
    case AVX512: return has_avx512();
    case AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("f16c");
    default: return true;
    }
}

#else

static const struct row {
    enum lb_dtype dtype;
    enum unit unit;
    const struct lb_simd_kernels *kernels;
} rows[] = {
    {LB_F64, PLAIN, &lb_simd_kernels_plain_f64},
    {LB_F32, PLAIN, &lb_simd_kernels_plain_f32},
    {LB_BF16, PLAIN, &lb_simd_kernels_plain_bf16},
    {LB_F16, PLAIN, &lb_simd_kernels_plain_f16},
};

static bool has(enum unit unit, enum lb_dtype dtype)
{
    (void)dtype;
    return unit == PLAIN;
}

#endif

/* The kernels up to a unit. */
static size_t list_up_to(enum unit best, enum lb_dtype dtype,
                         const struct lb_simd_kernels *list[LB_SIMD_UNIT_COUNT])
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].dtype == dtype && rows[i].unit <= best && has(rows[i].unit, dtype))
            list[count++] = rows[i].kernels;
    return count;
}

size_t lb_simd_kernels_all(enum lb_dtype dtype,
                           const struct lb_simd_kernels *list[LB_SIMD_UNIT_COUNT])
{
    return list_up_to(AMX, dtype, list);
}

enum lb_status lb_simd_kernels_choose(enum lb_dtype dtype, const struct lb_simd_kernels **kernels,
                                      struct lb_error *err)
{
    const struct lb_simd_kernels *list[LB_SIMD_UNIT_COUNT];
    const char *limit = getenv("LB_SIMD_UNIT");
    size_t best = AMX;
    if (limit)
        for (best = 0; best < LB_SIMD_UNIT_COUNT && strcmp(limit, unit_names[best]) != 0;)
            best++;
    if (best >= LB_SIMD_UNIT_COUNT)
        return lb_fail(err, LB_INVALID,
                       "LB_SIMD_UNIT=%s: allowed are plain, avx2, avx512, avx512bf16 and amx",
                       limit);
    list_up_to((enum unit)best, dtype, list);
    *kernels = list[0];
    return LB_OK;
}
