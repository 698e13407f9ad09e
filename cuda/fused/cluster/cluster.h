/* Tiles of the fused cluster kernels: how the recurrent weights of a layer are distributed over the
 * blocks, warps and registers of a cluster; and the launchers. Host code, kernels and tests share
 * this plain C.
 *
 * A cluster of `blocks` blocks of `warps` warps computes all hidden units of `columns` batch rows.
 * Each warp computes the cells of 4 units, so that a tile takes H up to 4 * warps * blocks; a
 * smaller H is padded with zeros. Weights are fragments of the A operand of mma.m16n8k16, 512 bytes
 * per warp and fragment. The first `resident` fragments of a warp stay in registers for the whole
 * sequence, the others in shared memory.
 *
 * Forward multiplies gates x hidden. Row r of the 16 rows of a fragment is gate 2 * (r % 2) + r / 8
 * of unit r % 8 / 2. Two neighbouring groups of lanes then hold i, f and g, o of the same unit, and
 * two shuffles per pair of columns gather the gates of a cell. Groups of `split` warps share the
 * depth: each warp multiplies the rows of the whole group by 1 / split of the depth, and the warps
 * swap sums through shared memory. A warp then reads H / split values of h per column instead of H.
 *
 * Backward multiplies hidden x own gates. A block multiplies the gradients of its own gates, a
 * depth of 4 * 4 * warps, by the transposed weights of ALL units, and sends each peer the sums of
 * that peer's units. That takes 4 bytes per unit and column, where sending gate gradients would
 * take 8. Backward does not use `split`.
 *
 * In both passes the 16 columns of a fragment are permuted so that lane t of four has four
 * neighbouring columns: 8 bytes of the operand, which it reads in one load. */
#ifndef LB_CLUSTER_H
#define LB_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/dtype.h"
#include "api/status.h"
#include "cuda/fused/common/args.h"
#include "cuda/fused/common/weight_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lb_cluster_tile {
    int blocks;   /* per cluster: 1 to 16 */
    int warps;    /* per block */
    int split;    /* forward: warps that share a depth */
    int resident; /* fragments that stay in registers, per warp */
    int columns;  /* batch rows per cluster: 8 or 16 */
};

/* The built tiles: X(blocks, warps, split, resident, columns). Kernels are compiled from these
 * lists, `auto` chooses from them, and budgets.csv has a row for each kernel. Backward keeps sums
 * from each block in shared memory, so that 16 blocks of 12 warps have room for 8 columns only. */
#define LB_CLUSTER_TILES(X) \
    X(4, 8, 1, 8, 8)        \
    X(8, 8, 2, 16, 8)       \
    X(8, 8, 2, 16, 16)      \
    X(16, 8, 2, 32, 8)      \
    X(16, 8, 2, 32, 16)
#define LB_CLUSTER_FORWARD_TILES(X)  LB_CLUSTER_TILES(X) X(16, 12, 3, 28, 8) X(16, 12, 2, 26, 16)
#define LB_CLUSTER_BACKWARD_TILES(X) LB_CLUSTER_TILES(X) X(16, 12, 3, 26, 8)

/* Returns the largest H that the tile takes. */
LB_TILE_FUNCTION int lb_cluster_reach(const struct lb_cluster_tile *tile)
{
    return 4 * tile->warps * tile->blocks;
}

/* Returns the fragments per warp, in registers and shared memory together, equal in both passes. */
LB_TILE_FUNCTION int lb_cluster_fragments(const struct lb_cluster_tile *tile)
{
    return lb_cluster_reach(tile) / 16;
}

/* Returns the bytes of dynamic shared memory per block: the weights that do not stay in registers,
 * then the buffers of a step, then two mbarriers. */
LB_TILE_FUNCTION size_t lb_cluster_shared(const struct lb_cluster_tile *tile, bool backward)
{
    size_t spilled = (size_t)(lb_cluster_fragments(tile) - tile->resident) * 32 * 16;
    size_t warps = (size_t)tile->warps, columns = (size_t)tile->columns, units = 4 * warps;
    size_t h = (size_t)lb_cluster_reach(tile) * columns * 2;
    size_t swapped = warps * (size_t)(tile->split - 1) * 16 * columns * 4;
    size_t sums = (size_t)tile->blocks * units * columns * 4; /* from all blocks, for own units */
    size_t gradients = 4 * units * columns * 2;
    return warps * spilled + (backward ? 2 * sums + 2 * gradients : 2 * h + swapped) +
           2 * sizeof(uint64_t);
}

/* Returns the layout of w_hh [4H, H], of a 2-byte dtype, as packed [blocks, warps, fragments, 32
 * lanes, 8], with zeros where the tile is larger than H. */
struct lb_weight_layout lb_cluster_layout(const struct lb_cluster_tile *tile, bool backward,
                                          int hidden);

/* ---- Launches --------------------------------------------------------------------------------
 * A launcher only enqueues on the stream (cudaStream_t). */

/* One of the built kernels; tile is in LB_CLUSTER_FORWARD_TILES or LB_CLUSTER_BACKWARD_TILES. */
struct lb_cluster_kernel {
    struct lb_cluster_tile tile;
    enum lb_dtype dtype; /* LB_F16 or LB_BF16 */
    bool backward;
    bool train;             /* forward: writes gates and cells for backward */
    int rows;               /* batch rows per cluster: 1 to tile.columns */
    size_t shared_least;    /* bytes of shared memory per block that a launch asks for at least */
    void (*function)(void); /* set by lb_cluster_ready */
};

/* Readies the kernel for launches by this process, and asks the device how many of its clusters run
 * at the same time. LB_UNSUPPORTED where not even one does, LB_FAILED with CUDA's message. */
enum lb_status lb_cluster_ready(struct lb_cluster_kernel *kernel, int *clusters,
                                struct lb_error *err);

/* Enqueues steps [from, to) of a layer, all directions in one launch. lb_cluster_ready comes first.
 * args: lb_fused_forward_args or lb_fused_backward_args, as kernel->backward says. */
enum lb_status lb_cluster_launch(const void *kernel, const void *args, void *stream,
                                 struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
