/* Filters, which --where gives: an integer expression over a problem's sizes.
 *
 *     T*B <= 65536 && (H % 128 == 0 || I != H)
 *
 * Operands are decimal numbers and T B I H P L D, where P is the size of h: H unless the cell
 * projects it. The operators are those of C, here in order of precedence:
 *     ! - (unary)     * / %     + -     < <= > >=     == !=     &&     ||
 * && and || evaluate their right side only when the left one does not decide. A problem matches
 * when the result is not 0. */
#ifndef LB_FILTER_H
#define LB_FILTER_H

#include "api/problem.h"

/* Checks the syntax of an expression. LB_INVALID: err quotes the expression and says at which
 * column what is allowed. */
enum lb_status lb_filter_check(const char *text, struct lb_error *err);

/* Sets *matches to whether the result of a checked expression for the problem's sizes is not 0.
 * LB_INVALID: a division by zero, or a value beyond 64 bits; err names the operator's column and
 * the sizes. */
enum lb_status lb_filter_matches(const char *text, const struct lb_problem *problem, bool *matches,
                                 struct lb_error *err);
#endif
