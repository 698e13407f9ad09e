/* Tiles of the fused step kernels: how one step's product is cut into blocks, and how its weights
 * are laid out. Plain C: host code, kernels and tests share it.
 *
 * A block multiplies 16 * row_tiles rows of weights by `columns` rows of the batch. Forward a row
 * is a gate, four neighbours a unit; backward a row is a unit. `split` warps share the depth of
 * each 16 rows. Depth comes through shared memory in slices of 64 * split bytes a row, of which a
 * warp takes 64, whatever the type. Packed weights are rows of storage, padded with zeros to whole
 * blocks of rows and whole slices. */
#ifndef LB_FUSED_STEP_TILE_H
#define LB_FUSED_STEP_TILE_H

#include <stddef.h>

#include "api/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lb_fused_step_tile {
    int row_tiles, columns, split;
};

/* What ships: X(row_tiles, columns, split), 8 warps each. The list that kernels are made from, that
 * plans choose from and that budgets.csv holds. */
#define LB_FUSED_STEP_TILES(X) X(1, 16, 8) X(2, 32, 4) X(4, 64, 2)

enum {
    LB_FUSED_STEP_STAGES = 4 /* slices in shared memory: one is read, three are on their way */
};

static inline int lb_fused_step_threads(const struct lb_fused_step_tile *tile)
{
    return 32 * tile->row_tiles * tile->split;
}

/* Units whose cells a block makes. */
static inline int lb_fused_step_units(const struct lb_fused_step_tile *tile, bool backward)
{
    return (backward ? 16 : 4) * tile->row_tiles;
}

/* Dynamic shared memory of a block, bytes; 16 more a row, so that rows start in different banks. */
static inline size_t lb_fused_step_shared(const struct lb_fused_step_tile *tile)
{
    return (size_t)LB_FUSED_STEP_STAGES * (size_t)(16 * tile->row_tiles + tile->columns) *
           (size_t)(64 * tile->split + 16);
}

/* Bytes of a packed row, and of one direction's packed weights. */
size_t lb_fused_step_row_bytes(const struct lb_fused_step_tile *tile, bool backward,
                               enum lb_dtype dtype, int64_t hidden);
size_t lb_fused_step_weight_bytes(const struct lb_fused_step_tile *tile, bool backward,
                                  enum lb_dtype dtype, int64_t hidden);

/* w_hh [4H, H] -> packed [padded rows, padded depth]: forward row 4 u + q, depth H; backward row u,
 * depth 4H, unit by unit. Rounded to TF32 where math is not ieee: kernels round the state only. */
void lb_fused_step_pack(const struct lb_fused_step_tile *tile, bool backward, enum lb_dtype dtype,
                        enum lb_math math, int64_t hidden, const void *w_hh, void *packed);

#ifdef __cplusplus
}
#endif
#endif
