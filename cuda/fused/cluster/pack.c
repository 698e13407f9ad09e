/* Packs recurrent weights in the order in which the lanes of the cluster kernels hold them. */
#include "cuda/fused/cluster/tile.h"

enum { lanes = 32, depth = 16, pair = 2 };

/* Shared memory has the weights that do not stay in registers, then the buffers of a step, then two
 * mbarriers. */
static size_t spilled_bytes(const struct lb_cluster_tile *tile)
{
    return (size_t)tile->warps * (size_t)(lb_cluster_fragments(tile) - tile->resident) * lanes * 16;
}

size_t lb_cluster_forward_shared(const struct lb_cluster_tile *tile)
{
    size_t h = (size_t)lb_cluster_units(tile) * (size_t)tile->columns * 2;
    size_t sums = (size_t)tile->warps * (size_t)(tile->split - 1) * 16 * (size_t)tile->columns * 4;
    return spilled_bytes(tile) + 2 * h + sums + 2 * sizeof(uint64_t);
}

size_t lb_cluster_backward_shared(const struct lb_cluster_tile *tile)
{
    size_t units = 4 * (size_t)tile->warps, columns = (size_t)tile->columns;
    size_t sums = (size_t)tile->blocks * units * columns * 4; /* from all blocks, for own units */
    size_t gradients = 4 * units * columns * 2;
    return spilled_bytes(tile) + 2 * sums + 2 * gradients + 2 * sizeof(uint64_t);
}

/* The element of a fragment that a 16-bit half of a register holds: its row 0 to 15, and its column
 * 0 to 15 after the permutation that gives lane t of four the columns 4t to 4t + 3. Source: PTX
 * ISA, "Matrix Fragments for mma.m16n8k16". */
struct element_index {
    int row, column;
};

static struct element_index index_in_fragment(int lane, int half)
{
    int reg = half / pair;
    struct element_index p = {lane / 4 + reg % 2 * 8, 4 * (lane % 4) + reg / 2 * 2 + half % pair};
    return p;
}

/* Returns an element of w_hh, or zero outside the matrix. */
static uint16_t element(const uint16_t *w_hh, int hidden, int gate, int unit, int from)
{
    if (unit >= hidden || from >= hidden)
        return 0;
    return w_hh[((size_t)gate * (size_t)hidden + (size_t)unit) * (size_t)hidden + (size_t)from];
}

void lb_cluster_pack_forward(const struct lb_cluster_tile *tile, int hidden, const uint16_t *w_hh,
                             uint16_t *packed)
{
    int fragments = lb_cluster_fragments(tile), slices = fragments / tile->split;
    for (int warp = 0; warp < tile->blocks * tile->warps; warp++) {
        int member = warp % tile->split;
        for (int f = 0; f < fragments; f++) {
            int tile_of = warp - member + f % tile->split;
            int first = (member * slices + f / tile->split) * depth;
            for (int i = 0; i < lanes * 8; i++) {
                struct element_index p = index_in_fragment(i / 8, i % 8);
                int gate = p.row % 2 * 2 + p.row / 8, unit = 4 * tile_of + p.row % 8 / 2;
                *packed++ = element(w_hh, hidden, gate, unit, first + p.column);
            }
        }
    }
}

void lb_cluster_pack_backward(const struct lb_cluster_tile *tile, int hidden, const uint16_t *w_hh,
                              uint16_t *packed)
{
    int own = 4 * tile->warps, rows = tile->blocks / 4; /* row tiles of a warp */
    for (int warp = 0; warp < tile->blocks * tile->warps; warp++) {
        for (int f = 0; f < lb_cluster_fragments(tile); f++) {
            int first = warp / tile->warps * own + f / rows * (depth / 4);
            int to = (warp % tile->warps * rows + f % rows) * 16;
            for (int i = 0; i < lanes * 8; i++) {
                struct element_index p = index_in_fragment(i / 8, i % 8);
                int gate = p.column % 4, unit = first + p.column / 4;
                *packed++ = element(w_hh, hidden, gate, unit, to + p.row);
            }
        }
    }
}
