/* The tensors of a problem, and its input data: distinct rows (classes) drawn by seed, and how a
 * batch is dealt from them. */
#ifndef LB_INPUT_DATA_H
#define LB_INPUT_DATA_H

#include "model/tensor_files.h"

#ifdef __cplusplus
extern "C" {
#endif

enum lb_tensor {
    LB_X, /* inputs of forward */
    LB_H0,
    LB_C0,
    LB_MASK, /* of the cell recurrent-dropout alone; backward reads it too */
    LB_DY,   /* inputs of backward */
    LB_DHN,
    LB_DCN,
    LB_Y, /* outputs of forward */
    LB_HN,
    LB_CN,
    LB_DX, /* outputs of backward */
    LB_DH0,
    LB_DC0,
    LB_TENSOR_COUNT
};

const char *lb_tensor_name(enum lb_tensor tensor); /* "x", "h0", ... */

/* Whether the problem's pass and cell have the tensor. */
bool lb_has_tensor(const struct lb_problem *problem, enum lb_tensor tensor);

/* The shape of a tensor is [*steps, B, *width]. *steps is T of x [T, B, I] and y [T, B, D*P], of dx
 * and dy, and L*D of all others: [L*D, B, P] of h, [L*D, B, H] of c and of the mask. */
void lb_tensor_shape(const struct lb_problem *problem, enum lb_tensor tensor, size_t *steps,
                     size_t *width);

/* Elements of a tensor; 0 where the problem has none. */
size_t lb_tensor_elements(const struct lb_problem *problem, enum lb_tensor tensor);

/* The timed calls of a case read one of two sets of inputs, so that no call can know the results of
 * the call before it. The third set, LB_NEW_SET, is read by one call alone: an implementation that
 * looks up what it remembers does not know it. The sets share weights and lengths. */
enum { LB_TIMED_SETS = 2, LB_NEW_SET = LB_TIMED_SETS, LB_INPUT_SETS };

/* Number of distinct rows of one set: the whole batch while the oracle takes milliseconds or x is
 * given by a file, else 4, or 8 of a ragged batch. */
size_t lb_class_count(const struct lb_problem *problem);

/* Number R of distinct rows of all sets together. That is one row more than lb_class_count or, for
 * a single row and ragged lengths, two rows, so that the oracle costs little more for three sets
 * than for one. */
size_t lb_row_count(const struct lb_problem *problem);

/* Draws lengths [rows], descending, lengths[0] = T, spread evenly over 1 .. T. */
void lb_draw_lengths(const struct lb_problem *problem, uint64_t seed, size_t rows,
                     int32_t *lengths);

/* Draws the rows of an input tensor, [steps, rows, width], rounded to the dtype. The numbers of a
 * row depend neither on rows nor on the batch. The mask is 0 with probability 0.2, else 1.25. With
 * the file of lb_inputs_given, which must fit the problem, set 0 has its x, and zeros as h0 and c0;
 * rows is lb_row_count. */
void lb_draw_rows(const struct lb_problem *problem, uint64_t seed, enum lb_tensor what, size_t rows,
                  double *values);

/* Draws the weights of layer_dir l*D + d, or takes them from the file of lb_weights_given, which
 * must fit the problem; rounded to the dtype. */
void lb_draw_weights(const struct lb_problem *problem, uint64_t seed, enum lb_weight what,
                     size_t layer_dir, double *values);

/* Deals the R rows (lb_row_count) of all sets to the batch rows of one set: batch row b repeats
 * row class_of[b], and counts[r] batch rows of this set repeat row r; counts [R]. class_of [B]
 * ascends when the problem is ragged, so that lengths descend.
 * - When every row is distinct, set s has the B rows from row s on; row 0 follows the last.
 * - When the batch is dealt, each set is dealt by a seed of its own, with other counts, and has
 * each of its rows.
 * - When it is ragged, rows 0 to 2 have the length T, and set s has row s of these three. All other
 *   batch rows are the same in all sets, because the lengths are. */
void lb_deal_set(const struct lb_problem *problem, uint64_t seed, int set, int32_t *class_of,
                 int32_t *counts);

#ifdef __cplusplus
}
#endif
#endif
