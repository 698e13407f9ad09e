/* Kernels that convert weights and weight gradients between the canonical layout and that of the
 * fused kernels: each thread of a 1-D grid converts one element, and threads share nothing. */
#ifndef LB_FUSED_WEIGHTS_CUH
#define LB_FUSED_WEIGHTS_CUH

#include "cuda/common/scalar.cuh"
#include "cuda/fused/common/weight_layout.h"

namespace lb_fused_weights
{

/* The bits of an element, rounded to TF32 where the layout says so. */
template <class Bits> __device__ inline Bits rounded(Bits bits, bool)
{
    return bits;
}
template <> __device__ inline uint32_t rounded<uint32_t>(uint32_t bits, bool tf32)
{
    return tf32 ? lb_weight_tf32(bits) : bits;
}

/* pack_kernel: packed [elements] = elements of matrix [4, H, columns], or zero.
 *   Cost per element: one is read and one is written, and some 100 integer instructions find its
 *   place. */
template <class Bits>
__global__ void pack_kernel(Bits *packed, const Bits *matrix, lb_weight_layout layout)
{
    uint64_t index = static_cast<uint64_t>(lb_cell::thread_index());
    if (index >= layout.elements)
        return;
    int64_t source = lb_weight_source(&layout, index);
    packed[index] = source < 0 ? Bits(0) : rounded<Bits>(matrix[source], layout.tf32);
}

/* pack_biases_kernel: packed [4H] R = b_ih + b_hh [4H] T. */
template <class T>
__global__ void pack_biases_kernel(lb_cell::inside_t<T> *packed, const T *b_ih, const T *b_hh,
                                   lb_weight_layout layout)
{
    uint64_t index = static_cast<uint64_t>(lb_cell::thread_index());
    if (index >= layout.elements)
        return;
    int64_t source = lb_weight_source(&layout, index);
    packed[index] = lb_cell::convert_to_real(b_ih[source]) + lb_cell::convert_to_real(b_hh[source]);
}

/* unpack_kernel: matrix [4, H, columns] To = packed [elements] From; `also` gets the same unless it
 * is NULL. Cost as pack_kernel. */
template <class From, class To>
__global__ void unpack_kernel(To *matrix, To *also, const From *packed, lb_weight_layout layout)
{
    uint64_t index = static_cast<uint64_t>(lb_cell::thread_index());
    if (index >= layout.elements)
        return;
    int64_t source = lb_weight_source(&layout, index);
    if (source < 0)
        return;
    To value = lb_cell::convert_to_storage<To>(lb_cell::convert_to_real(packed[index]));
    matrix[source] = value;
    if (also)
        also[source] = value;
}

} // namespace lb_fused_weights

#endif
