/* The reference of a problem: inputs drawn by seed, the expected results of the double-precision
 * oracle, and the comparison of an implementation's results with them.
 *
 * Inputs and weights are drawn in f32 and rounded once to the dtype, so every implementation and
 * the oracle see the same numbers. A big batch is dealt from a few distinct rows (classes): the
 * oracle computes the few, every row of a result is compared with its class, and weight gradients
 * are the count-weighted sums over classes. There are LB_INPUT_SETS sets of inputs, with the
 * results that are expected of each; input_data.h says how they differ. */
#ifndef LB_REFERENCE_H
#define LB_REFERENCE_H

#include "reference/case_tensors.h"
#include "reference/input_data.h"
#include "reference/verify.h"

struct lb_reference; /* inputs and expected results of one problem, for one batch size */

/* Expected results of recent problems, shared by all batch sizes. Zeroed but for max_bytes, it is
 * empty. */
struct lb_reference_cache {
    struct lb_expected *newest; /* of a list; those in use are never dropped */
    size_t max_bytes;           /* beyond which the oldest unused results are dropped */
    size_t computed;            /* how many times results were computed, not found */
};

/* Drops all results, and lets it keep none. */
void lb_reference_cache_clear(struct lb_reference_cache *cache);

/* Draws the inputs, and runs the oracle unless the cache (NULL: none) has the expected results;
 * without an oracle the cache is not used, and lb_reference_check must not be called. The pass
 * matters only by whether it has a backward. References of one cache that are open at once have the
 * same batch size where they are of the same problem. carried_every: steps per call of a stream
 * whose calls make up the problem: after as many, the oracle rounds h and c to the dtype, as the
 * tensors that carry them do; 0: it is no stream. LB_OOM; LB_INVALID, LB_UNSUPPORTED or LB_IO where
 * given files of weights or inputs can't serve. */
enum lb_status lb_reference_open(struct lb_reference_cache *cache, const struct lb_problem *problem,
                                 size_t carried_every, uint64_t seed, bool with_oracle,
                                 struct lb_reference **out, struct lb_error *err);
void lb_reference_close(struct lb_reference *reference); /* accepts NULL */

/* The inputs of all B batch rows of a set; valid until close. Weights and lengths are those of all
 * sets. */
const struct lb_inputs *lb_reference_inputs(const struct lb_reference *reference, int set);

/* Whether the lengths are still those that were drawn. */
bool lb_reference_lengths_intact(const struct lb_reference *reference);

/* An upper bound of the host bytes that open and check take, known before anything is allocated.
 * 0 where lb_problem_counts fails. */
double lb_reference_bytes(const struct lb_problem *problem);

/* Compares every element of every tensor that the results of an input set hold, with tolerances for
 * an implementation of these traits (impl.h). */
void lb_reference_check(const struct lb_reference *reference, int set,
                        const struct lb_results *results, uint32_t traits, struct lb_check *check);

/* What lb_reference_scheme_error may be: f32 rounds in the cell, over any number of steps. */
#define LB_INT8_ROUNDING 1e-5

/* Of int8 with one layer: *error is how far the results of a set are, at most, from the evaluation
 * of int8.h in double precision, where each step reads the h that the results have for the step
 * before it: a step's integers then are those of the results, unless the implementation quantises
 * in another way. One batch row of each class is compared. LB_OOM. */
enum lb_status lb_reference_scheme_error(const struct lb_reference *reference, int set,
                                         const struct lb_results *results, double *error,
                                         struct lb_error *err);

/* ---- Within a reference. -------------------------------------------------------------------- */

/* The expected results of the distinct rows of a problem, from the oracle, and how far the rounded
 * evaluation is from them. None of it depends on the batch size, so it is kept between cases. */
struct lb_expected {
    struct lb_problem problem; /* batch is rows; the pass is infer or train */
    uint64_t seed;
    unsigned given;   /* lb_given_files_version() when they were drawn */
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
