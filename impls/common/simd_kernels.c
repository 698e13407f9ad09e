/* Chooses among the vector kernels by the instruction sets that the CPU reports. */
#include "impls/common/simd_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "host/cpu_units.h"
#include "simd_kernels_list.h"

_Static_assert((int)LB_SIMD_UNIT_COUNT == (int)LB_CPU_UNIT_COUNT, "a list has room for every unit");

#define DECLARATION(dtype, unit, kernels) extern const struct lb_simd_kernels kernels;
#define ROW(dtype, unit, kernels)         {dtype, unit, &kernels},

LB_SIMD_KERNELS(DECLARATION)

static const struct row {
    enum lb_dtype dtype;
    enum lb_cpu_unit unit;
    const struct lb_simd_kernels *kernels;
} rows[] = {LB_SIMD_KERNELS(ROW)};

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
