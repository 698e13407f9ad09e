/* Tiles of the fused cluster kernels: how one LSTM's recurrent weights lie over a cluster's blocks,
 * warps and registers. Plain C: host code, kernels and tests share it.
 *
 * A cluster of `blocks` blocks of `warps` warps owns all hidden units for `columns` rows of the
 * batch; a warp ends up with 4 units, so a tile reaches H = 4 * warps * blocks, and a smaller H is
 * padded with zeros. Weights are fragments of mma.m16n8k16's A operand, 512 bytes a warp: the first
 * `resident` of a warp's fragments stay in registers for the whole sequence, the rest in shared
 * memory.
 *
 * Forward: gates x hidden. Row r of 16 is gate 2 * (r % 2) + r / 8 of unit r % 8 / 2: then two
 * neighbouring lane groups hold i, f and g, o of the same unit, and two shuffles a column pair
 * bring a cell together. `split` warps multiply the 16 rows of each by their 1/split of the depth
 * and swap sums through shared memory: the operand h is read H / split deep by each instead of H.
 *
 * Backward: hidden x own gates. A block multiplies its own 4 * units gate gradients, depth
 * 4 * 4 * warps, by the transposed weights of ALL units, and sends each peer the sums that it
 * owns: 4 bytes a unit and column, where gate gradients would be 8. `split` is not used.
 *
 * In both the 16 columns of a fragment are permuted so that lane t of four owns four neighbours:
 * 8 bytes of the operand, one load. */
#ifndef LB_FUSED_TILE_H
#define LB_FUSED_TILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lb_cluster_tile {
    int blocks;   /* of a cluster: 1 to 16 */
    int warps;    /* of a block */
    int split;    /* warps that share a depth, forward */
    int resident; /* fragments of a warp that stay in registers */
    int columns;  /* rows of the batch a cluster: 8 or 16 */
};

/* What ships: X(blocks, warps, split, resident, columns). The lists that kernels are made from,
 * that `auto` chooses from and that budgets.csv holds. Backward keeps a sum of each block in shared
 * memory, so that 16 blocks of 12 warps have room for 8 columns only. */
#define LB_CLUSTER_TILES(X) \
    X(4, 8, 1, 8, 8)        \
    X(8, 8, 2, 16, 8)       \
    X(8, 8, 2, 16, 16)      \
    X(16, 8, 2, 32, 8)      \
    X(16, 8, 2, 32, 16)
#define LB_CLUSTER_FORWARD_TILES(X)  LB_CLUSTER_TILES(X) X(16, 12, 3, 28, 8) X(16, 12, 2, 26, 16)
#define LB_CLUSTER_BACKWARD_TILES(X) LB_CLUSTER_TILES(X) X(16, 12, 3, 26, 8)

/* The largest H. */
static inline int lb_cluster_units(const struct lb_cluster_tile *tile)
{
    return 4 * tile->warps * tile->blocks;
}

/* Fragments of a warp, in registers and shared memory together; the same for both passes. */
static inline int lb_cluster_fragments(const struct lb_cluster_tile *tile)
{
    return lb_cluster_units(tile) / 16;
}

/* Bytes of one direction's packed weights: 16 a lane and fragment. */
static inline size_t lb_cluster_weight_bytes(const struct lb_cluster_tile *tile)
{
    return (size_t)tile->blocks * (size_t)tile->warps * (size_t)lb_cluster_fragments(tile) * 32 *
           16;
}

/* Dynamic shared memory of a block, bytes. Kernels lay it out in the order of these sums. */
size_t lb_cluster_forward_shared(const struct lb_cluster_tile *tile);
size_t lb_cluster_backward_shared(const struct lb_cluster_tile *tile);

/* w_hh [4H, H] of a 2-byte dtype -> packed [blocks, warps, fragments, 32 lanes, 8], zero where the
 * tile is larger than H. */
void lb_cluster_pack_forward(const struct lb_cluster_tile *tile, int hidden, const uint16_t *w_hh,
                             uint16_t *packed);
void lb_cluster_pack_backward(const struct lb_cluster_tile *tile, int hidden, const uint16_t *w_hh,
                              uint16_t *packed);

#ifdef __cplusplus
}
#endif
#endif
