/* Tiles of the fused step kernels: how the matrix product of one step is divided into blocks, and
 * how its weights are packed; and the launchers. Host code, kernels and tests share this plain C.
 *
 * A block multiplies 16 * row_tiles rows of weights by `columns` batch rows. In forward a row is a
 * gate, and four neighbours are the gates of a unit; in backward a row is a unit. `split` warps
 * share the depth of each 16 rows. The depth passes through shared memory in slices of 64 * split
 * bytes per row, of which each warp multiplies 64, in any type. Packed weights are rows of the
 * storage type, padded with zeros to whole blocks of rows and whole slices.
 *
 * `blocks` blocks of a cluster multiply the same rows and columns, each another part of the slices.
 * They exchange their sums, and each computes the cells of every blocks-th column. */
#ifndef LB_STEP_H
#define LB_STEP_H

#include <stddef.h>

#include "api/problem.h"
#include "api/status.h"
#include "cuda/fused/common/args.h"
#include "cuda/fused/common/weight_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lb_step_tile {
    int row_tiles, columns, split, blocks;
};

/* The built tiles: X(row_tiles, columns, split, blocks), each with 8 warps. Kernels are compiled
 * from these lists, plans choose from them, and budgets.csv has a row for each kernel. Tiles of the
 * second list are for tensor cores: on the plain units a thread would have too many sums and cells.
 * Those of the third are for tensor cores in backward, whose depth is 4H, on sm_90 and later. */
#define LB_STEP_TILES(X)         X(1, 16, 8, 1) X(2, 32, 4, 1) X(4, 64, 2, 1)
#define LB_STEP_TENSOR_TILES(X)  X(8, 64, 1, 1)
#define LB_STEP_CLUSTER_TILES(X) X(4, 64, 2, 4) X(8, 64, 1, 4)

enum {
    LB_STEP_STAGES = 4, /* slices in shared memory: one is read while three are copied */
    LB_STEP_GROUP = 4,  /* cells whose inputs a thread requests at the same time in backward */
};

LB_TILE_FUNCTION int lb_step_threads(const struct lb_step_tile *tile)
{
    return 32 * tile->row_tiles * tile->split;
}

/* Returns the number of units whose cells a block computes. */
LB_TILE_FUNCTION int lb_step_units(const struct lb_step_tile *tile, bool backward)
{
    return (backward ? 16 : 4) * tile->row_tiles;
}

/* Returns whether registers suffice for two blocks per SM, so that blocks of the next step can be
 * resident while those of a step run. */
LB_TILE_FUNCTION bool lb_step_pairs(const struct lb_step_tile *tile, enum lb_dtype dtype,
                                    enum lb_math math)
{
    bool plain = dtype == LB_F32 && math == LB_IEEE;
    return dtype != LB_F64 && tile->row_tiles <= (plain ? 2 : 4);
}

/* Returns the bytes of what a block receives from its cluster: an mbarrier in 16 bytes, and from
 * each block the f32 sums of all rows and every blocks-th column, with 16 bytes more per 4 rows, so
 * that these start in different banks. */
LB_TILE_FUNCTION size_t lb_step_received(const struct lb_step_tile *tile)
{
    return tile->blocks == 1
               ? 0
               : 16 + (size_t)(16 * tile->row_tiles) * (size_t)(tile->columns + tile->blocks) * 4;
}

/* Returns the bytes of dynamic shared memory per block: the slices, then what it receives. A row
 * has 16 bytes more than its slice, so that rows start in different banks. */
LB_TILE_FUNCTION size_t lb_step_shared(const struct lb_step_tile *tile)
{
    return (size_t)LB_STEP_STAGES * (size_t)(16 * tile->row_tiles + tile->columns) *
               (size_t)(64 * tile->split + 16) +
           lb_step_received(tile);
}

/* Return the bytes of a packed row, and of one direction's packed weights. */
size_t lb_step_row_bytes(const struct lb_step_tile *tile, bool backward, enum lb_dtype dtype,
                         int64_t hidden);
size_t lb_step_weight_bytes(const struct lb_step_tile *tile, bool backward, enum lb_dtype dtype,
                            int64_t hidden);

/* Returns the layout of w_hh [4H, H] as packed [padded rows, padded depth]. In forward, row 4 u + q
 * is gate q of unit u, and the depth is H; in backward, row u is unit u, and the depth is 4H,
 * ordered by unit. Where math is not LB_IEEE, f32 weights are rounded to TF32, because kernels
 * round only the state. */
struct lb_weight_layout lb_step_layout(const struct lb_step_tile *tile, bool backward,
                                       enum lb_dtype dtype, enum lb_math math, int64_t hidden);

/* ---- Launches --------------------------------------------------------------------------------
 * A launcher only enqueues on the stream (cudaStream_t), one kernel per step. */

/* One of the built kernels; tile is in a list above. */
struct lb_step_kernel {
    struct lb_step_tile tile;
    enum lb_dtype dtype;
    enum lb_math math; /* f32: LB_IEEE without tensor cores, else TF32 */
    enum lb_act act;
    bool backward;
    /* Set by lb_step_ready: */
    void (*function)(void);
    bool follows; /* a step's launch may begin while that of the step before still runs; in a plan,
                   * whether it is expected to */
};

/* Readies the kernel for launches by this process, and asks the device how many of its blocks, or
 * clusters where the tile has several blocks, run at the same time. LB_FAILED with CUDA's message.
 * LB_UNSUPPORTED where the device cannot run such a cluster. */
enum lb_status lb_step_ready(struct lb_step_kernel *kernel, int *resident, struct lb_error *err);

/* Enqueues steps [from, to) of a layer, all directions in one launch per step. Where from is 0,
 * backward also computes the gradients of the initial state. lb_step_ready comes first. args:
 * lb_fused_forward_args or lb_fused_backward_args, as kernel->backward says. */
enum lb_status lb_step_launch(const void *kernel, const void *args, void *stream,
                              struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
