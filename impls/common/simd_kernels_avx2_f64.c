/* Vector kernels for f64 on AVX2 and FMA. Sums take 12 of the 16 registers. */
#define real         double
#define REAL_BYTES   8
#define FAST_CELL    0
#define KERNELS      lb_simd_kernels_avx2_f64
#define NAME         "AVX2"
#define VECTOR_BYTES 32
#define ROWS         3
#include "impls/common/simd_kernels_body.inc"
