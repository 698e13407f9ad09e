/* The expected results of the distinct rows of a problem, from the oracle, and how far the rounded
 * evaluation is from them. None of it depends on the batch size, so it is kept between cases. */
#ifndef LB_EXPECTED_H
#define LB_EXPECTED_H

#include "reference/verify.h"

struct lb_expected {
    struct lb_problem problem; /* batch is rows; the pass is infer or train */
    uint64_t seed;
    size_t rows;      /* R distinct rows (classes) */
    int32_t *lengths; /* [R] descending, of the first LB_INPUT_SETS all T; NULL when not ragged */

    /* Inputs and results in double. After a backward, net.gates are the gradients of the
     * pre-activations. net.weights, cells, between and operand have been freed. */
    struct lb_oracle net;

    struct lb_weights weights; /* canonical, in the dtype, as device/weight_packing.h places them */
    void *weight_storage, **weight_table;

    /* Each [lb_slice_count]: of the rounded evaluation by its arithmetic. Those but for LB_PLAIN
     * are NULL before a result needs them. */
    struct lb_deviation *deviations[LB_ARITHMETICS];
    bool twice; /* the plain ones are the larger ones of two evaluations */
    struct lb_layer_dir_size *layer_dir_sizes; /* [L*D]; NULL without a backward */

    /* Weight gradients of the batch that was asked for last: of its input sets, and of each row
     * once. */
    double *batch_dw;
    int64_t batch; /* 0 where there are none */

    int users;
    struct lb_expected *older; /* in the cache's list */
};

/* Draws that many distinct rows by seed, runs the oracle and the rounded evaluation, and keeps the
 * weight gradients of batches as batch_dw; counts, batches: see lb_expected_gradients.
 * carried_every as in lb_reference_open. LB_OOM. */
enum lb_status lb_expected_create(const struct lb_problem *problem, size_t carried_every,
                                  uint64_t seed, size_t rows, const int32_t *counts, size_t batches,
                                  struct lb_expected **out, struct lb_error *err);
void lb_expected_destroy(struct lb_expected *expected); /* accepts NULL */

/* dw [batches + 1][all weights, as lb_gradient_offset() says]: the weight gradients of batches that
 * have row r counts[i][r] times, counts [batches][R], and last those of each row once. Rows that
 * all batches have equally often are summed first, so that the matrix products are those of one
 * batch. LB_OOM. */
enum lb_status lb_expected_gradients(const struct lb_expected *expected, const int32_t *counts,
                                     size_t batches, double *dw, struct lb_error *err);

#endif
