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

#define LB_FILTER_MAX_TEXT 512 /* bytes of an expression and its terminator */

/* An expression without errors of syntax. */
struct lb_filter {
    char text[LB_FILTER_MAX_TEXT];
};

/* Checks the syntax of an expression and copies it. LB_INVALID: err quotes the expression and says
 * at which column what is allowed. */
enum lb_status lb_filter_check(const char *text, struct lb_filter *out, struct lb_error *err);

/* Sets *matches to whether the filter's result for the problem's sizes is not 0. LB_INVALID: a
 * division by zero, or a value beyond 64 bits; err names the operator's column and the sizes. */
enum lb_status lb_filter_matches(const struct lb_filter *filter, const struct lb_problem *problem,
                                 bool *matches, struct lb_error *err);
#endif
