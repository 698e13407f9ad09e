/* Vector kernels for f32 on AVX2 and FMA. Sums take 12 of the 16 registers. */
#define real         float
#define REAL_BYTES   4
#define FAST_CELL    0
#define KERNELS      lb_simd_kernels_avx2_f32
#define NAME         "AVX2"
#define VECTOR_BYTES 32
#define ROWS         3
#include "impls/common/simd_kernels_body.inc"
