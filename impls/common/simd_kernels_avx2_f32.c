/* cpu_simd's kernels, float, for AVX2 and FMA: 12 of 16 registers hold sums. */
#define real         float
#define REAL_BYTES   4
#define FAST_CELL    0
#define KERNELS      lb_simd_kernels_avx2_f32
#define NAME         "AVX2"
#define VECTOR_BYTES 32
#define ROWS         3
#include "impls/common/simd_kernels_body.inc"
