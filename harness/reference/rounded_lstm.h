/* The rounded evaluation: the oracle's formulas in the arithmetic that a plain, correct
 * implementation of the problem's dtype and math would use. Its distance from the oracle is the
 * rounding error to expect for this problem, and tolerances are derived from it. */
#ifndef LB_ROUNDED_LSTM_H
#define LB_ROUNDED_LSTM_H

#include "reference/case_tensors.h"
#include "reference/oracle.h"

/* Evaluates the oracle's problem, with its inputs and packed weights, into results (canonical, in
 * the problem's dtype, batch R). Weight gradients count every row once. Reads nothing that the
 * oracle's passes overwrite. LB_OOM.
 *
 * Arithmetic:
 * - f64 and int8 are computed in double, all other dtypes in float. Matrix products sum from the
 * last term to the first, where the oracle starts with the first.
 * - f16, bf16: h, y, the gates kept for backward, and the gradients of pre-activations and of
 * layers are rounded to the dtype where they are stored; c and sums stay in float.
 * - int8: the operands of matrix products are quantised as int8.h says. given_h is read.
 * - Math tf32 and half: the operands of matrix products are rounded to 10 fraction bits, for half
 *   also to binary16's range.
 * - relu: at the kink, within a few roundings of 0, this evaluation uses a slope of one half,
 *   because a correct implementation may fall on either side.
 *
 * LB_COARSE: in less precise arithmetic, which some libraries use for the same tensors. f16 then
 * rounds c to f16 in each step, f32 rounds the operands of its matrix products to TF32, and int8
 * has one scale for all channels of a layer and direction. The other dtypes and math modes have no
 * coarse evaluation: with a c in bf16, faults of whole rows would be no larger than its errors.
 *
 * LB_BY_OPERATION, where lb_rounds_by_operation: as a framework computes in f16 and bf16, which
 * stores the result of each operation in the dtype: pre-activations, gates, products, c, tanh(c)
 * and the gradient of c besides the above, and the sum of a weight gradient after each step.
 *
 * LB_SEVEN_BITS: int8 whose weights are rounded to +-64, as libraries do where they add pairs of
 * products in 16 bits. */
enum lb_status lb_rounded_evaluate(const struct lb_oracle *oracle, enum lb_arithmetic arithmetic,
                                   const struct lb_results *results, struct lb_error *err);

/* Whether the problem has an evaluation by operation: the dtype is f16 or bf16, and the math mode
 * is that of the dtype. */
bool lb_rounds_by_operation(const struct lb_problem *problem);

/* What the coarse evaluation of the problem does, as in "no more than with ..."; NULL where there
 * is none. */
const char *lb_coarse_arithmetic(const struct lb_problem *problem);

/* int8 on the oracle's own arrays, in the arithmetic above.
 *
 * Pack, once after lb_oracle_pack of every layer and direction: quantises the matrices that forward
 * reads, w_ih [4H, I_l] times x_max and w_hh [4H, H], in place, to multiples of m / 127.
 *
 * Forward, in place of lb_oracle_forward: rounds x [T, R, I] in its array, to multiples of 1 / 127
 * where 1 stands for x_max, and computes y, hn and cn from it. */
void lb_int8_pack(const struct lb_oracle *oracle);
void lb_int8_forward(const struct lb_oracle *oracle);

/* lb_rounded_evaluate in one floating type; it chooses between them by dtype. */
enum lb_status lb_rounded_f32(const struct lb_oracle *oracle, enum lb_arithmetic arithmetic,
                              const struct lb_results *results, struct lb_error *err);
enum lb_status lb_rounded_f64(const struct lb_oracle *oracle, enum lb_arithmetic arithmetic,
                              const struct lb_results *results, struct lb_error *err);

#endif
