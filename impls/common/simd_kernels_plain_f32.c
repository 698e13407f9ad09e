/* Vector kernels for f32 on the compiler's default target, with 16-byte vectors. */
#define real         float
#define REAL_BYTES   4
#define FAST_CELL    0
#define KERNELS      lb_simd_kernels_plain_f32
#define NAME         "16-byte vectors"
#define VECTOR_BYTES 16
#define ROWS         3
#include "impls/common/simd_kernels_body.inc"
