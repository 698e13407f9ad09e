/* Packs recurrent weights in the order in which the lanes of the grid kernels hold them, and
 * computes the sizes of the memory that the kernels use. */
#include "cuda/fused/grid/tile.h"

#include <string.h>

enum { lanes = 32, lane_bytes = 16, registers = 4, k_steps = 2, sum_bytes = 4 };

static size_t spilled_bytes(const struct lb_grid_tile *tile)
{
    return (size_t)tile->warps * (size_t)(lb_grid_fragments(tile) - tile->resident) * lanes *
           lane_bytes;
}

size_t lb_grid_weight_bytes(const struct lb_grid_tile *tile, int hidden)
{
    return (size_t)lb_grid_blocks(tile, hidden) * (size_t)tile->warps *
           (size_t)lb_grid_fragments(tile) * lanes * lane_bytes;
}

struct lb_grid_split lb_grid_split_of(const struct lb_grid_tile *tile, int batch, int room)
{
    int eights = (batch + 7) / 8, groups = room < eights ? room : eights;
    int rows = (eights + groups - 1) / groups * 8;
    struct lb_grid_split split = {.rows = rows < batch ? rows : batch};
    split.groups = (batch + split.rows - 1) / split.rows;
    split.chunks = (split.rows + tile->columns - 1) / tile->columns;
    return split;
}

/* ---- Sizes ------------------------------------------------------------------------------------
 */

/* Returns the number of buffers: for two states of each chunk. */
static size_t buffers(const struct lb_grid_split *split, int directions)
{
    return 2 * (size_t)directions * (size_t)split->groups * (size_t)split->chunks;
}

size_t lb_grid_forward_exchange(const struct lb_grid_tile *tile, enum lb_grid_math math, int hidden,
                                const struct lb_grid_split *split, int directions)
{
    int deep = lb_grid_deep(math), units = lb_grid_blocks(tile, hidden) * tile->units;
    size_t packets = (size_t)((units + deep - 1) / deep);
    return LB_GRID_COPIES * buffers(split, directions) * packets * (size_t)(tile->columns / 8) *
           lanes * lane_bytes;
}

size_t lb_grid_backward_exchange(const struct lb_grid_tile *tile, int hidden,
                                 const struct lb_grid_split *split, int directions)
{
    size_t blocks = (size_t)lb_grid_blocks(tile, hidden);
    return buffers(split, directions) * blocks * blocks * (size_t)tile->units *
           (size_t)tile->columns * sum_bytes;
}

static size_t cells(const struct lb_grid_tile *tile)
{
    return (size_t)tile->units * (size_t)tile->columns;
}

size_t lb_grid_forward_shared(const struct lb_grid_tile *tile, enum lb_grid_math math, int chunks)
{
    int window = 8 / (tile->columns / 8);
    size_t loads = (size_t)(window < tile->packets ? window : tile->packets);
    size_t sums = 2 * (size_t)tile->warps * cells(tile) * 4 * sum_bytes;
    size_t stage = (size_t)tile->warps * loads * (size_t)(tile->columns / 8) * lanes * lane_bytes;
    size_t state = (size_t)chunks * cells(tile) * 2 * sum_bytes;
    return spilled_bytes(tile) + sums + (math == LB_GRID_F32 ? stage : 0) + 2 * sizeof(uint32_t) +
           state;
}

size_t lb_grid_backward_shared(const struct lb_grid_tile *tile, enum lb_grid_math math, int chunks)
{
    size_t element = (size_t)(lane_bytes / lb_grid_lane_units(math));
    size_t parts = (size_t)tile->warps * lanes * lane_bytes;
    size_t operand = 4 * cells(tile) * element;
    size_t state = (size_t)chunks * cells(tile) * 2 * sum_bytes;
    return spilled_bytes(tile) + parts + operand + 2 * sizeof(uint32_t) + state;
}

/* ---- Weights ----------------------------------------------------------------------------------
 */

