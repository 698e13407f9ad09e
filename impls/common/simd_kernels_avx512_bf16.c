/* Vector kernels for bf16 on AVX-512, which convert weights to f32. */
#define BF16         1
#define VECTOR_BYTES 64
#define ROWS         6
#define KERNELS      lb_simd_kernels_avx512_bf16
#define NAME         "AVX-512 with bf16 converted to f32"
#define DOT          0
#define TILES        0
#include "impls/common/simd_half_body.inc"
