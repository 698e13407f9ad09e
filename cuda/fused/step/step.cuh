/* The matrix product of one step, which the forward and the backward step kernel share. A block
 * multiplies some rows of weights by some batch rows, of any type and size; the depth passes
 * through shared memory in slices. cuda/README.md draws it. */
#ifndef LB_STEP_CUH
#define LB_STEP_CUH

#include <type_traits>

#include "cuda/fused/common/recurrence.cuh"
#include "cuda/fused/step/step.h"

namespace lb_step
{

using lb_cell::convert_to_real;
using lb_cell::convert_to_storage;
using lb_cell::inside_t;
using lb_cell::squash_slope;
using lb_recurrence::functions_of;
using lb_recurrence::lanes;
using lb_recurrence::row_in_sequence;
using lb_recurrence::row_in_state;
using lb_recurrence::squash;

constexpr int chunk = 16;   /* bytes that one instruction copies to shared memory */
constexpr int k_bytes = 32; /* depth of one multiplication in bytes: two chunks */

/* A struct lb_step_tile as a type. */
template <int row_tiles_, int columns_, int split_, int blocks_> struct tile {
    static constexpr int row_tiles = row_tiles_, columns = columns_, split = split_;
    static constexpr int blocks = blocks_;
    static constexpr lb_step_tile figures = {row_tiles_, columns_, split_, blocks_};
    static constexpr int threads = lanes * row_tiles * split;
    static constexpr int rows = 16 * row_tiles;
    static constexpr int cells = columns / 8;         /* blocks of 8 columns */
    static constexpr int slice = 2 * k_bytes * split; /* bytes of a row's depth at a time */
    static constexpr int pitch = slice + chunk; /* from one row to the next in shared memory */
    static constexpr int stage = (rows + columns) * pitch;
    static constexpr int row_chunks = slice / chunk; /* neighbouring threads that fetch one row */
    static constexpr int fetched = threads / row_chunks; /* rows at a time: half of `rows` */
    static_assert(columns % 16 == 0, "columns are multiplied in blocks of 8, loaded in pairs");
    static_assert(columns % fetched == 0, "each thread fetches as many rows as the others");
    static_assert(columns % blocks == 0, "each block computes as many cells as the others");
};

/* Four neighbouring values, such as the gates of a cell: one access, or two in f64. */
template <class V> struct alignas(sizeof(V) == 8 ? 16 : 4 * sizeof(V)) four {
    V of[4];
};

/* ---- Matrix products ------------------------------------------------------------------------
 * A "Product" defines how a warp multiplies 16 rows by `cells` blocks of 8 columns in one type. A
 * lane holds 4 sums of each 16 x 8, at (row_of(lane, e), column_of(lane, e)). step() adds the
 * products of k_bytes of depth: weights and state point to the first row at that depth, and rows
 * are `pitch` bytes apart. */

/* f32 and f64 in full precision, without tensor cores: a lane computes 4 rows of one column. */
template <class T> struct plain_product {
    using storage = T;
    using real = T;
    static constexpr int paired_row_tiles = sizeof(T) == 8 ? 0 : 2;
    static constexpr int depth = chunk / sizeof(T); /* of a chunk */
    struct alignas(chunk) values {
        T of[depth];
    };

    static __device__ inline values load(const unsigned char *from)
    {
        return *reinterpret_cast<const values *>(from);
    }

    template <int cells>
    static __device__ inline void step(T (&sum)[cells][4], const unsigned char *weights,
                                       const unsigned char *state, int pitch, int lane)
    {
        for (int half = 0; half < k_bytes; half += chunk) {
            values w[4], h;
            for (int e = 0; e < 4; e++)
                w[e] = load(weights + row_of(lane, e) * pitch + half);
            for (int i = 0; i < cells; i++) {
                h = load(state + (8 * i + lane % 8) * pitch + half);
                for (int k = 0; k < depth; k++)
                    for (int e = 0; e < 4; e++)
                        sum[i][e] += w[e].of[k] * h.of[k];
            }
        }
    }

    static __device__ inline int row_of(int lane, int e)
    {
        return lane / 8 * 4 + e;
    }

    static __device__ inline int column_of(int lane, int)
    {
        return lane % 8;
    }
};

/* Tensor cores: Format is __half, __nv_bfloat16, or float for TF32. A row that is 8 elements of 16
 * bits deep and one that is 4 elements of 32 bits deep both have 16 bytes, so that ldmatrix loads
 * both. */
template <class Format> struct tensor_product {
    using storage = Format;
    using real = float;
    static constexpr int paired_row_tiles = 4;

    /* f32 bits of the state are rounded to TF32; weights were rounded when they were packed. */
    static __device__ inline void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
                                           uint32_t b1)
    {
        if (std::is_same<Format, float>::value) {
            b0 = lb_ptx::to_tf32(__uint_as_float(b0));
            b1 = lb_ptx::to_tf32(__uint_as_float(b1));
        }
        lb_ptx::mma<Format>(sum, a, {b0, b1});
    }

