/* The dtype-faithful evaluation: the oracle's formulas in the arithmetic that a plain, correct
 * implementation of the problem's dtype and math would use. Its distance from the oracle is the
 * error that the problem deserves: tolerances are derived from it. */
#ifndef LB_ROUNDED_LSTM_H
#define LB_ROUNDED_LSTM_H

#include "reference/oracle.h"
#include "reference/reference.h"

/* Evaluates the oracle's problem, with its inputs and packed weights, into results (canonical, in
 * the problem's dtype, batch R). Weight gradients count every row once. LB_OOM.
 *
 * Arithmetic: double for f64, else float; products sum from the last term to the first, where the
 * oracle starts with the first. f16, bf16: h, y, gradients of pre-activations and of layers are
 * rounded to the dtype where they are stored; c and sums stay in float. Math tf32 and half: the
 * operands of products are rounded to 10 fraction bits, for half with binary16's range. relu: a
 * right implementation may fall on either side of the kink when it comes within a few roundings of
 * it, so there this one takes a slope of a half. */
enum lb_status lb_rounded_evaluate(const struct lb_oracle *oracle, const struct lb_results *results,
                                   struct lb_error *err);

/* The same for one type of arithmetic; lb_rounded_evaluate chooses. */
enum lb_status lb_rounded_f32(const struct lb_oracle *oracle, const struct lb_results *results,
                              struct lb_error *err);
enum lb_status lb_rounded_f64(const struct lb_oracle *oracle, const struct lb_results *results,
                              struct lb_error *err);

#endif
