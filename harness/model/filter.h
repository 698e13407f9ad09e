/* --where: an integer expression over a problem's sizes, compiled once and evaluated per problem.
 *
 *     T*B <= 65536 && (H % 128 == 0 || I != H)
 *
 * Operands are decimal numbers and T B I H L D; operators, as in C from tight to loose:
 *     ! - (unary)     * / %     + -     < <= > >=     == !=     &&     ||
 * && and || leave their right side alone when the left one decides. A non-zero result holds. */
#ifndef LB_FILTER_H
#define LB_FILTER_H

#include "api/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LB_FILTER_MAX_TEXT 512 /* of an expression, with its terminator */
#define LB_FILTER_MAX_CODE 256 /* operands and operators, && and || counting twice */

struct lb_filter_step {
    int code;      /* which operation; where.c's own */
    int column;    /* of its operator or operand in text, from 1 */
    int64_t value; /* a constant, the index of a size, or where a jump goes */
};

/* A postfix program; it owns nothing and may be copied. */
struct lb_filter {
    char text[LB_FILTER_MAX_TEXT];
    struct lb_filter_step steps[LB_FILTER_MAX_CODE];
    size_t count;
};

/* LB_INVALID names the expression, the column, and what is allowed there. */
enum lb_status lb_filter_compile(const char *text, struct lb_filter *out, struct lb_error *err);

/* *holds: whether the expression holds for the problem's sizes. LB_INVALID on division by zero and
 * on a result beyond 64 bits; err names the operator's column and the sizes. */
enum lb_status lb_filter_matches(const struct lb_filter *where, const struct lb_problem *problem,
                                 bool *holds, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