    template <int cells>
    static __device__ inline void step(float (&sum)[cells][4], const unsigned char *weights,
                                       const unsigned char *state, int pitch, int lane)
    {
        uint32_t a[4], b[4];
        lb_ptx::ldmatrix(a, weights + lane % 16 * pitch + lane / 16 * chunk);
        const unsigned char *column = state + (lane % 8 + lane / 16 * 8) * pitch;
        for (int i = 0; i < cells; i += 2) {
            lb_ptx::ldmatrix(b, column + 8 * i * pitch + lane / 8 % 2 * chunk);
            multiply(sum[i], a, b[0], b[1]);
            multiply(sum[i + 1], a, b[2], b[3]);
        }
    }

    static __device__ inline int row_of(int lane, int e)
    {
        return lane / 4 + e / 2 * 8;
    }

    static __device__ inline int column_of(int lane, int e)
    {
        return lane % 4 * 2 + e % 2;
    }
};

/* The blocks per SM for which registers must suffice: two where lb_step_pairs says so. */
template <class Product, class Tile>
constexpr int blocks_per_sm = Tile::row_tiles <= Product::paired_row_tiles ? 2 : 1;

/* ---- Cells of a block ------------------------------------------------------------------------ */

/* What a block computes. blockIdx.x counts the blocks of a cluster first, then units, then batch
 * rows; blockIdx.y is the direction. */
template <class Tile> struct block_place {
    int rank; /* in the cluster */
    int first_unit, first_row, direction;

    /* units: per block; hidden: of the layer */
    __device__ inline block_place(int units, int hidden)
    {
        int across = (hidden + units - 1) / units, at = static_cast<int>(blockIdx.x) / Tile::blocks;
        rank = static_cast<int>(blockIdx.x) % Tile::blocks;
        first_unit = at % across * units;
        first_row = at / across * Tile::columns;
        direction = static_cast<int>(blockIdx.y);
    }
};

/* A launch may begin while that of the step before still runs. What a step writes may be read, and
 * memory may be written, only after this. Every thread calls it, so that no step ends before the
 * step before it has ended. The next launch may then begin too: at most two run at once. */
__device__ inline void follow_previous_step()
{
#ifdef LB_PTX_SM90
    lb_ptx::grid_dependency_wait();
    lb_ptx::launch_dependents();
#endif
}

/* Returns the steps of a batch row, or 0 where there is no such row. */
template <class Args> __device__ inline int length_or_zero(const Args &a, int row)
{
    return row < a.batch ? lb_recurrence::length_of(a, row) : 0;
}

/* ---- The matrix product of a block ----------------------------------------------------------- */

/* Copies a thread's chunks of every slice to shared memory: the same chunk of several rows of
 * weights and of the state. */
