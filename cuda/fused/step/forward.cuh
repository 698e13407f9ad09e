/* The forward step kernel: the matrix product and the cells of one step of a layer. */
#ifndef LB_STEP_FORWARD_CUH
#define LB_STEP_FORWARD_CUH

#include "cuda/fused/step/step.cuh"

namespace lb_step
{

/* Returns h [H] of a batch row before the step: in h0, or in y, where the previous step wrote it.
 * NULL where the row has ended or does not exist. */
template <class T>
__device__ inline const T *state_row(const lb_fused_forward_args &a, int direction, int row,
                                     int step)
{
    int length = length_of(a, row);
    if (step >= length)
        return nullptr;
    const T *from = static_cast<const T *>(step == 0 ? a.h0 : a.y);
    size_t index = step == 0 ? state_index(a, direction, row)
                             : sequence_index(a, direction, row, length, step - 1);
    return from + index * a.hidden;
}

/* A cell and its inputs, which are loaded before the matrix product: load_cell what no step writes,
 * load_c what the step before wrote. */
template <class R> struct forward_cell {
    int unit, row, length; /* length 0: the cell is padding */
    R pre[4], c;
};

template <class Product, class Tile>
__device__ inline void load_cell(const lb_fused_forward_args &a, const block_place<Tile> &p,
                                 int step, int index, forward_cell<typename Product::real> &cell)
{
    using R = typename Product::real;
    constexpr int units = 4 * Tile::row_tiles;
    cell.unit = p.first_unit + index % units;
    cell.row = p.first_row + index / units;
    cell.length =
        index < units * Tile::columns && cell.unit < a.hidden ? length_of(a, cell.row) : 0;
    if (step >= cell.length)
        return;
    size_t at = sequence_index(a, p.direction, cell.row, cell.length, step) * a.hidden + cell.unit;
    for (int q = 0; q < 4; q++)
        cell.pre[q] = static_cast<const R *>(a.pre)[4 * at + q];
}

template <class Product, class Tile>
__device__ inline void load_c(const lb_fused_forward_args &a, const block_place<Tile> &p, int step,
                              forward_cell<typename Product::real> &cell)
{
    using T = typename Product::storage;
    using R = typename Product::real;
    if (step >= cell.length)
        return;
    size_t state = state_index(a, p.direction, cell.row) * a.hidden + cell.unit;
    cell.c = step == 0 ? R(convert_to_real(static_cast<const T *>(a.c0)[state]))
                       : static_cast<const R *>(a.carry)[state];
}

/* Computes a cell's new state from the sums of its gates. Past the row's end it sets y to zero and
 * changes nothing else. */
template <class Product, class Tile>
__device__ inline void finish_cell(const lb_fused_forward_args &a, const block_place<Tile> &p,
                                   const forward_cell<typename Product::real> &cell, int index,
                                   int step, bool relu, const unsigned char *memory)
{
    using T = typename Product::storage;
    using R = typename Product::real;
    constexpr int units = 4 * Tile::row_tiles;
    if (cell.length == 0)
        return;
    size_t at = sequence_index(a, p.direction, cell.row, cell.length, step) * a.hidden + cell.unit;
    if (step >= cell.length) {
        static_cast<T *>(a.y)[at] = convert_to_storage<T>(R(0));
        return;
    }
    const R *bias = static_cast<const R *>(a.bias) + 4 * (p.direction * a.hidden + cell.unit);
    R gate[4];
    for (int q = 0; q < 4; q++) {
        R sum = block_sum<Product, Tile>(memory, index % units * 4 + q, index / units);
        sum += cell.pre[q] + bias[q];
        gate[q] = q == 2 ? squash(sum, relu) : sigmoid(sum);
    }
    R c = gate[1] * cell.c + gate[0] * gate[2], h = gate[3] * squash(c, relu);
    size_t state = state_index(a, p.direction, cell.row) * a.hidden + cell.unit;
    static_cast<T *>(a.y)[at] = convert_to_storage<T>(h);
    static_cast<R *>(a.carry)[state] = c;
    if (a.cells) {
        static_cast<R *>(a.cells)[at] = c;
        for (int q = 0; q < 4; q++)
            static_cast<R *>(a.gates)[4 * at + q] = gate[q];
    }
    if (step == cell.length - 1) {
        static_cast<T *>(a.hn)[state] = convert_to_storage<T>(h);
        static_cast<T *>(a.cn)[state] = convert_to_storage<T>(c);
    }
}

/* fused_step_forward_kernel: computes the state after one step from its pre-activations and the
 * state before; where `cells` is not NULL it also writes the activated gates and the cells.
 * lb_fused_forward_args has the shapes.
 *   grid (ceil(H / (4 row_tiles)) * ceil(B / columns), D), block (32 * row_tiles * split).
 *   Dynamic shared memory: lb_step_shared.
 *   Cost per block: it reads (16 row_tiles + columns) H elements and computes 2 * 16 row_tiles *
 *   columns * H flops. Per cell with R = f32, it reads 20 bytes and writes 4 and one T, with
 *   `cells` 20 more. */
template <class Product, class Tile>
__global__ void __launch_bounds__(Tile::threads, (blocks_per_sm<Product, Tile>))
    fused_step_forward_kernel(lb_fused_forward_args a, int step, bool relu)
{
    using T = typename Product::storage;
    constexpr int units = 4 * Tile::row_tiles;
    constexpr int own = (units * Tile::columns + Tile::threads - 1) / Tile::threads;
    LB_DYNAMIC_SHARED(unsigned char, memory);
    block_place<Tile> p(units, a.hidden);
    fetcher<Product, Tile> from(
        a.weights, p, 4l * a.hidden, 4l * p.first_unit, a.hidden * static_cast<long>(sizeof(T)),
        [&](int row) { return state_row<T>(a, p.direction, p.first_row + row, step); });
    /* Lengths descend: when the block's first row has ended, all its rows have. */
    bool lives = step < length_of(a, p.first_row);
    if (lives)
        prefetch_weights(from, memory);
    forward_cell<typename Product::real> cells[own];
#pragma unroll
    for (int n = 0; n < own; n++)
        load_cell<Product>(a, p, step, static_cast<int>(threadIdx.x) + n * Tile::threads, cells[n]);
    follow_previous_step();
#pragma unroll
    for (int n = 0; n < own; n++)
        load_c<Product>(a, p, step, cells[n]);
    if (lives)
        multiply_block(from, memory);
#pragma unroll
    for (int n = 0; n < own; n++)
        finish_cell<Product>(a, p, cells[n], static_cast<int>(threadIdx.x) + n * Tile::threads,
                             step, relu, memory);
}

} // namespace lb_step

#endif
