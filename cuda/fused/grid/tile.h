/* Tiles of the fused grid kernels: how one layer's recurrent weights lie over the blocks of a grid,
 * over warps and registers. Plain C: host code, kernels and tests share it.
 *
 * ceil(H / units) blocks, a group, own all hidden units for some rows of the batch; several groups
 * split the batch where the device has room for them. A step's rows are worked on in chunks of
 * `columns`.
 *
 * The unit of exchange is a packet: 16 bytes a lane, 512 a warp, `deep` units of 8 columns. Lane
 * 4 g + t has 16 bytes of column g: the t-th part of the depth, 8 neighbouring units in 2-byte
 * types (deep 32), 4 in f32 (deep 16). Two k-steps of mma eat one packet; their columns are
 * permuted so that a lane's 16 bytes are its operands.
 *
 * Forward: gates x hidden. A warp multiplies all units / 4 row tiles of its block (16 rows, 4
 * units, rows ordered as in cluster/tile.h) by its part of the depth: packets warp, warp + warps,
 * ..., at most `packets` of them. Backward: hidden x own gates. A warp multiplies row tiles warp,
 * warp + warps, ... of ALL units by the depth of its block's 4 * units gate gradients. Both have
 * the same number of weight fragments a warp; the first `resident` stay in registers, the rest in
 * shared memory. */
#ifndef LB_FUSED_GRID_TILE_H
#define LB_FUSED_GRID_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lb_grid_tile {
    int units;    /* of a block: 8 or a multiple of 16 */
    int warps;    /* of a block */
    int packets;  /* of depth a warp, at most: H is at most deep * packets * warps */
    int resident; /* fragments of a warp that stay in registers */
    int columns;  /* rows of the batch in a chunk: 8 or 16 */
};

/* What ships: X(units, warps, packets, resident, columns). The lists that kernels are made from,
 * that `auto` chooses from and that budgets.csv holds. */
#define LB_GRID_HALF_TILES(X) \
    X(8, 8, 4, 16, 8)         \
    X(8, 8, 4, 16, 16)        \
    X(16, 8, 4, 32, 8)        \
    X(16, 8, 4, 32, 16)       \
    X(16, 8, 8, 36, 8)
#define LB_GRID_FLOAT_TILES(X) \
    X(8, 8, 8, 22, 8)          \
    X(16, 8, 4, 28, 8)

/* What a product is made of, and with it the storage type. */
enum lb_grid_math { LB_GRID_F16, LB_GRID_BF16, LB_GRID_TF32, LB_GRID_F32, LB_GRID_MATHS };

/* Units of one column in a lane's 16 bytes, and units deep of a packet. */
static inline int lb_grid_lane_units(enum lb_grid_math math)
{
    return math == LB_GRID_F16 || math == LB_GRID_BF16 ? 8 : 4;
}

static inline int lb_grid_deep(enum lb_grid_math math)
{
    return 4 * lb_grid_lane_units(math);
}

/* Blocks of a group. */
static inline int lb_grid_blocks(const struct lb_grid_tile *tile, int hidden)
{
    return (hidden + tile->units - 1) / tile->units;
}

/* The largest H, however many blocks there are. */
static inline int lb_grid_reach(const struct lb_grid_tile *tile, enum lb_grid_math math)
{
    return lb_grid_deep(math) * tile->packets * tile->warps;
}

/* Fragments of a warp, in registers and shared memory together: two k-steps a packet and row
 * tile. */
static inline int lb_grid_fragments(const struct lb_grid_tile *tile)
{
    return 2 * tile->packets * (tile->units / 4);
}

/* Bytes of one direction's packed weights: 16 a lane and fragment. */
size_t lb_grid_weight_bytes(const struct lb_grid_tile *tile, int hidden);

/* How a launch covers the batch: `groups` of `rows` rows, the last perhaps with fewer; each works
 * on its rows in `chunks`. */
struct lb_grid_split {
    int groups, rows, chunks;
};

/* As many groups of whole blocks of 8 rows as `room` allows, at least one. */
struct lb_grid_split lb_grid_split_of(const struct lb_grid_tile *tile, int batch, int room);

/* h is stored this many times, and block b of a group reads copy b % LB_GRID_COPIES: otherwise the
 * few slices of the second-level cache that hold the most of its lines would serve all blocks. */
enum { LB_GRID_COPIES = 4 };

/* Bytes of the exchange buffers of all directions and groups. */
size_t lb_grid_forward_exchange(const struct lb_grid_tile *tile, enum lb_grid_math math, int hidden,
                                const struct lb_grid_split *split, int directions);
size_t lb_grid_backward_exchange(const struct lb_grid_tile *tile, int hidden,
                                 const struct lb_grid_split *split, int directions);

/* Dynamic shared memory of a block, bytes. Kernels lay it out in the order of these sums. */
size_t lb_grid_forward_shared(const struct lb_grid_tile *tile, enum lb_grid_math math, int chunks);
size_t lb_grid_backward_shared(const struct lb_grid_tile *tile, enum lb_grid_math math, int chunks);

/* w_hh [4H, H] of the math's storage type -> packed [blocks, warps, fragments, 32 lanes, 16 bytes],
 * zero where the tile is larger than H; rounded to TF32 where that is the math. */
void lb_grid_pack_forward(const struct lb_grid_tile *tile, enum lb_grid_math math, int hidden,
                          const void *w_hh, void *packed);
void lb_grid_pack_backward(const struct lb_grid_tile *tile, enum lb_grid_math math, int hidden,
                           const void *w_hh, void *packed);

#ifdef __cplusplus
}
#endif
#endif
