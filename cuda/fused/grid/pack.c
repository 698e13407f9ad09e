/* The order in which the lanes of the grid kernels hold recurrent weights, and the sizes of
 * what blocks exchange. */
#include "cuda/fused/grid/grid.h"

enum { lanes = 32, lane_bytes = 16, registers = 4, k_steps = 2 };

struct lb_grid_split lb_grid_split_of(const struct lb_grid_tile *tile, int batch, int room)
{
    int eights = (batch + 7) / 8, groups = room < eights ? room : eights;
    int rows = (eights + groups - 1) / groups * 8;
    struct lb_grid_split split = {.rows = rows < batch ? rows : batch};
    split.groups = (batch + split.rows - 1) / split.rows;
    split.chunks = (split.rows + tile->columns - 1) / tile->columns;
    return split;
}

/* Returns the number of buffers: for two states of each chunk. */
static size_t buffers(const struct lb_grid_split *split, int directions)
{
    return 2 * (size_t)directions * (size_t)split->groups * (size_t)split->chunks;
}

size_t lb_grid_exchange(const struct lb_grid_tile *tile, enum lb_grid_math math, bool backward,
                        int hidden, const struct lb_grid_split *split, int directions)
{
    size_t blocks = (size_t)lb_grid_blocks(tile, hidden), units = (size_t)tile->units;
    size_t columns = (size_t)tile->columns, deep = (size_t)lb_grid_deep(math);
    size_t packets = (blocks * units + deep - 1) / deep;
    if (backward)
        return buffers(split, directions) * blocks * blocks * units * columns *
               lb_grid_element_bytes(math);
    return LB_GRID_COPIES * buffers(split, directions) * packets * (columns / 8) * lanes *
           lane_bytes;
}

/* ---- Weights ----------------------------------------------------------------------------------
 *
 * A lane holds 16 bytes of a fragment: four registers of `each` values. Value e of register r of
 * lane 4 g + t, in k-step k, is row g + r % 2 * 8 and, after the permutation that gives lane t the
 * t-th 16 bytes of a packet, depth each (4 t + 2 k + r / 2) + e. Source: PTX ISA, "Matrix Fragments
 * for mma.m16n8k16" and "m16n8k8". */

/* Fragments are ordered by packet of depth, row tile, k-step. */
static struct lb_weight_layout forward_layout(const struct lb_grid_tile *tile,
                                              enum lb_grid_math math, int hidden)
{
    struct lb_weight_layout layout = lb_weight_layout_begin(hidden, hidden);
    int each = lb_grid_lane_units(math) / registers, deep = lb_grid_deep(math);
    layout.tf32 = math == LB_GRID_TF32;
    lb_weight_layout_add(&layout, each, 0, 0, 1);
    lb_weight_layout_add(&layout, 2, 1, 0, 0);              /* register % 2 */
    lb_weight_layout_add(&layout, 2, 0, 0, each);           /* register / 2 */
    lb_weight_layout_add(&layout, 4, 0, 0, 4 * each);       /* t */
    lb_weight_layout_add(&layout, 2, 2, 0, 0);              /* g % 2 */
    lb_weight_layout_add(&layout, 4, 0, 1, 0);              /* g / 2 */
    lb_weight_layout_add(&layout, k_steps, 0, 0, 2 * each); /* k */
    lb_weight_layout_add(&layout, tile->units / 4, 0, 4, 0);
    lb_weight_layout_add(&layout, tile->packets, 0, 0, tile->warps * deep);
    lb_weight_layout_add(&layout, tile->warps, 0, 0, deep);
    lb_weight_layout_add(&layout, lb_grid_blocks(tile, hidden), 0, tile->units, 0);
    return layout;
}

/* A digit of the backward depth, which is the gates of a block, ordered by unit. */
static void add_depth(struct lb_weight_layout *layout, int count, int step)
{
    lb_weight_layout_add(layout, count, step % 4, step / 4, 0);
}

/* Fragments are ordered by row tile, packet of depth, k-step. Rows g and g + 8 are units 2 g and
 * 2 g + 1, so that a lane's sums are of two neighbouring units. */
static struct lb_weight_layout backward_layout(const struct lb_grid_tile *tile,
                                               enum lb_grid_math math, int hidden)
{
    struct lb_weight_layout layout = lb_weight_layout_begin(hidden, hidden);
    int each = lb_grid_lane_units(math) / registers, deep = lb_grid_deep(math);
    int packets = 4 * tile->units / deep;
    layout.tf32 = math == LB_GRID_TF32;
    add_depth(&layout, each, 1);
    lb_weight_layout_add(&layout, 2, 0, 0, 1); /* register % 2 */
    add_depth(&layout, 2, each);               /* register / 2 */
    add_depth(&layout, 4, 4 * each);           /* t */
    lb_weight_layout_add(&layout, 8, 0, 0, 2); /* g */
    add_depth(&layout, k_steps, 2 * each);     /* k */
    add_depth(&layout, packets, deep);
    lb_weight_layout_add(&layout, lb_grid_fragments(tile) / (k_steps * packets), 0, 0,
                         16 * tile->warps);
    lb_weight_layout_add(&layout, tile->warps, 0, 0, 16);
    lb_weight_layout_add(&layout, lb_grid_blocks(tile, hidden), 0, tile->units, 0);
    return layout;
}

struct lb_weight_layout lb_grid_layout(const struct lb_grid_tile *tile, enum lb_grid_math math,
                                       bool backward, int hidden)
{
    return (backward ? backward_layout : forward_layout)(tile, math, hidden);
}
