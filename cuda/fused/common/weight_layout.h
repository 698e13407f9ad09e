/* How the elements of a canonical matrix [4, H, columns] (w_ih, w_hh, or a bias with one column)
 * are ordered in the memory of the fused kernels. Host code, kernels and tests share this plain C.
 *
 * The index of a packed element is a number of several digits with a radix each. A digit adds a
 * multiple of its value to the gate, the unit and the column that the element is taken from.
 * Elements outside the matrix are zero: tiles are larger than most matrices. */
#ifndef LB_FUSED_WEIGHT_LAYOUT_H
#define LB_FUSED_WEIGHT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/dtype.h"
#include "api/status.h"

#ifdef __CUDACC__
#define LB_HOST_DEVICE __host__ __device__
#else
#define LB_HOST_DEVICE
#endif

/* Begins a function of a tile's numbers, which host code calls and kernels use as a constant. */
#ifdef __cplusplus
#define LB_TILE_FUNCTION LB_HOST_DEVICE static constexpr inline
extern "C" {
#else
#define LB_TILE_FUNCTION static inline
#endif

enum { LB_WEIGHT_DIGITS = 11 };

struct lb_weight_digit {
    uint32_t count;            /* the radix */
    int32_t shift;             /* its logarithm to base 2 where it has one, else -1 */
    uint32_t gate, unit, from; /* what one of the digit adds; `from` is the column */
};

struct lb_weight_layout {
    uint32_t hidden, columns;
    int32_t digits;
    bool tf32;                                      /* f32 elements are rounded to TF32 */
    uint64_t elements;                              /* in packed form: the product of all radices */
    struct lb_weight_digit digit[LB_WEIGHT_DIGITS]; /* the one that changes fastest first */
};

/* An empty layout of a matrix [4, hidden, columns], and its next digit. */
struct lb_weight_layout lb_weight_layout_begin(int64_t hidden, int64_t columns);
void lb_weight_layout_add(struct lb_weight_layout *layout, int64_t count, int64_t gate,
                          int64_t unit, int64_t from);

/* The layout [H, 4, columns], in which the four gates of a unit are neighbours. */
struct lb_weight_layout lb_weight_layout_by_unit(int64_t hidden, int64_t columns);

/* Rounds the bits of an f32 to the nearest TF32, ties away from zero, as cvt.rna does; infinities
 * and NaN stay. */
LB_HOST_DEVICE static inline uint32_t lb_weight_tf32(uint32_t bits)
{
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}

/* Returns the index in the matrix of packed element `index`, or -1 outside the matrix. */
LB_HOST_DEVICE static inline int64_t lb_weight_source(const struct lb_weight_layout *layout,
                                                      uint64_t index)
{
    uint32_t gate = 0, unit = 0, from = 0;
    for (int d = 0; d < LB_WEIGHT_DIGITS; d++) {
        const struct lb_weight_digit digit = layout->digit[d];
        uint64_t rest = digit.shift >= 0   ? index >> digit.shift
                        : index >> 32 == 0 ? (uint32_t)index / digit.count
                                           : index / digit.count;
        uint32_t value = (uint32_t)(index - rest * digit.count);
        gate += value * digit.gate;
        unit += value * digit.unit;
        from += value * digit.from;
        index = rest;
    }
    if (unit >= layout->hidden || from >= layout->columns)
        return -1;
    return ((int64_t)gate * layout->hidden + unit) * layout->columns + from;
}

/* ---- Launchers of kernels --------------------------------------------------------------------
 * They pack weights and unpack weight gradients, and only enqueue on the stream (cudaStream_t).
 * LB_FAILED with CUDA's message. */

/* packed [elements] = matrix [4, H, columns], both of dtype. */
enum lb_status lb_fused_pack(enum lb_dtype dtype, const struct lb_weight_layout *layout,
                             const void *matrix, void *packed, void *stream, struct lb_error *err);

/* packed [4H] = b_ih + b_hh [4H] of dtype; the sum is f64 for f64, else f32. */
enum lb_status lb_fused_pack_biases(enum lb_dtype dtype, const struct lb_weight_layout *layout,
                                    const void *b_ih, const void *b_hh, void *packed, void *stream,
                                    struct lb_error *err);

/* matrix [4, H, columns] of dtype = packed [elements] of dtype, or of f32 where `sums` is set and
 * dtype is f16 or bf16; rounded once. `also` gets the same, and may be NULL. */
enum lb_status lb_fused_unpack(enum lb_dtype dtype, bool sums,
                               const struct lb_weight_layout *layout, const void *packed,
                               void *matrix, void *also, void *stream, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
