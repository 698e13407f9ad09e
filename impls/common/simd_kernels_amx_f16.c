/* Vector kernels for f16 that multiply with the tiles of AMX-FP16. */
#define BF16         0
#define VECTOR_BYTES 64
#define ROWS         6
#define KERNELS      lb_simd_kernels_amx_f16
#define NAME         "AMX-FP16"
#define DOT          0
#define TILES        1
#include "impls/common/simd_half_body.inc"
