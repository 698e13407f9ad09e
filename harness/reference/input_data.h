/* The input data of a problem: distinct rows (classes) drawn by seed, and how a batch is dealt from
 * them. */
#ifndef LB_INPUT_DATA_H
#define LB_INPUT_DATA_H

#include "api/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tensors that are drawn, each from random streams of its own. R: number of distinct rows. */
enum lb_drawn {
    LB_DRAWN_X,    /* [T, R, I] */
    LB_DRAWN_H0,   /* [L*D, R, P], where P is the size of h: H but for the cell projection */
    LB_DRAWN_C0,   /* [L*D, R, H] */
    LB_DRAWN_DY,   /* [T, R, D*P] */
    LB_DRAWN_DHN,  /* [L*D, R, P] */
    LB_DRAWN_DCN,  /* [L*D, R, H] */
    LB_DRAWN_W_IH, /* [4H, I_l] */
    LB_DRAWN_W_HH, /* [4H, P] */
    LB_DRAWN_B_IH, /* [4H] */
    LB_DRAWN_B_HH, /* [4H] */
    LB_DRAWN_LENGTHS,
    LB_DRAWN_BATCH, /* which row each batch row repeats */
    LB_DRAWN_MASK,  /* [L*D, R, H] of recurrent-dropout: 0 with probability 0.2, else 1.25 */
    LB_DRAWN_W_CELL /* the weights that only a cell other than the standard one has */
};

/* The timed calls of a case read one of two sets of inputs, so that no call can know the results of
 * the call before it. The third set, LB_NEW_SET, is read by no timed call: an implementation that
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

/* Draws x, h0, c0, mask, dy, dhn or dcn in the shape given above with R = rows, rounded to the
 * dtype. The numbers of a row depend neither on rows nor on the batch. With the file of
 * lb_inputs_given, which must fit the problem, set 0 has its x, and zeros as h0 and c0; rows is
 * lb_row_count. */
void lb_draw_rows(const struct lb_problem *problem, uint64_t seed, enum lb_drawn what, size_t rows,
                  double *values);

/* Draws w_ih, w_hh, b_ih, b_hh or w_cell of layer_dir l*D + d, or takes them from the file of
 * lb_weights_given, which must fit the problem; rounded to the dtype. */
void lb_draw_weights(const struct lb_problem *problem, uint64_t seed, enum lb_drawn what,
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
