/* Filters, which --where gives: an integer expression over a problem's sizes, compiled once and
 * evaluated for each problem.
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

#ifdef __cplusplus
extern "C" {
#endif

#define LB_FILTER_MAX_TEXT 512 /* bytes of an expression and its terminator */
#define LB_FILTER_MAX_CODE 256 /* operands and operators; && and || count twice */

struct lb_filter_step {
    int code;      /* the operation; its values are private to filter.c */
    int column;    /* position of its operator or operand in text, from 1 */
    int64_t value; /* a constant, the index of a size, or the target of a jump */
};

/* A compiled expression in postfix order. It owns nothing and may be copied. */
struct lb_filter {
    char text[LB_FILTER_MAX_TEXT];
    struct lb_filter_step steps[LB_FILTER_MAX_CODE];
    size_t count;
};

/* Compiles an expression. LB_INVALID: err quotes the expression and says at which column what is
 * allowed. */
enum lb_status lb_filter_compile(const char *text, struct lb_filter *out, struct lb_error *err);

/* Sets *matches to whether the filter's result for the problem's sizes is not 0. LB_INVALID: a
 * division by zero, or a value beyond 64 bits; err names the operator's column and the sizes. */
enum lb_status lb_filter_matches(const struct lb_filter *filter, const struct lb_problem *problem,
                                 bool *matches, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
