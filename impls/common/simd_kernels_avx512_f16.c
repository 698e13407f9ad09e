/* Vector kernels for f16 on AVX-512, which convert weights to f32. They do not use AVX512-FP16,
 * because its sums would be f16. */
#define BF16         0
#define VECTOR_BYTES 64
#define ROWS         6
#define KERNELS      lb_simd_kernels_avx512_f16
#define NAME         "AVX-512 with f16 converted to f32"
#define DOT          0
#define TILES        0
#include "impls/common/simd_half_body.inc"
