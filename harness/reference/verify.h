/* The comparison of a result with the expected one, slice by slice. */
#ifndef LB_VERIFY_H
#define LB_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_expected;
struct lb_results;

/* Outcome of a comparison. Errors are the largest over all tensors, where each layer, direction and
 * gate counts as a tensor of its own; they are NaN when a result is not finite. */
struct lb_check {
    bool right;               /* every slice is within its tolerance */
    bool in_gradient;         /* when wrong: everything that forward produced is right */
    double err_max_abs;       /* |result - expected| */
    double err_max_rel;       /* that, over the tensor's largest |expected| */
    double err_norm;          /* |result - expected| / |expected|, Euclidean, over a whole tensor */
    double gradient_err_norm; /* that of gradients alone; 0 where none are compared */
    double tolerance_used;    /* the error over what is allowed, of the worst element or in norm */
    char reason[256]; /* when wrong: tensor, index, value, expected value, what is allowed */
};

/* A result, and what it is compared with. */
struct lb_comparison {
    const struct lb_expected *expected;
    const struct lb_results *results;
    size_t batch;            /* batch rows of the results */
    const int32_t *class_of; /* [batch] the row that a batch row repeats; NULL: row b */
    const int32_t *counts;   /* [rows] batch rows that repeat a row; NULL: one each */
    const double *dw;        /* weight gradients of that batch; NULL: no backward is compared */
};

/* Compares all slices with the tolerances that follow from the rounded evaluation's deviations. */
void lb_compare(const struct lb_comparison *comparison, struct lb_check *check);

#endif
