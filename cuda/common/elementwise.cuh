/* Element-wise kernels: each thread of a 1-D grid computes one element, and threads share nothing.
 */
#ifndef LB_ELEMENTWISE_CUH
#define LB_ELEMENTWISE_CUH

#include "api/problem.h"
#include "cuda/common/elementwise.h"
#include "cuda/common/scalar.cuh"

namespace lb_cell
{

template <enum lb_elementwise_op OP, class R> __device__ inline R apply(R a, R b)
{
    switch (OP) {
    case LB_OP_ADD: return a + b;
    case LB_OP_MULTIPLY: return a * b;
    case LB_OP_SIGMOID: return sigmoid(a);
    case LB_OP_TANH: return tangent(a);
    case LB_OP_RELU: return squash(a, true);
    case LB_OP_SIGMOID_SLOPE: return a * b * (R(1) - b);
    case LB_OP_TANH_SLOPE: return a * squash_slope(b, false);
    case LB_OP_SUBTRACT: return a - b;
    case LB_OP_INVERSE_ROOT: return R(1) / sqrt(a + R(LB_LAYERNORM_EPSILON));
    default: return a * squash_slope(b, true);
    }
}

/* elementwise_kernel: to [count] = op(a [count], b [count]); b is NULL where op takes a alone.
 *   The grid covers count elements, one per thread. No shared memory. Cost per element: it reads
 *   one or two R and writes one. */
template <enum lb_elementwise_op OP, class R>
__global__ void elementwise_kernel(R *to, const R *a, const R *b, int64_t count)
{
    int64_t index = thread_index();
    if (index < count)
        to[index] = apply<OP, R>(a[index], b ? b[index] : R(0));
}

/* add_bias_kernel: to [rows, columns] = from [rows, columns] + bias [columns].
 *   The grid covers count = rows columns elements, one per thread. No shared memory. Cost per
 *   element: it reads one R and writes one. */
template <class R>
__global__ void add_bias_kernel(R *to, const R *from, const R *bias, int64_t columns, int64_t count)
{
    int64_t index = thread_index();
    if (index < count)
        to[index] = from[index] + bias[index % columns];
}

/* broadcast_kernel: to [rows, columns] = op(from [rows, columns], vector [rows] or [columns]).
 *   The grid covers count = rows columns elements, one per thread. No shared memory. Cost per
 *   element: it reads one R and writes one. */
template <enum lb_elementwise_op OP, class R>
__global__ void broadcast_kernel(R *to, const R *from, const R *vector, bool per_row,
                                 int64_t columns, int64_t count)
{
    int64_t index = thread_index();
    if (index < count)
        to[index] = apply<OP, R>(from[index], vector[per_row ? index / columns : index % columns]);
}

/* add_row_sums_kernel: adds to `to` [columns] the sums of `from` [rows, columns] over its rows.
 *   The grid covers the columns, one per thread. No shared memory. Cost: it reads every element of
 *   from once. */
template <class R>
__global__ void add_row_sums_kernel(R *to, const R *from, int64_t rows, int64_t columns)
{
    int64_t column = thread_index();
    if (column >= columns)
        return;
    R sum = to[column];
    for (int64_t row = 0; row < rows; row++)
        sum += from[row * columns + column];
    to[column] = sum;
}

/* select_rows_kernel: copies batch rows that have not ended and fills the others. struct
 * lb_elementwise_select has the shapes.
 *   The grid covers rows columns elements, one per thread. No shared memory. Cost per element: it
 *   reads one T and writes one. */
template <class T> __global__ void select_rows_kernel(struct lb_elementwise_select p)
{
    int64_t index = thread_index();
    if (index >= p.rows * p.columns)
        return;
    int64_t row = index / p.columns, column = index - row * p.columns;
    T value = convert_to_storage<T>(inside_t<T>(0));
    if (!p.lengths || p.step < p.lengths[row])
        value = static_cast<const T *>(p.from)[row * p.from_stride + column];
    else if (p.other)
        value = static_cast<const T *>(p.other)[index];
    static_cast<T *>(p.to)[row * p.to_stride + column] = value;
}

} // namespace lb_cell

#endif
