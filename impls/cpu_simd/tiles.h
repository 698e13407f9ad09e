/* cpu_simd on tiles: what its forward and backward share. Layouts are those of lb_tile_kernels.
 *
 * A step's operand is [x_t h_t-1], row group by row group, and its cells write h both to y and into
 * the operand of the next step. Where the weights of a layer stay in the L2 cache, a step
 * multiplies both parts (fused). Where they don't, the input GEMM of a chunk of steps comes first,
 * so that w_ih is read once per chunk. Backward steps do the same with gradients of the
 * pre-activations. The threads of a team share their operands: each packs a share of the rows and
 * computes its own panels. */
#ifndef LB_CPU_SIMD_TILES_H
#define LB_CPU_SIMD_TILES_H

#include "impls/cpu_simd/cpu_simd.h"

enum {
    LB_TILE_DX_ROWS = 128, /* rows of input gradients that are computed at a time */
};

/* How the steps of a layer are computed, for the thread with the most work. */
struct lb_tile_plan {
    bool fused;
    size_t chunk; /* steps whose x is packed at a time */
    size_t x_tiles, h_tiles;
};

struct lb_tile_plan lb_cpu_tile_plan(const struct lb_cpu_simd *simd, size_t input);

/* The rows of a tile when `rows` rows are divided evenly among as few tiles as possible. */
static inline size_t lb_cpu_group_rows(size_t rows)
{
    return rows > 0 ? lb_cpu_cover(rows, lb_cpu_cover(rows, LB_TILE_ROWS)) : 1;
}

/* The units of a panel. */
static inline struct lb_cpu_range lb_cpu_panel_units(const struct lb_cpu_simd *simd, size_t panel)
{
    size_t from = panel * simd->s.simd_width, to = from + simd->s.simd_width;
    return (struct lb_cpu_range){from, to < simd->s.H ? to : simd->s.H};
}

/* The thread's share of packing these rows. */
void lb_cpu_tile_pack_share(const struct lb_cpu_simd *simd, size_t thread,
                            const struct lb_tile_rows *rows);

/* Between the tensors [B, H] of a layer_dir, from the team's first row on, and some panels of the
 * state [panels, rows, 16]. */
void lb_cpu_tile_load_state(const struct lb_cpu_simd *simd, const char *tensor, size_t rows,
                            struct lb_cpu_range panels, float *state);
void lb_cpu_tile_store_state(const struct lb_cpu_simd *simd, char *tensor, size_t rows,
                             struct lb_cpu_range panels, const float *state);

#endif
