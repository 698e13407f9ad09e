/* The backward step kernel: the matrix product and the cells of one step of a layer. */
#ifndef LB_STEP_BACKWARD_CUH
#define LB_STEP_BACKWARD_CUH

#include "cuda/fused/step/step.cuh"

namespace lb_step
{

/* Returns the gate gradients [4H] of a batch row in the following step, or NULL where the row has
 * no such step. */
template <class T>
__device__ inline const T *gradient_row(const lb_fused_backward_args &a, int direction, int row,
                                        int step)
{
    int length = length_or_zero(a, row);
    if (step + 1 >= length)
        return nullptr;
    size_t index = row_in_sequence(a, direction, length, step + 1, row);
    return static_cast<const T *>(a.dgates) + 4 * index * a.hidden;
}

/* ---- Sums of a tile ---------------------------------------------------------------------------
 * A block of a cluster owns every blocks-th column of its tile. In each slot, which is a column
 * that a block owns, it needs the sums of all rows. */

/* The sums of a block that has a tile of its own. */
template <class Product, class Tile, bool cluster = (Tile::blocks > 1)> struct tile_sums {
    const unsigned char *memory;

    __device__ inline tile_sums(unsigned char *shared, int, int) : memory(shared)
    {
    }

    __device__ inline void open() const
    {
    }

    __device__ inline void exchange() const
    {
    }

    __device__ inline void wait() const
    {
    }

    __device__ inline typename Product::real get(int row, int slot) const
    {
        return block_sum<Product, Tile>(memory, row, slot);
    }
};

#ifdef LB_PTX_SM90

/* The sums of a cluster. Each block sends its sums, which are one part of the depth, to the blocks
 * that own their columns, itself included. Their arrival is the barrier. Nothing is sent twice, and
 * what is received lies where no slice does, so that one phase of the mbarrier suffices. */
template <class Product, class Tile> struct tile_sums<Product, Tile, true> {
    static constexpr int slots = Tile::columns / Tile::blocks;
    static constexpr int pitch = 4 * (slots + 1);       /* floats of 4 rows from one block */
    static constexpr int part = Tile::rows / 4 * pitch; /* floats from one block */
    const unsigned char *memory;
    uint64_t *full;
    float *received;   /* [blocks, rows / 4, slots + 1, 4] */
    int rank, columns; /* columns: those that are batch rows; no other is sent */

    __device__ inline tile_sums(unsigned char *shared, int own_rank, int rows_left)
        : memory(shared), rank(own_rank), columns(min(rows_left, Tile::columns))
    {
        full = reinterpret_cast<uint64_t *>(shared + LB_STEP_STAGES * Tile::stage);
        received = reinterpret_cast<float *>(full + 2);
    }

    /* Prepares the mbarrier; the peers send when they know that this has been done. */
    __device__ inline void open() const
    {
        if (threadIdx.x == 0) {
            int owned = (columns - rank + Tile::blocks - 1) / Tile::blocks;
            lb_ptx::mbarrier_init(full, 1);
            lb_ptx::fence_mbarrier_init();
            lb_ptx::mbarrier_arrive_expect_bytes(
                full, static_cast<unsigned>(owned * Tile::blocks * Tile::rows * 4));
        }
        lb_ptx::cluster_arrive();
    }

    /* Sends this block's sums, 16 bytes of 4 rows at a time. A thread sends one column;
     * neighbouring lanes have neighbouring columns, so that they read from different banks. */
    __device__ inline void exchange() const
    {
        static_assert(Tile::threads % Tile::columns == 0, "a thread sends one column");
        int column = static_cast<int>(threadIdx.x) % Tile::columns, owner = column % Tile::blocks;
        lb_ptx::cluster_wait();
        if (column >= columns)
            return;
        const float *at = received + rank * part + column / Tile::blocks * 4;
        uint32_t to = lb_ptx::map_shared_address(lb_ptx::shared_address(at), owner);
        uint32_t barrier = lb_ptx::map_shared_address(lb_ptx::shared_address(full), owner);
        for (int quad = static_cast<int>(threadIdx.x) / Tile::columns; quad < Tile::rows / 4;
             quad += Tile::threads / Tile::columns) {
            const four<float> sums = block_sums<Product, Tile>(memory, 4 * quad, column);
            lb_ptx::store_async(to + quad * pitch * 4, sums.of, barrier);
        }
    }

    __device__ inline void wait() const
    {
        lb_ptx::mbarrier_wait<lb_ptx::scope::cluster>(full, 0);
    }

    /* Adds the parts in the order of blocks. */
    __device__ inline float get(int row, int slot) const
    {
        const float *from = received + row / 4 * pitch + slot * 4 + row % 4;
        float sum = from[0];
        for (int block = 1; block < Tile::blocks; block++)
            sum += from[block * part];
        return sum;
    }
};

#endif

/* ---- Cells ----------------------------------------------------------------------------------- */

/* A cell and its inputs. Types are as in memory: converting them would wait for them. */
template <class T, class R> struct gradient_cell {
    int length;       /* of its row; 0: the cell is padding */
    size_t at, state; /* indices in [T, B, D, H], where step is not -1, and in [D, B, H] */
    four<R> gates;
    R c, c_prev, dc;
    T dy;
};

/* Finds the cell with that index of the block. */
template <class Tile, class Cell>
__device__ inline void find_gradient(const lb_fused_backward_args &a, const block_place<Tile> &p,
                                     int step, int index, Cell &cell)
{
    int unit = p.first_unit + index % Tile::rows;
    int row = p.first_row + index / Tile::rows * Tile::blocks + p.rank;
    cell.length = unit < a.hidden ? length_or_zero(a, row) : 0;
    cell.at = row_in_sequence(a, p.direction, cell.length, step, row) * a.hidden + unit;
    cell.state = row_in_state(a, p.direction, row) * a.hidden + unit;
}

/* Returns where carry has dc of a cell. */
template <class R> __device__ inline R *carry_of(const lb_fused_backward_args &a, size_t state)
{
    return static_cast<R *>(a.carry) + lb_recurrence::state_size(a) + state;
}

/* Loads the inputs of a step but for those of the row's last step, dhn and dcn. Step -1 is the
 * initial state. */
template <class T, class R>
__device__ inline void load_gradient(const lb_fused_backward_args &a, int direction, int step,
                                     gradient_cell<T, R> &cell)
{
    if (cell.length == 0 || step >= cell.length)
        return;
    if (step < cell.length - 1)
        cell.dc = *carry_of<R>(a, cell.state);
    if (step < 0)
        return;
    const R *c = static_cast<const R *>(a.cells) + cell.at;
    const size_t time = static_cast<size_t>(a.batch) * a.directions * a.hidden;
    cell.gates = static_cast<const four<R> *>(a.gates)[cell.at];
    cell.c = *c;
    if (step > 0)
        cell.c_prev = direction == 1 ? c[time] : *(c - time);
    else
        cell.c_prev = convert_to_real(static_cast<const T *>(a.c0)[cell.state]);
    cell.dy = static_cast<const T *>(a.dy)[cell.at];
}

/* Computes the gradients of a cell's pre-activations from dh, with all its parts, and dc of the
 * following step. Returns dc of the state before the step. */
template <class T, class R>
__device__ inline R cell_back(const gradient_cell<T, R> &cell, four<T> *to, R dh, R dc, bool relu)
{
    R i = cell.gates.of[0], f = cell.gates.of[1], g = cell.gates.of[2], o = cell.gates.of[3];
    R inner = squash<T>(cell.c, relu);
    dc += dh * o * squash_slope(inner, relu);
    *to = {{convert_to_storage<T>(dc * g * i * (R(1) - i)),
            convert_to_storage<T>(dc * cell.c_prev * f * (R(1) - f)),
            convert_to_storage<T>(dc * i * squash_slope(g, relu)),
            convert_to_storage<T>(dh * inner * o * (R(1) - o))}};
    return dc * f;
}

/* Computes the gradients of one unit of one row from the sum of dh. A row's last step takes dhn and
 * dcn; past it, gradients are zero. */
template <class T, class R>
__device__ inline void finish_gradient(const lb_fused_backward_args &a, int step,
                                       const gradient_cell<T, R> &cell, R sum, bool relu)
{
    if (cell.length == 0)
        return;
    four<T> *to = static_cast<four<T> *>(a.dgates) + cell.at;
    const T zero = convert_to_storage<T>(R(0));
    if (step >= cell.length) {
        *to = {{zero, zero, zero, zero}};
        return;
    }
    R dh = sum, dc = cell.dc;
    if (step == cell.length - 1) {
        dh = convert_to_real(static_cast<const T *>(a.dhn)[cell.state]);
        dc = convert_to_real(static_cast<const T *>(a.dcn)[cell.state]);
    }
    if (step < 0) {
        static_cast<T *>(a.dh0)[cell.state] = convert_to_storage<T>(dh);
        static_cast<T *>(a.dc0)[cell.state] = convert_to_storage<T>(dc);
        return;
    }
    dh += convert_to_real(cell.dy);
    *carry_of<R>(a, cell.state) = cell_back(cell, to, dh, dc, relu);
}

template <class Product, class Tile>
__device__ inline void backward_block(const lb_fused_backward_args &a, int step, bool relu)
{
    using T = typename Product::storage;
    using R = typename Product::real;
    constexpr int own = Tile::rows * Tile::columns / Tile::blocks / Tile::threads; /* cells */
    constexpr int group = own < LB_STEP_GROUP ? own : LB_STEP_GROUP;
    static_assert(own % group == 0, "each group has as many cells as the others");
    LB_DYNAMIC_SHARED(unsigned char, memory);
    block_place<Tile> p(Tile::rows, a.hidden);
    fetcher<Product, Tile> from(
        a.weights, p, a.hidden, p.first_unit, 4l * a.hidden * static_cast<long>(sizeof(T)),
        [&](int row) { return gradient_row<T>(a, p.direction, p.first_row + row, step); });
    const tile_sums<Product, Tile> sums(memory, p.rank, a.batch - p.first_row);
    /* Lengths descend: when the tile's first row has no such step, none of its rows has. All blocks
     * of a cluster have the same tile. */
    bool lives = step + 1 < length_or_zero(a, p.first_row);
    if (lives) {
        prefetch_weights(from, memory);
        sums.open();
    }
    follow_previous_step();
    if (lives) {
        multiply_block(from, memory);
        sums.exchange();
    }
#pragma unroll 1
    for (int first = 0; first < own; first += group) {
        gradient_cell<T, R> cells[group];
        int index = static_cast<int>(threadIdx.x) + first * Tile::threads;
#pragma unroll
        for (int n = 0; n < group; n++)
            find_gradient(a, p, step, index + n * Tile::threads, cells[n]);
#pragma unroll
        for (int n = 0; n < group; n++)
            load_gradient(a, p.direction, step, cells[n]);
        if (lives && first == 0)
            sums.wait();
#pragma unroll
        for (int n = 0; n < group; n++) {
            int at = index + n * Tile::threads;
            R sum = step + 1 < cells[n].length ? sums.get(at % Tile::rows, at / Tile::rows) : R(0);
            finish_gradient(a, step, cells[n], sum, relu);
        }
    }
}

/* fused_step_backward_kernel: computes the gate gradients of one step from those of the following
 * step, from dy and from what the training forward wrote; at step -1 it computes the gradients of
 * the initial state. lb_fused_backward_args has the shapes.
 *   grid (ceil(H / (16 row_tiles)) * ceil(B / columns) * blocks, D) in clusters of (blocks), block
 *   (32 * row_tiles * split).
 *   Dynamic shared memory: lb_step_shared.
 *   Cost per cluster: it reads (16 row_tiles + columns) 4H elements, computes 2 * 16 row_tiles *
 *   columns * 4H flops, and each block receives 64 * row_tiles * columns bytes. Per cell with R =
 *   f32, it reads 28 bytes and one T and writes 4 bytes and 4 T. The inputs of a group of cells
 *   are requested at the same time.
 * It is compiled for every architecture, because host code names it. Before sm_90 the body of one
 * with clusters is empty. */
template <class Product, class Tile>
__global__ void __launch_bounds__(Tile::threads, (blocks_per_sm<Product, Tile>))
    fused_step_backward_kernel(lb_fused_backward_args a, int step, bool relu)
{
#ifdef LB_PTX_SM90
    constexpr bool runs = true;
#else
    constexpr bool runs = Tile::blocks == 1;
#endif
    if constexpr (runs)
        backward_block<Product, Tile>(a, step, relu);
}

} // namespace lb_step

#endif
