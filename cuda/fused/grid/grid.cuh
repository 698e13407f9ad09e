/* What the forward and the backward grid kernel share: tiles and number formats as types, which
 * cells a thread has, and waiting for packets, each word of which says to which state it belongs.
 * cuda/README.md draws one step. */
#ifndef LB_GRID_CUH
#define LB_GRID_CUH

#include "cuda/fused/common/recurrence.cuh"
#include "cuda/fused/grid/grid.h"

namespace lb_grid
{

using namespace lb_recurrence;
using lb_ptx::scope;

constexpr int slice_bytes = 512; /* a packet for 8 columns: 16 bytes per lane */

/* A struct lb_grid_tile as a type. */
template <int units_, int warps_, int packets_, int resident_, int columns_> struct tile {
    static constexpr int units = units_, warps = warps_, packets = packets_;
    static constexpr int resident = resident_, columns = columns_;
    static constexpr lb_grid_tile figures = {units_, warps_, packets_, resident_, columns_};
    static constexpr int threads = lanes * warps;
    static constexpr int rows = units / 4;     /* forward: row tiles per block */
    static constexpr int eights = columns / 8; /* blocks of 8 columns per chunk */
    static constexpr int fragments = 2 * packets * rows;
    static constexpr int spilled = fragments - resident; /* in shared memory */
    static constexpr bool spread = false;         /* no register is left to read ahead into */
    static constexpr bool roomy = spilled == 0;   /* there are registers left beside the weights */
    static constexpr int cells = units * columns; /* per block and chunk */
    static constexpr int cells_thread = (cells + threads - 1) / threads;
    static constexpr int window = lb_grid_window(&figures); /* packets read at once */
    static_assert(units == 8 || units % 16 == 0, "whole packets and row tiles");
    static_assert(columns == 8 || columns == 16, "a window holds 8 packets of 8 columns");
    static_assert(resident <= fragments && packets % window == 0, "windows are whole");
    static_assert(window > 1 || packets == 1, "staging a packet again takes another in between");
};

/* ---- Number formats -------------------------------------------------------------------------- */

/* A format ("Math") defines the types of a lane's part in multiplying 16 rows by one packet, which
 * is 2 k-steps deep and 8 columns wide: sums: the lane's sums; finish(d) returns the four that mma
 * leaves in lane 4 g + t: (g, 2t) (g, 2t+1) (g+8, 2t) (g+8, 2t+1). operand: what the lane needs of
 * a packet. The format of f32 without tensor cores is in ffma.cuh. */
struct tensor_operand {
    uint32_t x[4];
};

struct tensor_sums {
    float v[4];
    __device__ inline void finish(float (&d)[4], int) const
    {
        for (int e = 0; e < 4; e++)
            d[e] = v[e];
    }
};

/* Returns where lane 4 g + t finds its 16 bytes (column g, quarter t of the depth), in units of 16
 * bytes. Three kinds of access determine the order. Memory serves a quarter of a warp at a time,
 * which loads the 128 bytes of two columns: they are in one line, and no two lanes use the same
 * banks. The cells of a warp store 8 columns of one t: two columns share a sector of 32 bytes, and
 * t ^ column / 2 puts the sectors in different banks. The f32 product loads one column at all t,
 * also from different banks. */
__device__ inline int chunk_in_slice(int column, int t)
{
    return column / 2 * 8 + (t ^ column / 2) * 2 + column % 2;
}

/* The same for a lane, in bytes. */
__device__ inline int place_in_slice(int lane)
{
    return chunk_in_slice(lane / 4, lane % 4) * 16;
}

/* What the formats of the tensor cores share; T is the type that mma takes. A lane multiplies the
 * words that it has received. */
template <class T> struct tensor_format {
    using sums = tensor_sums;
    using operand = tensor_operand;
    static constexpr bool staged = false;

    static __device__ inline operand take(const unsigned char *slice, int lane)
    {
        uint4 v = *reinterpret_cast<const uint4 *>(slice + place_in_slice(lane));
        return {{v.x, v.y, v.z, v.w}};
    }

    /* Makes the operands of a packet, of which this lane has received word(slice, 0 to 3). */
    template <int slices, class Word>
    static __device__ inline void receive(const Word &word, unsigned char *, int,
                                          operand (&b)[slices])
    {
        for (int i = 0; i < slices; i++)
            for (int w = 0; w < 4; w++)
                b[i].x[w] = word(i, w);
    }

    static __device__ inline void multiply(sums &s, const uint32_t (&a)[2][4], const operand &b)
    {
        lb_ptx::mma<T>(s.v, a[0], {b.x[0], b.x[1]});
        lb_ptx::mma<T>(s.v, a[1], {b.x[2], b.x[3]});
    }
};

template <class T, uint32_t above> struct half_math : fast_functions, tensor_format<T> {
    using stored = T;
    static constexpr int lane_units = 8;       /* units of a column in 16 bytes */
    static constexpr int word_units = 2;       /* units in 32 bits */
    static constexpr uint32_t spare = 0x4000u; /* the bit that is 0 in all of [-1, 1] */
    /* Added to a value above 1, carries into that bit. */
    static constexpr uint32_t above_one = above;

    static __device__ inline uint32_t bits(float v)
    {
        return bits_of_pair<T>(v, 0);
    }
};

struct f16_math : half_math<__half, 0x03ff> {
    static constexpr lb_grid_math figure = LB_GRID_F16;
};

struct bf16_math : half_math<__nv_bfloat16, 0x007f> {
    static constexpr lb_grid_math figure = LB_GRID_BF16;
};

struct float_math : exact_functions {
    using stored = float;
    static constexpr int lane_units = 4;
    static constexpr int word_units = 1;
    static constexpr uint32_t spare = 0x40000000u;
    static constexpr uint32_t above_one = 0x007fffffu;
};

struct tf32_math : float_math, tensor_format<float> {
    static constexpr lb_grid_math figure = LB_GRID_TF32;

