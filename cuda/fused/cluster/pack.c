/* The order in which the lanes of the cluster kernels hold recurrent weights. */
#include "cuda/fused/cluster/cluster.h"

enum { depth = 16 };

/* A fragment holds 16 rows and 16 columns of operand A in 32 lanes of four registers of two halves,
 * after the permutation that gives lane t of four the columns 4t to 4t + 3. Half h of register r of
 * lane 4 g + t is row g + r % 2 * 8, column 4 t + r / 2 * 2 + h. Source: PTX ISA, "Matrix Fragments
 * for mma.m16n8k16". */

static struct lb_weight_layout forward_layout(const struct lb_cluster_tile *tile, int hidden)
{
    struct lb_weight_layout layout = lb_weight_layout_begin(hidden, hidden);
    int slices = lb_cluster_fragments(tile) / tile->split;
    lb_weight_layout_add(&layout, 2, 0, 0, 1); /* half */
    lb_weight_layout_add(&layout, 2, 1, 0, 0); /* register % 2 */
    lb_weight_layout_add(&layout, 2, 0, 0, 2); /* register / 2 */
    lb_weight_layout_add(&layout, 4, 0, 0, 4); /* t */
    lb_weight_layout_add(&layout, 2, 2, 0, 0); /* g % 2 */
    lb_weight_layout_add(&layout, 4, 0, 1, 0); /* g / 2 */
    lb_weight_layout_add(&layout, tile->split, 0, 4, 0);
    lb_weight_layout_add(&layout, slices, 0, 0, depth);
    lb_weight_layout_add(&layout, tile->split, 0, 0, slices * depth); /* warp % split */
    lb_weight_layout_add(&layout, tile->blocks * tile->warps / tile->split, 0, 4 * tile->split, 0);
    return layout;
}

static struct lb_weight_layout backward_layout(const struct lb_cluster_tile *tile, int hidden)
{
    struct lb_weight_layout layout = lb_weight_layout_begin(hidden, hidden);
    int rows = tile->blocks / 4;               /* row tiles of a warp */
    lb_weight_layout_add(&layout, 2, 1, 0, 0); /* half */
    lb_weight_layout_add(&layout, 2, 0, 0, 8); /* register % 2 */
    lb_weight_layout_add(&layout, 2, 2, 0, 0); /* register / 2 */
    lb_weight_layout_add(&layout, 4, 0, 1, 0); /* t */
    lb_weight_layout_add(&layout, 8, 0, 0, 1); /* g */
    lb_weight_layout_add(&layout, rows, 0, 0, 16);
    lb_weight_layout_add(&layout, lb_cluster_fragments(tile) / rows, 0, depth / 4, 0);
    lb_weight_layout_add(&layout, tile->warps, 0, 0, 16 * rows);
    lb_weight_layout_add(&layout, tile->blocks, 0, 4 * tile->warps, 0);
    return layout;
}

struct lb_weight_layout lb_cluster_layout(const struct lb_cluster_tile *tile, bool backward,
                                          int hidden)
{
    return backward ? backward_layout(tile, hidden) : forward_layout(tile, hidden);
}
