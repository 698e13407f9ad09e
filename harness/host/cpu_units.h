/* The units of this machine's CPUs that multiply matrices. */
#ifndef LB_CPU_UNITS_H
#define LB_CPU_UNITS_H

#include <stdbool.h>

#include "api/dtype.h"

enum lb_cpu_unit {
    LB_CPU_PLAIN,   /* what every CPU of this architecture has */
    LB_CPU_AVX2,    /* with FMA and F16C */
    LB_CPU_AVXVNNI, /* that and AVX-VNNI, for int8 */
    LB_CPU_AVX512,
    LB_CPU_AVX512BF16,
    LB_CPU_AMX,
    LB_CPU_UNIT_COUNT
};

const char *lb_cpu_unit_name(enum lb_cpu_unit unit); /* "plain", "avx2", ... */

/* Whether this CPU has the unit, and, for AVX-VNNI, AVX512-BF16 and AMX, whether the unit takes
 * the dtype; for int8, AVX-512 needs AVX512-VNNI. Asks Linux to let the process use AMX. */
bool lb_cpu_has(enum lb_cpu_unit unit, enum lb_dtype dtype);

/* Whether this is an x86 CPU without AVX512-VNNI. Libraries add pairs of products of int8 in 16
 * bits there, which u8 times s8 overflows unless the weights have 7 bits. */
bool lb_cpu_lacks_avx512_vnni(void);

/* Lists this CPU's units that take the dtype with sums in f32, or in f64 for f64, fastest first,
 * and returns how many: at least LB_CPU_PLAIN. */
size_t lb_cpu_units_for(enum lb_dtype dtype, enum lb_cpu_unit list[LB_CPU_UNIT_COUNT]);

/* The fastest of them. */
enum lb_cpu_unit lb_cpu_best_unit(enum lb_dtype dtype);

/* Hidden units of a panel of cpu_simd with that unit: elements of a vector of sums. */
size_t lb_cpu_simd_width(enum lb_cpu_unit unit, enum lb_dtype dtype);

#endif
