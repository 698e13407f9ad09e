/* cpu_simd's kernels, double, for AVX2 and FMA: 12 of 16 registers hold sums. */
#define real         double
#define REAL_BYTES   8
#define FAST_CELL    0
#define KERNELS      lb_simd_kernels_avx2_f64
#define NAME         "AVX2"
#define VECTOR_BYTES 32
#define ROWS         3
#include "impls/common/simd_kernels_body.inc"
