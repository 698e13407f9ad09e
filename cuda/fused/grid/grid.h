/* Tiles of the fused grid kernels: how the recurrent weights of a layer are distributed over the
 * blocks of a grid, over warps and registers; and the launchers. Host code, kernels and tests share
 * this plain C.
 *
 * A group of ceil(H / units) blocks computes all hidden units of some batch rows. Several groups
 * split the batch where the device has room for them. A group computes its rows in chunks of
 * `columns`.
 *
 * Blocks exchange h in packets of 512 bytes, which hold `deep` units of 8 columns. A warp reads a
 * packet with 16 bytes per lane. Lane 4 g + t reads the t-th quarter of the depth in column g: 8
 * neighbouring units in 2-byte types (deep 32), 4 in f32 (deep 16). Two k-steps of mma multiply one
 * packet; their columns are permuted so that a lane's 16 bytes are its operands.
 *
 * Forward multiplies gates x hidden. A warp multiplies all units / 4 row tiles of its block (each
 * 16 rows, which are 4 units in the order of cluster/cluster.h) by its part of the depth: the
 * packets warp, warp + warps and so on, at most `packets` of them. Backward multiplies hidden x own
 * gates. A warp multiplies the row tiles warp, warp + warps and so on of ALL units by the depth of
 * its block's 4 * units gate gradients. A warp has the same number of weight fragments in both
 * passes. The first `resident` stay in registers, the others in shared memory. */
#ifndef LB_GRID_H
#define LB_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/status.h"
#include "cuda/fused/common/args.h"
#include "cuda/fused/common/weight_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lb_grid_tile {
    int units;    /* per block: 8 or a multiple of 16 */
    int warps;    /* per block */
    int packets;  /* maximum per warp, so that H is at most deep * packets * warps */
    int resident; /* fragments that stay in registers, per warp */
    int columns;  /* batch rows per chunk: 8 or 16 */
};

/* The built tiles: X(units, warps, packets, resident, columns). Kernels are compiled from these
 * lists, `auto` chooses from them, and budgets.csv has a row for each kernel. */
#define LB_GRID_HALF_TILES(X) \
    X(8, 8, 4, 16, 8)         \
    X(8, 8, 4, 16, 16)        \
    X(16, 8, 4, 32, 8)        \
    X(16, 8, 4, 32, 16)       \
    X(16, 8, 8, 36, 8)
#define LB_GRID_FLOAT_TILES(X) \
    X(8, 8, 8, 22, 8)          \
    X(16, 8, 4, 28, 8)

/* The arithmetic of the matrix product, which also determines the storage type. */
enum lb_grid_math { LB_GRID_F16, LB_GRID_BF16, LB_GRID_TF32, LB_GRID_F32, LB_GRID_MATHS };

/* Return the units of one column in a lane's 16 bytes, and the units in a packet. */
LB_TILE_FUNCTION int lb_grid_lane_units(enum lb_grid_math math)
{
    return math == LB_GRID_F16 || math == LB_GRID_BF16 ? 8 : 4;
}

LB_TILE_FUNCTION int lb_grid_deep(enum lb_grid_math math)
{
    return 4 * lb_grid_lane_units(math);
}

/* Returns the blocks per group. */
LB_TILE_FUNCTION int lb_grid_blocks(const struct lb_grid_tile *tile, int hidden)
{
    return (hidden + tile->units - 1) / tile->units;
}

/* Returns the largest H that the tile takes with any number of blocks. */
LB_TILE_FUNCTION int lb_grid_reach(const struct lb_grid_tile *tile, enum lb_grid_math math)
{
    return lb_grid_deep(math) * tile->packets * tile->warps;
}

/* Returns the fragments per warp, in registers and shared memory together: two per packet and row
 * tile. */
LB_TILE_FUNCTION int lb_grid_fragments(const struct lb_grid_tile *tile)
{
    return 2 * tile->packets * (tile->units / 4);
}

/* How a launch divides the batch: into `groups` of `rows` rows, of which the last may have fewer. A
 * group computes its rows in `chunks`. */
struct lb_grid_split {
    int groups, rows, chunks;
};

/* Returns a split into at most `room` groups, but at least one, of whole blocks of 8 rows. */
struct lb_grid_split lb_grid_split_of(const struct lb_grid_tile *tile, int batch, int room);

/* Number of copies of h. Block b of a group reads copy b % LB_GRID_COPIES. With a single copy, the
 * few slices of the L2 cache that hold the most of its lines would serve all blocks. */