template <class Product, class Tile> struct fetcher {
    static constexpr int weight_rows = Tile::rows / Tile::fetched;
    static constexpr int state_rows = Tile::columns / Tile::fetched;
    const unsigned char *weights[weight_rows]; /* this thread's chunks of the first slice */
    const unsigned char *state[state_rows];    /* likewise; NULL: the row is zeros */
    long left;                                 /* bytes of a state row from that chunk to its end */
    int slices; /* of this block; 0 or less: those before it have them all */

    /* Rows have `depth` bytes. Weights are packed [D, all_rows padded], and the block's begin at
     * row `first`; state_row(i) returns row i of the state. */
    template <class StateRow>
    __device__ inline fetcher(const void *packed, const block_place<Tile> &p, long all_rows,
                              long first, long depth, const StateRow &state_row)
    {
        int all = static_cast<int>((depth + Tile::slice - 1) / Tile::slice);
        int most = (all + Tile::blocks - 1) / Tile::blocks, begin = p.rank * most;
        slices = min(most, all - begin);
        long skipped = static_cast<long>(begin) * Tile::slice + at();
        left = depth - skipped;
        long padded = (all_rows + Tile::rows - 1) / Tile::rows * Tile::rows;
        for (int j = 0; j < weight_rows; j++)
            weights[j] =
                static_cast<const unsigned char *>(packed) +
                (p.direction * padded + first + row() + j * Tile::fetched) * all * Tile::slice +
                skipped;
        for (int j = 0; j < state_rows; j++) {
            const void *start = state_row(row() + j * Tile::fetched);
            state[j] = start ? static_cast<const unsigned char *>(start) + skipped : nullptr;
        }
    }

    /* Return the first row that this thread fetches, and the offset of its chunk in a slice. */
    static __device__ inline int row()
    {
        return static_cast<int>(threadIdx.x) / Tile::row_chunks;
    }

    static __device__ inline int at()
    {
        return static_cast<int>(threadIdx.x) % Tile::row_chunks * chunk;
    }

    /* Bytes past the depth become zero. A chunk that is not aligned to 16 bytes is copied element
     * by element. */
    static __device__ inline void copy_state(unsigned char *to, const unsigned char *from,
                                             const unsigned char *any, long valid)
    {
        using T = typename Product::storage;
        valid = from ? min(max(valid, 0L), static_cast<long>(chunk)) : 0L;
        if (reinterpret_cast<uintptr_t>(from) % chunk == 0) {
            lb_ptx::copy_async<chunk>(to, valid > 0 ? from : any, static_cast<unsigned>(valid));
            return;
        }
        for (int e = 0; e < chunk / static_cast<int>(sizeof(T)); e++)
            reinterpret_cast<T *>(to)[e] = (e + 1) * static_cast<long>(sizeof(T)) <= valid
                                               ? reinterpret_cast<const T *>(from)[e]
                                               : convert_to_storage<T>(inside_t<T>(0));
    }

    /* Start to copy weights or state of slice k to its stage. */
    __device__ inline void fetch_weights(unsigned char *stage, int k) const
    {
        long from = static_cast<long>(k) * Tile::slice;
        unsigned char *to = stage + row() * Tile::pitch + at();
        for (int j = 0; j < weight_rows; j++)
            lb_ptx::copy_async<chunk>(to + j * Tile::fetched * Tile::pitch, weights[j] + from);
    }

    __device__ inline void fetch_state(unsigned char *stage, int k) const
    {
        long from = static_cast<long>(k) * Tile::slice;
        unsigned char *to = stage + (Tile::rows + row()) * Tile::pitch + at();
        for (int j = 0; j < state_rows; j++)
            copy_state(to + j * Tile::fetched * Tile::pitch, state[j] ? state[j] + from : nullptr,
                       weights[0], left - from);
    }
};

