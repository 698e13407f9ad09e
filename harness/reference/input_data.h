/* The data of a problem: distinct rows (classes) drawn by seed, and their dealing to a batch. */
#ifndef LB_INPUT_DATA_H
#define LB_INPUT_DATA_H

#include "api/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is drawn. Each is a family of random streams of its own. */
enum lb_drawn {
    LB_DRAWN_X,  /* [T, R, I] */
    LB_DRAWN_H0, /* [L*D, R, H], as the next */
    LB_DRAWN_C0,
    LB_DRAWN_DY,  /* [T, R, D*H] */
    LB_DRAWN_DHN, /* [L*D, R, H], as the next */
    LB_DRAWN_DCN,
    LB_DRAWN_W_IH, /* [4H, I_l] */
    LB_DRAWN_W_HH, /* [4H, H] */
    LB_DRAWN_B_IH, /* [4H], as the next */
    LB_DRAWN_B_HH,
    LB_DRAWN_LENGTHS,
    LB_DRAWN_PLACES
};

/* Number R of distinct rows: the batch itself while the oracle can afford it, else a few. */
size_t lb_class_count(const struct lb_problem *problem);

/* lengths [rows], descending, lengths[0] = T, all from 1 to T; spread evenly over that range. */
void lb_draw_lengths(const struct lb_problem *problem, uint64_t seed, size_t rows,
                     int32_t *lengths);

/* Rows of x, h0, c0, dy, dhn or dcn, in the shape given above with R = rows, rounded to the dtype.
 * Row k's numbers depend neither on rows nor on the batch. */
void lb_draw_rows(const struct lb_problem *problem, uint64_t seed, enum lb_drawn what, size_t rows,
                  double *values);

/* w_ih, w_hh, b_ih or b_hh of entry l*D + d, rounded to the dtype. */
void lb_draw_weights(const struct lb_problem *problem, uint64_t seed, enum lb_drawn what,
                     size_t entry, double *values);

/* Deals rows to the B places of the batch: class_of [B] in 0 .. rows - 1, every row used, at random
 * by seed; ascending when the problem is ragged, so that lengths descend. The identity where rows
 * is the batch. counts [rows]: how many places each row has. */
void lb_deal(const struct lb_problem *problem, uint64_t seed, size_t rows, int32_t *class_of,
             int32_t *counts);

#ifdef __cplusplus
}
#endif
#endif
