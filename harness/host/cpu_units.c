/* The units of this machine's CPUs that multiply matrices. */
#include "host/cpu_units.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

const char *lb_cpu_unit_name(enum lb_cpu_unit unit)
{
    static const char *const names[LB_CPU_UNIT_COUNT] = {"plain",  "avx2",       "avxvnni",
                                                         "avx512", "avx512bf16", "amx"};
    return names[unit];
}

#if defined(__x86_64__) && defined(__linux__)

enum { EAX, ECX, EDX };

/* A bit of CPUID for features that not every compiler's __builtin_cpu_supports knows. All bits of a
 * subleaf that the CPU lacks are 0 (Intel's manual, volume 2, CPUID). */
static bool cpuid_bit(unsigned leaf, unsigned subleaf, int reg, int bit)
{
    unsigned a, b, c, d;
    if (!__get_cpuid_count(leaf, subleaf, &a, &b, &c, &d))
        return false;
    return (reg == EAX ? a : reg == ECX ? c : d) >> bit & 1;
}

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
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, TILE_STATE = 3 << 17 };
    unsigned state, high;
    bool known = dtype == LB_BF16   ? cpuid_bit(7, 0, EDX, 22)
                 : dtype == LB_F16  ? cpuid_bit(7, 1, EAX, 21)
                 : dtype == LB_INT8 ? cpuid_bit(7, 0, EDX, 25)
                                    : false;
    if (!known || !has_avx512() || !cpuid_bit(7, 0, EDX, 24))
        return false;
    __asm__("xgetbv" : "=a"(state), "=d"(high) : "c"(0));
    return (state & TILE_STATE) == TILE_STATE &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           cpuid_bit(1, 0, ECX, 29);
}

bool lb_cpu_has(enum lb_cpu_unit unit, enum lb_dtype dtype)
{
    switch (unit) {
    case LB_CPU_AMX: return has_amx(dtype);
    case LB_CPU_AVX512BF16: return dtype == LB_BF16 && has_avx512() && cpuid_bit(7, 1, EAX, 5);
    case LB_CPU_AVX512: return has_avx512() && (dtype != LB_INT8 || cpuid_bit(7, 0, ECX, 11));
    case LB_CPU_AVXVNNI: return dtype == LB_INT8 && has_avx2() && cpuid_bit(7, 1, EAX, 4);
    case LB_CPU_AVX2: return has_avx2();
    default: return true;
    }
}

bool lb_cpu_lacks_avx512_vnni(void)
{
    return !lb_cpu_has(LB_CPU_AVX512, LB_INT8);
}

/* Intel's CPUs with AVX512-FP16 (Sapphire Rapids and later) leave bf16 to AMX: on one of them whose
 * AMX a virtual machine hides, vdpbf16ps has half the rate of f32's multiply-adds. */
static bool has_slow_dot_products(void)
{
    return __builtin_cpu_is("intel") && cpuid_bit(7, 0, EDX, 23);
}

#else

bool lb_cpu_has(enum lb_cpu_unit unit, enum lb_dtype dtype)
{
    (void)dtype;
    return unit == LB_CPU_PLAIN;
}

bool lb_cpu_lacks_avx512_vnni(void)
{
    return false;
}

static bool has_slow_dot_products(void)
{
    return false;
}

#endif

size_t lb_cpu_units_for(enum lb_dtype dtype, enum lb_cpu_unit list[LB_CPU_UNIT_COUNT])
{
    size_t count = 0;
    for (int unit = LB_CPU_UNIT_COUNT - 1; unit >= LB_CPU_PLAIN; unit--)
        if (lb_cpu_has((enum lb_cpu_unit)unit, dtype))
            list[count++] = (enum lb_cpu_unit)unit;
    for (size_t i = 0; i + 1 < count; i++)
        if (list[i] == LB_CPU_AVX512BF16 && has_slow_dot_products()) {
            list[i] = list[i + 1];
            list[++i] = LB_CPU_AVX512BF16;
        }
    return count;
}

enum lb_cpu_unit lb_cpu_best_unit(enum lb_dtype dtype)
{
    enum lb_cpu_unit list[LB_CPU_UNIT_COUNT];
    lb_cpu_units_for(dtype, list);
    return list[0];
}

size_t lb_cpu_simd_width(enum lb_cpu_unit unit, enum lb_dtype dtype)
{
    if (dtype == LB_INT8) /* its arrays are tiles on all units */
        return 16;
    size_t bytes = unit >= LB_CPU_AVX512 ? 64 : unit == LB_CPU_AVX2 ? 32 : 16;
    return bytes / (dtype == LB_F64 ? sizeof(double) : sizeof(float));
}
