/* How far a result may be from the oracle. */
#ifndef LB_TOLERANCE_H
#define LB_TOLERANCE_H

#include "reference/slice.h"

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

/* What a slice may be off by: in its worst element, and in Euclidean norm. */
struct lb_tolerance {
    double max_abs, norm;
};

/* What a tolerance follows from, besides the slice that it is for. */
struct lb_tolerance_basis {
    enum lb_dtype dtype;
    const struct lb_layer_dir_size *sizes; /* [L*D]; read for gradients only, NULL without any */
    double largest_count; /* how many batch rows share the most frequent row, at least 1 */
};

/* The tolerance of one slice. rounded: how far the rounded evaluation (rounded_lstm.h) is off over
 * the same slice, with each row counted once. now: the result that is looked at, of which only the
 * magnitude of its expected values is read. TOLERANCES.md has the formula. */
struct lb_tolerance lb_tolerance_of(const struct lb_tolerance_basis *basis,
                                    const struct lb_slice *slice,
                                    const struct lb_deviation *rounded,
                                    const struct lb_deviation *now);

#endif
