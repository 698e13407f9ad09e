/* Storage types of tensors, and their conversion to and from double. */
#ifndef LB_DTYPE_H
#define LB_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum lb_dtype { LB_F64, LB_F32, LB_F16, LB_BF16, LB_DTYPE_COUNT };

/* Bytes of one element: 8, 4, 2, 2. */
size_t lb_dtype_size(enum lb_dtype dtype);

/* "f64", "f32", "f16", "bf16". */
const char *lb_dtype_name(enum lb_dtype dtype);

/* Unit roundoff u = 2^-p of the storage type (p significand bits), so |round(v) - v| <= u |v|. */
double lb_dtype_roundoff(enum lb_dtype dtype);

/* IEEE binary16 and bfloat16, round to nearest even, overflow to infinity, NaN stays NaN.
 * Both round once from double: there is no double rounding through f32. */
uint16_t lb_f16_from_double(double value);
double lb_f16_to_double(uint16_t bits);
uint16_t lb_bf16_from_double(double value);
double lb_bf16_to_double(uint16_t bits);

/* The value after one rounding to dtype. */
double lb_round(enum lb_dtype dtype, double value);

/* values [count] double -> storage [count] dtype, rounded once. */
void lb_store(enum lb_dtype dtype, void *storage, const double *values, size_t count);

/* storage [count] dtype -> values [count] double, exact. */
void lb_load(enum lb_dtype dtype, const void *storage, double *values, size_t count);

#ifdef __cplusplus
}
#endif
#endif
