/* The oracle's answer for the distinct rows of a problem, and how exact a result can be expected
 * to be: what does not depend on the batch size, and is kept between cases. */
#ifndef LB_EXPECTED_H
#define LB_EXPECTED_H

#include "reference/oracle.h"
#include "reference/reference.h"

/* How far a result is from the oracle over one piece of a tensor (verify.h). */
struct lb_deviation {
    double max_abs;       /* largest |result - right| */
    double sum_squares;   /* of result - right; NaN or infinite where a result is not finite */
    double right_max;     /* largest |right| */
    double right_squares; /* sum of right^2 */
    size_t count;         /* elements */
};

/* Root mean squares over the steps that one layer and direction takes. */
struct lb_layer_dir_size {
    double steps;     /* how many: sum of lengths */
    double gradients; /* of the gradients of pre-activations */
    double input;     /* of what the layer reads */
    double state;     /* of h before the step */
};

struct lb_expected {
    struct lb_problem problem; /* batch is rows; the pass is infer or train */
    uint64_t seed;
    size_t rows;      /* R distinct rows (classes) */
    int32_t *lengths; /* [R] descending; NULL when not ragged */

    /* Inputs and results in double. After a backward, net.gates are the gradients of the
     * pre-activations. net.weights, cells, between and operand are gone. */
    struct lb_oracle net;
    double *dw; /* weight gradients, each row counted once; see lb_gradient_offset(). NULL: none */

    struct lb_weights weights; /* canonical, in the dtype */
    void *weight_storage;
    const void **weight_table;

    struct lb_deviation *deviations;           /* [lb_slice_count] of the faithful evaluation */
    struct lb_layer_dir_size *layer_dir_sizes; /* [L*D]; NULL without a backward */

    /* Weight gradients of the batch that was asked for last. */
    double *batch_dw;
    int64_t batch;
    size_t batch_bytes; /* 0 where there are none */

    size_t bytes; /* of all else */
    int users;
    struct lb_expected *older; /* in the cache's list */
};

/* Elements of weight gradients before entry's: each entry has dw_ih [4H, I_l], dw_hh [4H, H] and
 * db [4H], one after the other. The whole has entry = L*D. */
size_t lb_gradient_offset(const struct lb_problem *problem, size_t entry);

/* Draws rows rows by seed, runs the oracle and the faithful evaluation. LB_OOM. */
enum lb_status lb_expected_create(const struct lb_problem *problem, uint64_t seed, size_t rows,
                                  struct lb_expected **out, struct lb_error *err);
void lb_expected_destroy(struct lb_expected *answer); /* accepts NULL */

/* Weight gradients where row r counts counts[r] times, into dw as above. LB_OOM. */
enum lb_status lb_expected_gradients(const struct lb_expected *answer, const int32_t *counts,
                                     double *dw, struct lb_error *err);

/* Bytes that creating an answer takes at its height, and those of one gradients array. */
double lb_expected_bytes(const struct lb_problem *problem, size_t rows);

#endif