enum { LB_GRID_COPIES = 4 };

/* Returns the bytes of the exchange buffers of all directions and groups. */
size_t lb_grid_exchange(const struct lb_grid_tile *tile, enum lb_grid_math math, bool backward,
                        int hidden, const struct lb_grid_split *split, int directions);

/* Returns how many packets a forward warp requests at the same time. */
LB_TILE_FUNCTION int lb_grid_window(const struct lb_grid_tile *tile)
{
    int most = 8 / (tile->columns / 8);
    return most < tile->packets ? most : tile->packets;
}

/* Returns after how many packets of its last window a forward warp begins to request those of the
 * next chunk, where a group has several chunks. 0: never, because the f32 product of 16 units
 * leaves no registers for packets that arrive meanwhile. */
LB_TILE_FUNCTION int lb_grid_ahead(const struct lb_grid_tile *tile, enum lb_grid_math math)
{
    int window = lb_grid_window(tile);
    if (math == LB_GRID_F32 && tile->units > 8)
        return 0;
    return window > 4 ? window / 2 : window > 1 ? 2 : 1;
}

/* Returns the bytes of a value of the storage type. */
LB_TILE_FUNCTION size_t lb_grid_element_bytes(enum lb_grid_math math)
{
    return (size_t)(16 / lb_grid_lane_units(math));
}

/* Returns the bytes of dynamic shared memory per block: the weights that do not stay in registers,
 * the buffers of a chunk, two words, and 8 bytes per cell of each chunk. */
LB_TILE_FUNCTION size_t lb_grid_shared(const struct lb_grid_tile *tile, enum lb_grid_math math,
                                       bool backward, int chunks)
{
    size_t spilled = (size_t)(lb_grid_fragments(tile) - tile->resident) * 32 * 16;
    size_t warps = (size_t)tile->warps, cells = (size_t)tile->units * (size_t)tile->columns;
    size_t stage = warps * (size_t)lb_grid_window(tile) * (size_t)(tile->columns / 8) * 32 * 16;
    size_t forward = (2 * warps + 1) * cells * 16 + (math == LB_GRID_F32 ? stage : 0);
    size_t operand = 4 * cells * lb_grid_element_bytes(math);
    return warps * spilled + (backward ? warps * 32 * 16 + operand : forward) +
           2 * sizeof(uint32_t) + (size_t)chunks * cells * 8;
}

/* Returns the layout of w_hh [4H, H], in the storage type of `math`, as packed [blocks, warps,
 * fragments, 32 lanes, 16 bytes], with zeros where the tile is larger than H. For LB_GRID_TF32
 * weights are rounded to TF32. */
struct lb_weight_layout lb_grid_layout(const struct lb_grid_tile *tile, enum lb_grid_math math,
                                       bool backward, int hidden);

/* ---- Launches --------------------------------------------------------------------------------
 * A launcher only enqueues on the stream (cudaStream_t). */

/* About two seconds, as a read from the L2 cache takes about half a microsecond. */
enum { LB_GRID_SPIN_LIMIT = 1 << 22 };

/* One of the built kernels, and how it is launched. */
struct lb_grid_kernel {
    struct lb_grid_tile tile;
    enum lb_grid_math math;
    struct lb_grid_split split;
    bool backward;
    bool beside;            /* both directions in one launch, else one after the other */
    void (*function)(void); /* set by lb_grid_ready */
};

/* Readies the kernel for launches by this process, and asks the device how many of its blocks run
 * at the same time. LB_UNSUPPORTED where these are fewer than `needed`, LB_FAILED with CUDA's
 * message. */
enum lb_status lb_grid_ready(struct lb_grid_kernel *kernel, int needed, int *resident,
                             struct lb_error *err);

/* Enqueues the clearing of the exchange buffers (scratch) of a layer, which the first launch of a
 * sequence needs. Later launches continue with what the launch before left there. */
enum lb_status lb_grid_clear(const void *kernel, int hidden, int directions, void *scratch,
                             void *stream, struct lb_error *err);

/* Enqueues steps [from, to) of a layer, all directions. lb_grid_ready comes first, and
 * lb_grid_clear before the first steps of a sequence. args: lb_fused_forward_args or
 * lb_fused_backward_args, as kernel->backward says. */
enum lb_status lb_grid_launch(const void *kernel, const void *args, void *stream,
                              struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
