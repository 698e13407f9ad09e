/* Pointwise kernels: the LSTM cell, and element-wise operations. Each has a 1-D grid of blocks of
 * 256 threads (pointwise_launch.cuh), uses no shared memory, and its threads do not communicate, so
 * that a host compiler can run it as a loop. T is the storage type, R the type of arithmetic. */
#ifndef LB_CELL_CUH
#define LB_CELL_CUH

#include "cuda/common/cell.h"
#include "cuda/common/scalar.cuh"

namespace lb_cell
{

/* cell_forward_kernel: computes the new state from the pre-activations. struct lb_cell_forward has
 * the shapes.
 *   The grid covers B H elements: a thread computes one (b, j), and neighbours share a batch row.
 *   Cost per element in f32: it reads 20 bytes and writes 12, in training 28. Memory bandwidth
 *   limits it, and below some 100,000 elements the cost of a launch does. */
template <class T> __global__ void cell_forward_kernel(struct lb_cell_forward p)
{
    using R = inside_t<T>;
    int64_t index = thread_index(), H = p.hidden;
    if (index >= p.batch * H)
        return;
    int64_t b = index / H, j = index - b * H;
    R c = static_cast<const R *>(p.c_prev)[index];
    T h = convert_to_storage<T>(R(0)), y = h;

    if (p.lengths && p.step >= p.lengths[b]) {
        h = static_cast<const T *>(p.h_prev)[index];
    } else {
        const R *pre = static_cast<const R *>(p.pre) + b * 4 * H + j;
        const R *bias = static_cast<const R *>(p.bias) + j;
        bool relu = p.act == LB_ACT_RELU;
        R i = sigmoid(pre[0] + bias[0]);
        R f = sigmoid(pre[H] + bias[H]);
        R g = squash(pre[2 * H] + bias[2 * H], relu);
        R o = sigmoid(pre[3 * H] + bias[3 * H]);
        c = f * c + i * g;
        h = convert_to_storage<T>(o * squash(c, relu));
        y = h;
        if (p.gates) {
            R *gates = static_cast<R *>(p.gates) + b * 4 * H + j;
            gates[0] = i;
            gates[H] = f;
            gates[2 * H] = g;
            gates[3 * H] = o;
        }
    }
    static_cast<R *>(p.c)[index] = c;
    static_cast<T *>(p.h)[index] = h;
    static_cast<T *>(p.y)[b * p.y_stride + j] = y;
    if (p.hn) {
        static_cast<T *>(p.hn)[index] = h;
        static_cast<T *>(p.cn)[index] = convert_to_storage<T>(c);
    }
}

/* cell_backward_kernel: computes the gradients of one step. struct lb_cell_backward has the shapes.
 *   The grid covers B H elements: a thread computes one (b, j).
 *   Cost per element in f32: it reads 36 bytes and writes 20. */
template <class T> __global__ void cell_backward_kernel(struct lb_cell_backward p)
{
    using R = inside_t<T>;
    int64_t index = thread_index(), H = p.hidden;
    if (index >= p.batch * H)
        return;
    int64_t b = index / H, j = index - b * H;
    T *dgates = static_cast<T *>(p.dgates) + b * 4 * H + j;
    if (p.lengths && p.step >= p.lengths[b]) {
        for (int k = 0; k < 4; k++)
            dgates[k * H] = convert_to_storage<T>(R(0));
        return;
    }
    const R *gates = static_cast<const R *>(p.gates) + b * 4 * H + j;
    bool relu = p.act == LB_ACT_RELU;
    R i = gates[0], f = gates[H], g = gates[2 * H], o = gates[3 * H];
    R inner = squash(static_cast<const R *>(p.c)[index], relu);
    R dh = static_cast<const R *>(p.dh)[index] +
           convert_to_real(static_cast<const T *>(p.dy)[b * p.dy_stride + j]);
    R dc = static_cast<R *>(p.dc)[index] + dh * o * squash_slope(inner, relu);

    dgates[0] = convert_to_storage<T>(dc * g * i * (R(1) - i));
    dgates[H] =
        convert_to_storage<T>(dc * static_cast<const R *>(p.c_prev)[index] * f * (R(1) - f));
    dgates[2 * H] = convert_to_storage<T>(dc * i * squash_slope(g, relu));
    dgates[3 * H] = convert_to_storage<T>(dh * inner * o * (R(1) - o));
    static_cast<R *>(p.dc)[index] = dc * f;
}

/* convert_kernel: converts `from` [count] to `to` [count], T to R exactly or R to T with one
 * rounding. A thread converts one element. */
template <class To, class From>
__global__ void convert_kernel(To *to, const From *from, int64_t count)
{
    int64_t index = thread_index();
    if (index < count)
        to[index] = convert_to_storage<To>(convert_to_real(from[index]));
}

/* add_kernel: to [count] R = a [count] T + b [count] T. A thread adds one pair. */
template <class T>
__global__ void add_kernel(inside_t<T> *to, const T *a, const T *b, int64_t count)
{
    int64_t index = thread_index();
    if (index < count)
        to[index] = convert_to_real(a[index]) + convert_to_real(b[index]);
}

/* part_sums_kernel: sums `from` [rows, columns] T over rows into parts [LB_CELL_PARTS, columns] R.
 * Part p has the rows p, p + LB_CELL_PARTS, and so on.
 *   A thread sums one (part, column), and neighbours share a row. */
template <class T>
__global__ void part_sums_kernel(inside_t<T> *parts, const T *from, int64_t rows, int64_t columns)
{
    int64_t index = thread_index();
    if (index >= LB_CELL_PARTS * columns)
        return;
    int64_t part = index / columns, column = index - part * columns;
    inside_t<T> sum = 0;
    for (int64_t row = part; row < rows; row += LB_CELL_PARTS)
        sum += convert_to_real(from[row * columns + column]);
    parts[index] = sum;
}

/* total_kernel: sums parts [LB_CELL_PARTS, columns] R into `to` [columns] T, and writes the same to
 * `also` [columns] T unless that is NULL. A thread adds one column. */
template <class T>
__global__ void total_kernel(T *to, T *also, const inside_t<T> *parts, int64_t columns)
{
    int64_t column = thread_index();
    if (column >= columns)
        return;
    inside_t<T> sum = 0;
    for (int64_t part = 0; part < LB_CELL_PARTS; part++)
        sum += parts[part * columns + column];
    to[column] = convert_to_storage<T>(sum);
    if (also)
        also[column] = convert_to_storage<T>(sum);
}

/* zero_tails_kernel: sets data [T, B, width] to zero where t >= lengths[b]. count = T B width: a
 * thread has one element. */
template <class T>
__global__ void zero_tails_kernel(T *data, const int32_t *lengths, int64_t batch, int64_t width,
                                  int64_t count)
{
    int64_t index = thread_index();
    if (index >= count)
        return;
    int64_t row = index / width, t = row / batch, b = row - t * batch;
    if (t >= lengths[b])
        data[index] = convert_to_storage<T>(inside_t<T>(0));
}

/* ---- Element-wise operations ----------------------------------------------------------------- */

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

/* elementwise_kernel: to [count] = op(a [count], b [count]), one element per thread; b is NULL
 * where op takes a alone. */
template <enum lb_elementwise_op OP, class R>
__global__ void elementwise_kernel(R *to, const R *a, const R *b, int64_t count)
{
    int64_t index = thread_index();
    if (index < count)
        to[index] = apply<OP, R>(a[index], b ? b[index] : R(0));
}

/* broadcast_kernel: to [rows, columns] = op(from [rows, columns], vector), where the vector is
 * [rows] with per_row, else [columns]. A thread has one of the count = rows columns elements. */
template <enum lb_elementwise_op OP, bool per_row, class R>
__global__ void broadcast_kernel(R *to, const R *from, const R *vector, int64_t columns,
                                 int64_t count)
{
    int64_t index = thread_index();
    if (index < count)
        to[index] = apply<OP, R>(from[index], vector[per_row ? index / columns : index % columns]);
}

/* add_row_sums_kernel: adds to `to` [columns] the sums of `from` [rows, columns] over its rows, one
 * column per thread. */
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

/* select_rows_kernel: copies batch rows that have not ended and fills the others, one element per
 * thread. struct lb_elementwise_select has the shapes. */
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
