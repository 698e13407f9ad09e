/* Slices of results: the parts of a result that are compared one by one with expected values, and
 * how far a slice is from them.
 *
 * A slice is a tensor, or a part of one whose values have a magnitude of their own and so get a
 * tolerance of their own: one layer and direction of a state, one gate of a weight gradient. */
#ifndef LB_SLICE_H
#define LB_SLICE_H

#include "reference/case_tensors.h"
#include "reference/oracle.h"

struct lb_slice {
    const char *tensor; /* "y", "dw_ih", ... */
    size_t layer_dir;   /* l*D + d; 0 where the tensor has no such index */
    int gate;           /* 0..3 (i f g o) of weight gradients, 4 of c's in layernorm, else -1 */
    bool gradient;      /* produced by backward */
    bool summed;        /* over steps and rows: a weight gradient */

    /* result [steps, batch, width] in the problem's dtype. Batch row b is compared with row
     * class_of[b] of expected [steps, rows, width]; with row b where class_of is NULL. */
    size_t steps, batch, rows, width;
    const void *result;
    const double *expected;
    const int32_t *class_of;
};

/* Results, and the expected values of the same problem, from which slices are cut. */
struct lb_slice_source {
    const struct lb_oracle *oracle; /* after its passes; its batch is the number of rows */
    const double *dw;               /* weight gradients, see lb_gradient_offset(); NULL: none */
    const struct lb_results *results;
    size_t batch;            /* batch rows of the results */
    const int32_t *class_of; /* [batch]; NULL: batch row b is row b */
};

/* How far a result is from the expected values over one slice. */
struct lb_deviation {
    double max_abs;          /* largest |result - expected|; NaN is passed over */
    double sum_squares;      /* of result - expected; NaN or infinite where a result is */
    double expected_max;     /* largest |expected| */
    double expected_squares; /* sum of expected^2 */
    size_t count;            /* elements */
};

/* Slices of a problem's results: those of forward first, then those of backward. */
size_t lb_slice_count(const struct lb_problem *problem);

/* Slice number index, below lb_slice_count of the source's problem. Those of backward need dw and
 * the gradients of the results. */
struct lb_slice lb_slice_at(const struct lb_slice_source *source, size_t index);

/* Compares every element of a slice whose results are of dtype. */
struct lb_deviation lb_slice_measure(const struct lb_slice *slice, enum lb_dtype dtype);

/* One element of a slice. */
struct lb_slice_element {
    size_t step, batch_row, column;
    double value, expected;
};

/* The first element that is not finite, or else the one that is farthest from its expected value.
 */
struct lb_slice_element lb_slice_worst_element(const struct lb_slice *slice, enum lb_dtype dtype);

#endif
