/* Vector kernels for f16 on AVX2, FMA and F16C, which convert weights to f32. */
#define BF16         0
#define VECTOR_BYTES 32
#define ROWS         3
#define KERNELS      lb_simd_kernels_avx2_f16
#define NAME         "AVX2 with f16 converted to f32"
#define DOT          0
#define TILES        0
#include "impls/common/simd_half_body.inc"
