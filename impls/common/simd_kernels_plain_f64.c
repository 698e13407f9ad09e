/* Vector kernels for f64 on the compiler's default target, with 16-byte vectors. */
#define real         double
#define REAL_BYTES   8
#define FAST_CELL    0
#define KERNELS      lb_simd_kernels_plain_f64
#define NAME         "16-byte vectors"
#define VECTOR_BYTES 16
#define ROWS         3
#include "impls/common/simd_kernels_body.inc"
