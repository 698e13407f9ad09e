/* The comparison of a result with the oracle's answer, piece by piece. */
#ifndef LB_VERIFY_H
#define LB_VERIFY_H

#include "reference/expected.h"

/* What is compared with what: a tensor, or the part of it that has a size of its own and so a
 * tolerance of its own: one layer and direction of a state, one gate of a weight gradient. */
struct lb_slice {
    const char *tensor; /* "y", "dw_ih", ... */
    size_t entry;       /* l*D + d; 0 where the tensor has no such index */
    int gate;           /* 0..3 of weight gradients, else -1 */
    bool gradient;      /* a result of backward */
    bool summed;        /* over steps and rows: a weight gradient */

    /* result [steps, places, width] in the problem's dtype; place b of it is to be row class_of[b]
     * of right [steps, rows, width]; class_of NULL: row b. */
    size_t steps, places, rows, width;
    const void *result;
    const double *right;
    const int32_t *class_of;
};

/* A result, and what it is to be compared with. */
struct lb_comparison {
    const struct lb_expected *answer;
    const struct lb_results *results;
    size_t batch;            /* places of the results */
    const int32_t *class_of; /* [batch]; NULL: place b is row b */
    const int32_t *counts;   /* [rows] how many places a row has; NULL: one */
    const double *dw;        /* weight gradients of that batch; NULL: no backward */
};

/* Pieces of a problem that has a backward, or not. */
size_t lb_slice_count(const struct lb_problem *problem);
struct lb_slice lb_slice_at(const struct lb_comparison *comparison, size_t index);

/* How far a piece is from what it should be. */
struct lb_deviation lb_slice_measure(const struct lb_slice *piece, enum lb_dtype dtype);

/* Compares all pieces with the tolerances that follow from the answer's deviations. */
void lb_compare(const struct lb_comparison *comparison, struct lb_check *check);

#endif
