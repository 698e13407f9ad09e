/* Storage types of tensors, and conversion between them and double. */
#ifndef LB_DTYPE_H
#define LB_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tensors of int8 are stored as f32: the implementation quantises what its matrix products read
 * (int8.h). */
enum lb_dtype { LB_F64, LB_F32, LB_F16, LB_BF16, LB_INT8, LB_DTYPE_COUNT };

/* Bytes of one stored element: 8, 4, 2, 2, 4. */
size_t lb_dtype_size(enum lb_dtype dtype);

/* "f64", "f32", "f16", "bf16", "int8". */
const char *lb_dtype_name(enum lb_dtype dtype);

/* Unit roundoff u = 2^-p of a storage type with p significand bits: |round(v) - v| <= u |v|. For
 * int8 it is 2^-8, half a step of an operand over the largest one. */
double lb_dtype_roundoff(enum lb_dtype dtype);

/* Conversion of a double to the bits of IEEE binary16 or bfloat16. Values are rounded to
 * nearest even, directly from double, because rounding through f32 would round twice. Values that
 * are too large become infinity, and NaN stays NaN. */
uint16_t lb_f16_from_double(double value);
uint16_t lb_bf16_from_double(double value);

/* The value after one rounding to dtype. */
double lb_round(enum lb_dtype dtype, double value);

/* Converts values [count] to storage [count] of the dtype, each rounded once. The two arrays must
 * not overlap. */
void lb_store(enum lb_dtype dtype, void *storage, const double *values, size_t count);

/* Converts storage [count] of the dtype to values [count], exactly. The two arrays must not
 * overlap. */
void lb_load(enum lb_dtype dtype, const void *storage, double *values, size_t count);

#ifdef __cplusplus
}
#endif
#endif
