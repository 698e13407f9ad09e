/* AMX's tile instructions in plain C, for amx_tiles.inc. Where the instruction raises an
 * exception, the model ends the test. Each thread has its own tiles. Source: Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 2, LDTILECFG, TILELOADD, TDPBF16PS, TDPBSSD. */
#ifndef LB_AMX_MODEL_H
#define LB_AMX_MODEL_H

#include "impls/common/simd_kernels.h"

/* config [64 bytes]: the palette, and for each tile its rows and its bytes per row. */
void amx_model_config(const void *config);
void amx_model_release(void);
void amx_model_load(int tile, const void *base, size_t stride, char instruction);
void amx_model_store(int tile, void *base, size_t stride);
/* c += a b, with pairs of bf16 or f16 as operands and sums in f32, or fours of int8 and s32. */
void amx_model_dot(enum lb_dtype dtype, int c, int a, int b);

/* Where not NULL, it is called with each instruction before it is carried out: C ldtilecfg, L
 * tileload, S tileloaddt1, W tilestore, D tdp. */
extern void (*amx_model_watch)(char instruction);

/* Returns how many tile products all threads have computed so far. */
size_t amx_model_dot_count(void);

/* The kernels that are compiled against this model. */
extern const struct lb_simd_kernels lb_simd_kernels_amx_model_bf16, lb_simd_kernels_amx_model_f16,
    lb_simd_kernels_amx_model_int8;

#define TILE_CONFIG(config)                  amx_model_config(config)
#define TILE_RELEASE()                       amx_model_release()
#define TILE_LOAD(tile, base, stride)        amx_model_load(tile, base, stride, 'L')
#define TILE_LOAD_STREAM(tile, base, stride) amx_model_load(tile, base, stride, 'S')
#define TILE_STORE(tile, base, stride)       amx_model_store(tile, base, stride)
#define TILE_DOT(c, a, b)                    amx_model_dot(TILE_DTYPE, c, a, b)
#define TILE_DTYPE                           (INT8 ? LB_INT8 : BF16 ? LB_BF16 : LB_F16)

#endif
