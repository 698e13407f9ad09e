/* cpu_simd's AMX kernels for int8, compiled against the model of the tiles. */
#include "tests/impls/amx_model.h"

#define ROWS    6
#define KERNELS lb_simd_kernels_amx_model_int8
#define NAME    "a model of AMX"
#define VNNI    0
#define BF16    0
#define TILES   1
#include "impls/common/simd_int8_body.inc"
