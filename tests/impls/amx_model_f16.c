/* cpu_simd's AMX kernels for f16, compiled against the model of the tiles. */
#include "tests/impls/amx_model.h"

#define BF16         0
#define VECTOR_BYTES 64
#define ROWS         6
#define KERNELS      lb_simd_kernels_amx_model_f16
#define NAME         "a model of AMX"
#define DOT          0
#define TILES        1
#include "impls/common/simd_half_body.inc"
