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
    int length = length_or_zero(a, row);
    if (step >= length)
        return nullptr;
    const T *from = static_cast<const T *>(step == 0 ? a.h0 : a.y);
    size_t index = step == 0 ? row_in_state(a, direction, row)
                             : row_in_sequence(a, direction, length, step - 1, row);
    return from + index * a.hidden;
}

/* What a thread computes: the cells of one unit, `apart` batch rows from one to the next. */
template <class Tile> struct forward_thread {
    static constexpr int units = 4 * Tile::row_tiles, apart = Tile::threads / units;
    static constexpr int cells = (Tile::columns + apart - 1) / apart;
    static_assert(Tile::threads % units == 0, "all cells of a thread are of one unit");
    static_assert(Tile::columns % apart == 0 || cells == 1, "threads have equally many cells");
    block_place<Tile> place;
    int own, unit; /* in the block, and in the layer */
    int column;    /* of the first cell in the block */

    __device__ inline explicit forward_thread(int hidden) : place(units, hidden)
    {
        own = static_cast<int>(threadIdx.x) % units;
        unit = place.first_unit + own;
        column = static_cast<int>(threadIdx.x) / units;
    }
};

/* A cell and its inputs, which are loaded before the matrix product: load_cell what no step writes,
 * load_c what the step before wrote. */
template <class R> struct forward_cell {
    int row, length; /* length 0: the cell is padding */
    four<R> pre;     /* with the bias */
    R c;
};

/* Returns the biases of the thread's unit, or zeros where it has no cells. */
template <class R, class Tile>
__device__ inline four<R> load_bias(const lb_fused_forward_args &a, const forward_thread<Tile> &t)
{
    four<R> bias = {};
    if (t.unit < a.hidden && t.column < Tile::columns)
        bias = static_cast<const four<R> *>(a.bias)[t.place.direction * a.hidden + t.unit];
    return bias;
}

template <class R, class Tile>
__device__ inline void load_cell(const lb_fused_forward_args &a, const forward_thread<Tile> &t,
                                 int step, int n, const four<R> &bias, forward_cell<R> &cell)
{
    int column = t.column + n * t.apart;
    cell.row = t.place.first_row + column;
    cell.length = column < Tile::columns && t.unit < a.hidden ? length_or_zero(a, cell.row) : 0;
    if (step >= cell.length)
        return;
    size_t at = row_in_sequence(a, t.place.direction, cell.length, step, cell.row);
    cell.pre = static_cast<const four<R> *>(a.pre)[at * a.hidden + t.unit];
    for (int q = 0; q < 4; q++)
        cell.pre.of[q] += bias.of[q];
}

template <class T, class R, class Tile>
__device__ inline void load_c(const lb_fused_forward_args &a, const forward_thread<Tile> &t,
                              int step, forward_cell<R> &cell)
{
    if (step >= cell.length)
        return;
    size_t state = row_in_state(a, t.place.direction, cell.row) * a.hidden + t.unit;
    cell.c = step == 0 ? R(convert_to_real(static_cast<const T *>(a.c0)[state]))
                       : static_cast<const R *>(a.carry)[state];
}

/* Computes a cell's new state from the sums of its gates. Past the row's end it sets y to zero and
 * changes nothing else. */
template <class Product, class Tile>
__device__ inline void finish_cell(const lb_fused_forward_args &a, const forward_thread<Tile> &t,
                                   const forward_cell<typename Product::real> &cell, int step,
                                   int column, bool relu, const unsigned char *memory)
{
    using T = typename Product::storage;
    using R = typename Product::real;
    if (cell.length == 0)
        return;
    const int direction = t.place.direction;
    size_t at = row_in_sequence(a, direction, cell.length, step, cell.row) * a.hidden + t.unit;
    if (step >= cell.length) {
        static_cast<T *>(a.y)[at] = convert_to_storage<T>(R(0));
        return;
    }
    four<R> gates = block_sums<Product, Tile>(memory, 4 * t.own, column);
    for (int q = 0; q < 4; q++) {
        R sum = gates.of[q] + cell.pre.of[q];
        gates.of[q] = q == 2 ? squash<T>(sum, relu) : functions_of<T>::sigmoid(sum);
    }
    R c = gates.of[1] * cell.c + gates.of[0] * gates.of[2], h = gates.of[3] * squash<T>(c, relu);
    size_t state = row_in_state(a, direction, cell.row) * a.hidden + t.unit;
    static_cast<T *>(a.y)[at] = convert_to_storage<T>(h);
    static_cast<R *>(a.carry)[state] = c;
    if (a.cells) {
        static_cast<R *>(a.cells)[at] = c;
        static_cast<four<R> *>(a.gates)[at] = gates;
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
    using R = typename Product::real;
    LB_DYNAMIC_SHARED(unsigned char, memory);
    const forward_thread<Tile> t(a.hidden);
    const block_place<Tile> &p = t.place;
    fetcher<Product, Tile> from(
        a.weights, p, 4l * a.hidden, 4l * p.first_unit, a.hidden * static_cast<long>(sizeof(T)),
        [&](int row) { return state_row<T>(a, p.direction, p.first_row + row, step); });
    /* Lengths descend: when the block's first row has ended, all its rows have. */
    bool lives = step < length_or_zero(a, p.first_row);
    if (lives)
        prefetch_weights(from, memory);
    forward_cell<R> cells[t.cells];
    const four<R> bias = load_bias<R>(a, t);
#pragma unroll
    for (int n = 0; n < t.cells; n++)
        load_cell(a, t, step, n, bias, cells[n]);
    follow_previous_step();
#pragma unroll
    for (int n = 0; n < t.cells; n++)
        load_c<T>(a, t, step, cells[n]);
    if (lives)
        multiply_block(from, memory);
#pragma unroll
    for (int n = 0; n < t.cells; n++)
        finish_cell<Product>(a, t, cells[n], step, t.column + n * t.apart, relu, memory);
}

} // namespace lb_step

#endif