/* Starts to copy the weights of the first slices, which no step writes. */
template <class Product, class Tile>
__device__ inline void prefetch_weights(const fetcher<Product, Tile> &from, unsigned char *memory)
{
    for (int k = 0; k < LB_STEP_STAGES - 1 && k < from.slices; k++)
        from.fetch_weights(memory + k * Tile::stage, k);
}

/* The distance of two columns of the sums in shared memory: 16 bytes more than their rows, so that
 * the lanes of a warp access different banks. */
template <class R, class Tile> constexpr int sum_pitch = Tile::rows + chunk / int(sizeof(R));

/* Computes this block's sums into shared memory, [split, columns, sum_pitch], with one part for
 * each warp that shares a depth. Slices go through a ring of `stages` buffers. After the one
 * barrier per slice, the slice has arrived for all threads, and no thread reads the previous one,
 * whose buffer is filled next. prefetch_weights comes first. */
template <class Product, class Tile>
__device__ inline void multiply_block(const fetcher<Product, Tile> &from, unsigned char *memory)
{
    constexpr int stages = LB_STEP_STAGES;
    using R = typename Product::real;
    int lane = threadIdx.x % lanes, warp = threadIdx.x / lanes;
    int row = warp % Tile::row_tiles * 16, member = warp / Tile::row_tiles;
    R sum[Tile::cells][4] = {};
    for (int k = 0; k < stages - 1; k++) {
        if (k < from.slices)
            from.fetch_state(memory + k * Tile::stage, k);
        lb_ptx::copy_async_commit();
    }
    for (int k = 0; k < from.slices; k++) {
        lb_ptx::copy_async_wait<stages - 2>();
        __syncthreads();
        int next = k + stages - 1;
        unsigned char *stage = memory + next % stages * Tile::stage;
        if (next < from.slices) {
            from.fetch_weights(stage, next);
            from.fetch_state(stage, next);
        }
        lb_ptx::copy_async_commit();
        const unsigned char *at = memory + k % stages * Tile::stage + member * 2 * k_bytes;
        for (int s = 0; s < 2 * k_bytes; s += k_bytes)
            Product::step(sum, at + row * Tile::pitch + s, at + Tile::rows * Tile::pitch + s,
                          Tile::pitch, lane);
    }
    __syncthreads(); /* sums take the place of slices that others may still read */
    R *to = reinterpret_cast<R *>(memory) + member * Tile::columns * sum_pitch<R, Tile> + row;
    for (int i = 0; i < Tile::cells; i++)
        for (int e = 0; e < 4; e++)
            to[(8 * i + Product::column_of(lane, e)) * sum_pitch<R, Tile> +
               Product::row_of(lane, e)] = sum[i][e];
    __syncthreads();
}

/* Returns the sums of four neighbouring rows. Their parts are always added in the same order. */
template <class Product, class Tile>
__device__ inline four<typename Product::real> block_sums(const unsigned char *memory, int row,
                                                          int column)
{
    using R = typename Product::real;
    const R *from = reinterpret_cast<const R *>(memory) + column * sum_pitch<R, Tile> + row;
    four<R> sums = *reinterpret_cast<const four<R> *>(from);
    for (int member = 1; member < Tile::split; member++) {
        from += Tile::columns * sum_pitch<R, Tile>;
        four<R> part = *reinterpret_cast<const four<R> *>(from);
        for (int e = 0; e < 4; e++)
            sums.of[e] += part.of[e];
    }
    return sums;
}

/* Returns the sum of one row. */
template <class Product, class Tile>
__device__ inline typename Product::real block_sum(const unsigned char *memory, int row, int column)
{
    using R = typename Product::real;
    const R *from = reinterpret_cast<const R *>(memory) + column * sum_pitch<R, Tile> + row;
    R sum = from[0];
    for (int member = 1; member < Tile::split; member++)
        sum += from[member * Tile::columns * sum_pitch<R, Tile>];
    return sum;
}

} // namespace lb_step

#endif
