/* Vector kernels for f64 on AVX-512. Sums take 24 of the 32 registers. */
#define real         double
#define REAL_BYTES   8
#define FAST_CELL    0
#define KERNELS      lb_simd_kernels_avx512_f64
#define NAME         "AVX-512"
#define VECTOR_BYTES 64
#define ROWS         6
#include "impls/common/simd_kernels_body.inc"