    static __device__ inline uint32_t bits(float v)
    {
        return lb_ptx::to_tf32(v);
    }
};

template <class Math> constexpr int deep = 4 * Math::lane_units; /* units per packet */

__device__ inline void add(float4 &to, const float4 &v)
{
    to.x += v.x, to.y += v.y, to.z += v.z, to.w += v.w;
}

/* Copies fragments 2 f and 2 f + 1, the two k-steps of a packet, to a. */
template <class Tile>
__device__ inline void get_pair(const stationary<Tile> &weights, int f, uint32_t (&a)[2][4])
{
    weights.get(2 * f, a[0]);
    weights.get(2 * f + 1, a[1]);
}

/* ---- Cells of a thread ----------------------------------------------------------------------- */

/* What this thread's block computes. */
struct block_place {
    int lane, warp;
    int rank, blocks; /* the block's number in its group, and the group's number of blocks */
    int direction;
    int first_row, rows; /* batch rows of the group */
    int chunks;          /* chunks of the largest group */
    int group;           /* number of the group, counted over all directions */
    int first_block;     /* the group's first block in the launch */
};

template <class Tile, class Args> __device__ inline block_place find_place(const Args &a)
{
    block_place p;
    p.lane = threadIdx.x % lanes;
    p.warp = threadIdx.x / lanes;
    p.rank = blockIdx.x;
    p.blocks = gridDim.x;
    p.direction = a.direction + blockIdx.z;
    p.first_row = blockIdx.y * a.rows;
    p.rows = min(a.rows, a.batch - p.first_row);
    p.chunks = (a.rows + Tile::columns - 1) / Tile::columns;
    p.group = p.direction * gridDim.y + blockIdx.y;
    p.first_block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x;
    return p;
}

/* Returns how many columns of a chunk are batch rows; 0 or less means none. */
template <class Tile> __device__ inline int live_columns(const block_place &p, int chunk)
{
    return min(Tile::columns, p.rows - chunk * Tile::columns);
}

/* A cell of a chunk. 32 neighbouring cells are the 4 units x 8 columns of a row tile, in the order
 * in which lanes hold them after gather_gates. */
struct cell_place {
    int at;          /* 0 to Tile::cells - 1 */
    int own, unit;   /* in the block; in the layer, where H and beyond are padding */
    int column, row; /* in the chunk; in the batch */
    bool exists;
};

template <class Tile>
__device__ inline cell_place find_cell(const block_place &p, int hidden, int chunk, int at)
{
    cell_place c;
    c.at = at;
    c.own = at / lanes / Tile::eights * 4 + p.lane / 8;
    c.unit = p.rank * Tile::units + c.own;
    c.column = at / lanes % Tile::eights * 8 + p.lane % 4 * 2 + p.lane / 4 % 2;
    c.row = p.first_row + chunk * Tile::columns + c.column;
    c.exists = c.column < live_columns<Tile>(p, chunk) && c.unit < hidden;
    return c;
}

template <class Args> __device__ inline int length_of(const Args &a, const cell_place &c)
{
    return c.exists ? lb_recurrence::length_of(a, c.row) : 0;
}

/* ---- Exchange -------------------------------------------------------------------------------- */

/* The states 1, 2, ... of a sequence use two buffers in turn. One bit of every word, the epoch,
 * tells a state from the state two steps before, which was in the same buffer, and from the zeros
 * before the first launch. States are counted from the first step of the sequence, not of the
 * launch, and a launch sends its last state too, which only the next launch's states follow: that
 * is why a launch finds in each buffer the state before the one that it waits for. */
__device__ inline uint32_t epoch_of(int state)
{
    return ((state - 1) / 2 + 1) & 1;
}

/* A wait that takes too long gives up and is written to the fault record. Once there is a record,
 * all other waits give up too. */
struct waiting {
    lb_fused_fault *fault;
    uint32_t spin_limit;

