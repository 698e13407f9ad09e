/* Vector kernels for f16 on the compiler's default target. */
#define BF16         0
#define VECTOR_BYTES 16
#define ROWS         3
#define KERNELS      lb_simd_kernels_plain_f16
#define NAME         "16-byte vectors with f16 converted to f32"
#define DOT          0
#define TILES        0
#include "impls/common/simd_half_body.inc"
