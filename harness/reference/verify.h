/* The comparison of a result with the expected one, slice by slice, and how far each slice may be
 * off (TOLERANCES.md).
 *
 * A slice is a tensor, or a part of one whose values have a magnitude of their own and so get a
 * tolerance of their own: one layer and direction of a state, one gate of a weight gradient. */
#ifndef LB_VERIFY_H
#define LB_VERIFY_H

#include "reference/case_tensors.h"
#include "reference/oracle.h"

/* How far a result is from the expected values over one slice. */
struct lb_deviation {
    double max_abs;          /* largest |result - expected|; NaN is passed over */
    double sum_squares;      /* of result - expected; NaN or infinite where a result is */
    double expected_max;     /* largest |expected| */
    double expected_squares; /* sum of expected^2 */
    size_t count;            /* elements */
};

/* Root mean squares over the steps that one layer and direction takes: the magnitudes that its
 * rounding errors are proportional to. */
struct lb_layer_dir_size {
    double steps;     /* how many steps all rows take together: the sum of their lengths */
    double gradients; /* of the gradients of pre-activations */
    double input;     /* of what the layer reads */
    double state;     /* of h before the step */
};

/* Measures every layer and direction of an oracle after its backward: sizes [L*D]. */
void lb_measure_layer_dirs(const struct lb_oracle *oracle, struct lb_layer_dir_size *sizes);

/* How many slices the results of the problem have. */
size_t lb_slice_count(const struct lb_problem *problem);

/* How far results [R rows] of the oracle's problem are from the oracle's own, after its passes:
 * deviations [lb_slice_count]. dw: weight gradients, see lb_gradient_offset(); NULL: none. */
void lb_measure_results(const struct lb_oracle *oracle, const double *dw,
                        const struct lb_results *results, struct lb_deviation *deviations);

/* Whether the problem is computed in f32 or f64, in their own precision. */
bool lb_is_wide(const struct lb_problem *problem);

/* Outcome of a comparison. Errors are the largest over all tensors, where each layer, direction and
 * gate counts as a tensor of its own; they are NaN when a result is not finite. */
struct lb_check {
    bool right;         /* every slice is within its tolerance */
    bool coarse;        /* not right, but no farther off than the coarse evaluation's tolerance */
    bool in_gradient;   /* when wrong: everything that forward produced is right */
    double err_max_abs; /* |result - expected| */
    double err_max_rel; /* that, over the tensor's largest |expected| */
    double err_norm;    /* |result - expected| / |expected|, Euclidean, over a whole tensor */
    double gradient_err_norm; /* that of gradients alone; 0 where none are compared */
    double tolerance_used;    /* the error over what is allowed, of the worst element or in norm */
    /* The error in norm over that of the rounded evaluation, of all outputs together or of all
     * gradients, whichever is larger; NaN when a result is not finite. Above usual_error_ratio the
     * results have less precision than the dtype and math of the problem promise. */
    double error_ratio, usual_error_ratio;
    char reason[256]; /* when wrong: tensor, index, value, expected value, what is allowed */
};

/* A result, and what it is compared with. */
struct lb_comparison {
    const struct lb_oracle *oracle;        /* after its passes; its batch is the number of rows */
    const struct lb_deviation *deviations; /* [lb_slice_count] of the rounded evaluation */
    enum lb_arithmetic arithmetic;         /* of the deviations */
    const struct lb_layer_dir_size *layer_dir_sizes; /* [L*D]; NULL without a backward */
    const struct lb_results *results;
    size_t batch;            /* batch rows of the results */
    const int32_t *class_of; /* [batch] the row that a batch row repeats; NULL: row b */
    const int32_t *counts;   /* [rows] batch rows that repeat a row; NULL: one each */
    const double *dw;        /* weight gradients of that batch; NULL: no backward is compared */
};

/* Compares all slices with the tolerances that follow from the rounded evaluation's deviations. */
void lb_compare(const struct lb_comparison *comparison, struct lb_check *check);

#endif
