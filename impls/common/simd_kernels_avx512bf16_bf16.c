/* Vector kernels for bf16 that use the dot products of AVX512-BF16. */
#define BF16         1
#define VECTOR_BYTES 64
#define ROWS         6
#define KERNELS      lb_simd_kernels_avx512bf16_bf16
#define NAME         "AVX512-BF16"
#define DOT          1
#define TILES        0
#include "impls/common/simd_half_body.inc"