    /* Whether a wait for the block `awaited` goes on after `round` rounds. */
    __device__ inline bool goes_on(uint32_t round, int awaited, int step) const
    {
        if (round < spin_limit && (round % 256 != 255 || !others_gave_up()))
            return true;
        give_up(awaited, step);
        return false;
    }

    __device__ inline bool others_gave_up() const
    {
        return lb_ptx::load_relaxed<scope::gpu>(&fault->raised) != 0;
    }

    /* Only the first wait that gives up writes the record. */
    __device__ inline void give_up(int awaited, int step) const
    {
        if (atomicExch(&fault->raised, 1u) != 0)
            return;
        fault->block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        fault->awaited = awaited;
        fault->step = step;
    }
};

/* Packets that a lane reads, 4 * size bytes of each: no other flag than the epoch says that data
 * have arrived. 16 bytes are four accesses, and each word has the epoch; 8 bytes are one access,
 * and the first word has it. All are requested at once, and each can be used as soon as it has
 * arrived, while those behind it are on their way. address(n) is where packet n is. A word has
 * arrived when its bits under `mask` equal those of `epoch`. */
template <int count, uint32_t mask, int size = 4> struct requests {
    static constexpr int marked = size == 4 ? 4 : 1; /* words that have the epoch */
    uint32_t words[count][size];
    uint32_t wanted; /* bit n: packet n is read; the others count as zeros that have arrived */
    uint32_t epoch;

    requests() = default;
    __device__ inline explicit requests(uint32_t expected) : wanted(0), epoch(expected)
    {
        for (int n = 0; n < count; n++)
            for (int w = 0; w < size; w++)
                words[n][w] = w < marked ? epoch : 0;
    }

    /* Requests packet `first` and all behind it. */
    template <class Address> __device__ inline void load(int first, const Address &address)
    {
#pragma unroll
        for (int n = first; n < count; n++)
            if (wanted >> n & 1)
                load_words(words[n], address(n));
    }

    static __device__ inline void load_words(uint32_t (&to)[4], const void *from)
    {
        lb_ptx::load_relaxed4<scope::gpu>(to, from);
    }
    static __device__ inline void load_words(uint32_t (&to)[2], const void *from)
    {
        uint64_t both = lb_ptx::load_relaxed<scope::gpu>(static_cast<const uint64_t *>(from));
        to[0] = static_cast<uint32_t>(both), to[1] = static_cast<uint32_t>(both >> 32);
    }

    __device__ inline bool late(int n) const
    {
        uint32_t differs = 0;
        for (int w = 0; w < marked; w++)
            differs |= words[n][w] ^ epoch;
        return wanted >> n & 1 && differs & mask;
    }

    /* Waits for packet n, which the block `awaited` writes before `step`. Whenever it is late,
     * those behind it are requested again too. False when the wait gave up. */
    template <class Address>
    __device__ inline bool await(int n, const waiting &wait, int awaited, int step,
                                 const Address &address)
    {
        for (uint32_t round = 0; late(n); round++) {
            if (!wait.goes_on(round, awaited, step))
                return false;
            load(n, address);
        }
        return true;
    }
};

} // namespace lb_grid

#endif
