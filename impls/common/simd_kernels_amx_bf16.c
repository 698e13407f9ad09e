/* Vector kernels for bf16 that multiply with the tiles of AMX-BF16. */
#define BF16         1
#define VECTOR_BYTES 64
#define ROWS         6
#define KERNELS      lb_simd_kernels_amx_bf16
#define NAME         "AMX-BF16"
#define DOT          0
#define TILES        1
#include "impls/common/simd_half_body.inc"
