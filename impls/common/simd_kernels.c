/* Chooses among the vector kernels by the instruction sets that the CPU reports. */
#include "impls/common/simd_kernels.h"

#include "simd_kernels_list.h"

#define DECLARATION(dtype, unit, kernels) extern const struct lb_simd_kernels kernels;
#define ROW(dtype, unit, kernels)         {dtype, unit, &kernels},

LB_SIMD_KERNELS(DECLARATION)

static const struct row {
    enum lb_dtype dtype;
    enum lb_cpu_unit unit;
    const struct lb_simd_kernels *kernels;
} rows[] = {LB_SIMD_KERNELS(ROW)};

size_t lb_simd_kernels_all(enum lb_dtype dtype,
                           const struct lb_simd_kernels *list[LB_CPU_UNIT_COUNT])
{
    enum lb_cpu_unit units[LB_CPU_UNIT_COUNT];
    size_t unit_count = lb_cpu_units_for(dtype, units), count = 0;
    for (size_t u = 0; u < unit_count; u++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            if (rows[i].dtype == dtype && rows[i].unit == units[u])
                list[count++] = rows[i].kernels;
    return count;
}

const struct lb_simd_kernels *lb_simd_kernels_best(enum lb_dtype dtype)
{
    const struct lb_simd_kernels *list[LB_CPU_UNIT_COUNT];
    lb_simd_kernels_all(dtype, list);
    return list[0];
}