/* The element of a fragment that a lane holds: its row 0 to 15, and its depth inside a packet after
 * the permutation that gives lane t of four the t-th 16 bytes. Source: PTX ISA, "Matrix Fragments
 * for mma.m16n8k16" and "m16n8k8". */
struct element_index {
    int row, depth;
};

static struct element_index index_of(enum lb_grid_math math, int k_step, int lane, int element)
{
    int each = lb_grid_lane_units(math) / registers; /* values per register */
    int r = element / each;
    struct element_index p = {lane / 4 + r % 2 * 8, registers * each * (lane % 4) +
                                                        2 * each * k_step + each * (r / 2) +
                                                        element % each};
    return p;
}

struct matrix {
    const unsigned char *w_hh;
    enum lb_grid_math math;
    int hidden;
};

/* Writes one element of w_hh, or zero outside the matrix, to element [lane_bytes / lane_units]
 * bytes. */
static void put(const struct matrix *m, int gate, int unit, int from, unsigned char *element)
{
    size_t bytes = (size_t)(lane_bytes / lb_grid_lane_units(m->math));
    size_t hidden = (size_t)m->hidden;
    memset(element, 0, bytes);
    if (unit >= m->hidden || from >= m->hidden)
        return;
    memcpy(element,
           m->w_hh + (((size_t)gate * hidden + (size_t)unit) * hidden + (size_t)from) * bytes,
           bytes);
    if (m->math != LB_GRID_TF32)
        return;
    uint32_t
        bits; /* rounds to nearest, ties away from zero, as cvt.rna does; infinities and NaN stay */
    memcpy(&bits, element, sizeof(bits));
    bits = (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
    memcpy(element, &bits, sizeof(bits));
}

/* Fragments are ordered by packet of depth, row tile, k-step. */
void lb_grid_pack_forward(const struct lb_grid_tile *tile, enum lb_grid_math math, int hidden,
                          const void *w_hh, void *packed)
{
    const struct matrix m = {w_hh, math, hidden};
    int rows = tile->units / 4, values = lb_grid_lane_units(math);
    unsigned char *to = packed;
    for (int warp = 0; warp < lb_grid_blocks(tile, hidden) * tile->warps; warp++) {
        for (int f = 0; f < lb_grid_fragments(tile); f++) {
            int packet = f / (k_steps * rows) * tile->warps + warp % tile->warps;
            int first = warp / tile->warps * tile->units + f / k_steps % rows * 4;
            for (int i = 0; i < lanes * values; i++, to += lane_bytes / values) {
                struct element_index p = index_of(math, f % k_steps, i / values, i % values);
                put(&m, p.row % 2 * 2 + p.row / 8, first + p.row % 8 / 2,
                    packet * lb_grid_deep(math) + p.depth, to);
            }
        }
    }
}

/* Fragments are ordered by row tile, packet of depth, k-step. */
void lb_grid_pack_backward(const struct lb_grid_tile *tile, enum lb_grid_math math, int hidden,
                           const void *w_hh, void *packed)
{
    const struct matrix m = {w_hh, math, hidden};
    int deep = lb_grid_deep(math), packets = 4 * tile->units / deep;
    int values = lb_grid_lane_units(math);
    unsigned char *to = packed;
    for (int warp = 0; warp < lb_grid_blocks(tile, hidden) * tile->warps; warp++) {
        for (int f = 0; f < lb_grid_fragments(tile); f++) {
            int row = (f / (k_steps * packets) * tile->warps + warp % tile->warps) * 16;
            int first = f / k_steps % packets * deep; /* of the block's gates, ordered by unit */
            for (int i = 0; i < lanes * values; i++, to += lane_bytes / values) {
                struct element_index p = index_of(math, f % k_steps, i / values, i % values);
                int own = (first + p.depth) / 4;
                put(&m, (first + p.depth) % 4, warp / tile->warps * tile->units + own, row + p.row,
                    to);
            }
        }
    }
}
