/* What the forward and the backward cluster kernel share: tiles as types, which cells a thread has,
 * the loading of weights and operands, and the mbarriers on which a block waits for its peers.
 * cuda/README.md draws one step. */
#ifndef LB_CLUSTER_CUH
#define LB_CLUSTER_CUH

#include "cuda/fused/cluster/cluster.h"
#include "cuda/fused/common/recurrence.cuh"

namespace lb_cluster
{

using namespace lb_recurrence;

/* A struct lb_cluster_tile as a type. */
template <int blocks_, int warps_, int split_, int resident_, int columns_> struct tile {
    static constexpr int blocks = blocks_, warps = warps_, split = split_;
    static constexpr int resident = resident_, columns = columns_;
    static constexpr lb_cluster_tile figures = {blocks_, warps_, split_, resident_, columns_};
    static constexpr int threads = lanes * warps;
    static constexpr int own_units = 4 * warps;          /* per block */
    static constexpr int units = own_units * blocks;     /* per cluster: the largest H */
    static constexpr int fragments = units / 16;         /* per warp */
    static constexpr int spilled = fragments - resident; /* of these in shared memory */
    static constexpr bool spread = true; /* steps are faster where shared memory is read evenly */
    static constexpr int cells = columns / 8; /* per thread: one in each block of 8 columns */
    static_assert(warps % split == 0 && fragments % split == 0, "a depth is shared evenly");
    static_assert(blocks % 4 == 0, "each warp gets as many backward row tiles as the others");
    static_assert(resident <= fragments && columns % 8 == 0, "a fragment rests in one place");
};

/* ---- Cells of a thread ----------------------------------------------------------------------- */

/* Which cells a thread has: those of one unit, in one column of each block of 8 columns. Lane 4g +
 * t has unit g / 2 of its warp's four units, and column 2t + g % 2. */
struct cell_place {
    int lane, warp, rank;
    int unit;   /* H and beyond are padding */
    int column; /* 0 to 7 */
    int row;    /* batch row of the column in the first block of 8 */
    int direction;
};

#ifdef LB_PTX_SM90
template <class Tile, class Args> __device__ inline cell_place find_place(const Args &a)
{
    cell_place p;
    p.lane = threadIdx.x % lanes;
    p.warp = threadIdx.x / lanes;
    p.rank = lb_ptx::cluster_rank();
    p.unit = (p.rank * Tile::warps + p.warp) * 4 + p.lane / 8;
    p.column = p.lane % 4 * 2 + p.lane / 4 % 2;
    p.row = blockIdx.x / Tile::blocks * a.rows + p.column;
    p.direction = blockIdx.y;
    return p;
}
#endif

/* Returns how many of the cluster's columns are batch rows. Blocks send nothing of the other
 * columns. */
template <class Args> __device__ inline int live_columns(const Args &a, const cell_place &p)
{
    return min(a.rows, a.batch - (p.row - p.column));
}

/* The batch row of one of a thread's cells. */
struct cell_row {
    int row, length; /* length 0: the cell is padding, and nothing is loaded or stored */
};

template <class Args>
__device__ inline cell_row find_row(const Args &a, const cell_place &p, int block_of_8)
{
    cell_row r = {p.row + 8 * block_of_8, 0};
    if (p.column + 8 * block_of_8 < live_columns(a, p) && p.unit < a.hidden)
        r.length = length_of(a, r.row);
    return r;
}

__device__ inline int time_of(const cell_row &r, const cell_place &p, int step)
{
    return lb_recurrence::time_of(r.length, p.direction, step);
}

/* Returns the index in [T, B, D, H] of what a row reads at step `step`. gridDim.y is the number of
 * directions; with a.directions, which is equal, the tile with 28 resident fragments spills on
 * sm_100. */
template <class Args>
__device__ inline size_t sequence_index(const Args &a, const cell_place &p, const cell_row &r,
                                        int step)
{
    size_t row_of_all = static_cast<size_t>(time_of(r, p, step)) * a.batch + r.row;
    return (row_of_all * gridDim.y + p.direction) * a.hidden + p.unit;
}

/* Returns the index of an element in [D, B, H]. */
template <class Args>
__device__ inline size_t state_index(const Args &a, const cell_place &p, int row)
{
    return lb_recurrence::state_index(a, p.direction, row, p.unit);
}

/* ---- Operands -------------------------------------------------------------------------------- */

/* A slice is the operand for a depth of 16 and one block of 8 columns: 256 bytes in the order [4
 * lanes t, 8 columns, 4 of the depth]. Lane 4 g + t reads the 8 bytes of column g. Shared memory
 * serves half a warp at a time; if columns were not exchanged, lanes t = 0 and t = 2 would use the
 * same banks. */
constexpr int slice_bytes = 256;

/* Returns the offset in bytes of a column's data for lanes t. Columns 2 n and 2 n + 1 stay
 * neighbours. */
__device__ inline int place_in_slice(int t, int column)
{
    return t * 64 + (column ^ (t & 2) * 2) * 8;
}

/* Reads this lane's part of a slice, or takes zeros without `reads`. */
__device__ inline void load_operand(uint32_t (&b)[2], const unsigned char *slice, int lane,
                                    bool reads)
{
    uint2 v = make_uint2(0, 0);
    if (reads)
        v = *reinterpret_cast<const uint2 *>(slice + place_in_slice(lane % 4, lane / 4));
    b[0] = v.x, b[1] = v.y;
}

/* sum = the warp's row tiles times an operand of `slices` slices. Without `reads` this lane takes
 * zeros for its column. Fragments are ordered by slice, then by row tile. Several independent sums,
 * the chains, hide the latency of the tensor cores. */
template <class T, int slices, int rows, int cells, class Weights>
__device__ inline void multiply_slices(float (&sum)[rows][cells][4], const Weights &weights,
                                       const unsigned char *operand, int lane, bool reads)
{
    constexpr int chains = rows * cells >= 4 ? 1 : 4 / (rows * cells);
    float part[chains][rows][cells][4] = {};
#pragma unroll
    for (int k = 0; k < slices; k++) {
        uint32_t b[cells][2];
        for (int i = 0; i < cells; i++)
            load_operand(b[i], operand + (k * cells + i) * slice_bytes, lane, reads);
        for (int m = 0; m < rows; m++) {
            uint32_t w[4];
            weights.get(k * rows + m, w);
            for (int i = 0; LB_FUSED_PRODUCT && i < cells; i++)
                lb_ptx::mma<T>(part[k % chains][m][i], w, b[i]);
        }
    }
    for (int m = 0; m < rows; m++)
        for (int i = 0; i < cells; i++)
            for (int e = 0; e < 4; e++) {
                sum[m][i][e] = part[0][m][i][e];
                for (int c = 1; c < chains; c++)
                    sum[m][i][e] += part[c][m][i][e];
            }
}

/* ---- Cluster --------------------------------------------------------------------------------- */

#ifdef LB_PTX_SM90

/* Two buffers, used in turn, each with an mbarrier that counts the bytes of one state. State s,
 * counted from 1, is in buffer s % 2 and completes phase (s - 1) / 2 of that buffer's mbarrier. */
struct arrivals {
    uint64_t *full; /* [2] */
    unsigned bytes; /* of one state, from all blocks of the cluster */

    /* One thread initialises the mbarriers and sets the bytes that they await in states 1 and 2. */
    __device__ inline void open(int last_state) const
    {
        for (int slot = 0; slot < 2; slot++)
            lb_ptx::mbarrier_init(full + slot, 1);
        lb_ptx::fence_mbarrier_init();
        for (int state = 1; state <= 2 && state <= last_state; state++)
            lb_ptx::mbarrier_arrive_expect_bytes(full + state % 2, bytes);
    }

    /* All threads wait until the state has arrived. One thread then sets the bytes of state + 2 on
     * the same mbarrier. That is in time: a peer sends state + 2 only after every warp of this
     * block has sent state + 1, and the phase cannot complete before this thread arrives. */
    __device__ inline void wait(int state, int last_state) const
    {
        lb_ptx::mbarrier_wait<lb_ptx::scope::cluster>(full + state % 2, (state - 1) / 2 % 2);
        if (threadIdx.x == 0 && state + 2 <= last_state)
            lb_ptx::mbarrier_arrive_expect_bytes(full + state % 2, bytes);
    }
};

#endif

} // namespace lb_cluster

#endif
