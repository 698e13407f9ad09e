/* The backward step kernel: the matrix product and the cells of one step of a layer. */
#ifndef LB_FUSED_STEP_BACKWARD_CUH
#define LB_FUSED_STEP_BACKWARD_CUH

#include "cuda/fused/step/step.cuh"

namespace lb_fused_step
{

/* Returns the gate gradients [4H] of a batch row in the following step, or NULL where the row has
 * no such step. */
template <class T>
__device__ inline const T *gradient_row(const lb_fused_backward_args &a, int direction, int row,
                                        int step)
{
    int length = length_of(a, row);
    if (step + 1 >= length)
        return nullptr;
    size_t index = sequence_index(a, direction, row, length, step + 1);
    return static_cast<const T *>(a.dgates) + 4 * index * a.hidden;
}

/* Computes the gradients of a cell's pre-activations from dh, with all its parts, and dc of the
 * following step. Returns dc of the state before the step. */
template <class T, class R>
__device__ inline R cell_back(const lb_fused_backward_args &a, size_t at, R c_prev, R dh, R dc,
                              bool relu)
{
    const R *gates = static_cast<const R *>(a.gates) + 4 * at;
    R i = gates[0], f = gates[1], g = gates[2], o = gates[3];
    R inner = squash(static_cast<const R *>(a.cells)[at], relu);
    dc += dh * o * squash_slope(inner, relu);
    T *to = static_cast<T *>(a.dgates) + 4 * at;
    to[0] = convert_to_storage<T>(dc * g * i * (R(1) - i));
    to[1] = convert_to_storage<T>(dc * c_prev * f * (R(1) - f));
    to[2] = convert_to_storage<T>(dc * i * squash_slope(g, relu));
    to[3] = convert_to_storage<T>(dh * inner * o * (R(1) - o));
    return dc * f;
}

/* Computes the gradients of one unit of one row. Step -1 is the initial state. A row's last step
 * takes dhn and dcn; past it, gradients are zero. */
template <class Product, class Tile>
__device__ inline void finish_gradient(const lb_fused_backward_args &a, const block_place<Tile> &p,
                                       int index, int step, bool relu, const unsigned char *memory)
{
    using T = typename Product::storage;
    using R = typename Product::real;
    int unit = p.first_unit + index % Tile::rows, row = p.first_row + index / Tile::rows;
    int length = unit < a.hidden ? length_of(a, row) : 0;
    if (length == 0)
        return;
    size_t at = step < 0 ? 0 : sequence_index(a, p.direction, row, length, step) * a.hidden + unit;
    if (step >= length) {
        for (int q = 0; q < 4; q++)
            static_cast<T *>(a.dgates)[4 * at + q] = convert_to_storage<T>(R(0));
        return;
    }
    size_t state = state_index(a, p.direction, row) * a.hidden + unit;
    R *carry = static_cast<R *>(a.carry) + static_cast<size_t>(a.directions) * a.batch * a.hidden +
               state; /* of dc */
    R dh, dc;
    if (step == length - 1) {
        dh = convert_to_real(static_cast<const T *>(a.dhn)[state]);
        dc = convert_to_real(static_cast<const T *>(a.dcn)[state]);
    } else {
        dh = block_sum<Product, Tile>(memory, index % Tile::rows, index / Tile::rows);
        dc = *carry;
    }
    if (step < 0) {
        static_cast<T *>(a.dh0)[state] = convert_to_storage<T>(dh);
        static_cast<T *>(a.dc0)[state] = convert_to_storage<T>(dc);
        return;
    }
    R c_prev;
    if (step == 0)
        c_prev = convert_to_real(static_cast<const T *>(a.c0)[state]);
    else
        c_prev = static_cast<const R *>(
            a.cells)[sequence_index(a, p.direction, row, length, step - 1) * a.hidden + unit];
    dh += convert_to_real(static_cast<const T *>(a.dy)[at]);
    *carry = cell_back<T>(a, at, c_prev, dh, dc, relu);
}

/* fused_step_backward_kernel: computes the gate gradients of one step from those of the following
 * step, from dy and from what the training forward wrote; at step -1 it computes the gradients of
 * the initial state. lb_fused_backward_args has the shapes.
 *   grid (ceil(H / (16 row_tiles)) * ceil(B / columns), D), block (32 * row_tiles * split).
 *   Dynamic shared memory: lb_fused_step_shared.
 *   Cost per block: it reads (16 row_tiles + columns) 4H elements and computes 2 * 16 row_tiles *
 *   columns * 4H flops. Per cell with R = f32, it reads 28 bytes and one T and writes 4 bytes and
 *   4 T. */
template <class Product, class Tile>
__global__ void __launch_bounds__(Tile::threads, (blocks_per_sm<Product, Tile>))
    fused_step_backward_kernel(lb_fused_backward_args a, int step, bool relu)
{
    using T = typename Product::storage;
    LB_DYNAMIC_SHARED(unsigned char, memory);
    block_place<Tile> p(Tile::rows, a.hidden);
    fetcher<Product, Tile> from(a.weights, p.direction, a.hidden, p.first_unit,
                                4l * a.hidden * static_cast<long>(sizeof(T)), [&](int row) {
                                    return gradient_row<T>(a, p.direction, p.first_row + row, step);
                                });
    bool lives = step + 1 < length_of(a, p.first_row); /* lengths descend */
    if (lives)
        prefetch_weights(from, memory);
    follow_previous_step();
    if (lives)
        multiply_block(from, memory);
    for (int index = threadIdx.x; index < Tile::rows * Tile::columns; index += Tile::threads)
        finish_gradient<Product>(a, p, index, step, relu, memory);
}

} // namespace lb_fused_step

#endif
