/* Element-wise kernels: a thread is one element of a 1-D grid, threads share nothing. */
#ifndef LB_ELEMENTWISE_CUH
#define LB_ELEMENTWISE_CUH

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
    default: return a * squash_slope(b, true);
    }
}

/* elementwise_kernel: to [count] = op(a [count], b [count]); b NULL: not used.
 *   Grid over count elements: a thread is one of them.  Cost: one or two R read, one written each.
 */
template <enum lb_elementwise_op OP, class R>
__global__ void elementwise_kernel(R *to, const R *a, const R *b, int64_t count)
{
    int64_t index = thread_index();
    if (index < count)
        to[index] = apply<OP, R>(a[index], b ? b[index] : R(0));
}

/* add_bias_kernel: to [rows, columns] = from [rows, columns] + bias [columns].
 *   Grid over count = rows columns elements: a thread is one of them.  Cost: one R read, one
 * written. */
template <class R>
__global__ void add_bias_kernel(R *to, const R *from, const R *bias, int64_t columns, int64_t count)
{
    int64_t index = thread_index();
    if (index < count)
        to[index] = from[index] + bias[index % columns];
}

/* add_row_sums_kernel: to [columns] += sums over the rows of from [rows, columns].
 *   Grid over columns: a thread is one of them.  Cost: every element of from is read once. */
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

/* select_rows_kernel: copies batch rows that still run and fills the others; shapes in struct
 * lb_elementwise_select.
 *   Grid over rows columns elements: a thread is one of them.  Cost: one T read, one written. */
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
