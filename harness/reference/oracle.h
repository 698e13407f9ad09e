/* The oracle: the LSTM's forward and backward passes in double precision. */
#ifndef LB_ORACLE_H
#define LB_ORACLE_H

#include "api/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

#define real double
#define LSTM lb_oracle
#include "reference/lstm_struct.inc"
#undef LSTM
#undef real

/* Elements of each array of struct lb_oracle, for its problem's batch, layers and pass. */
struct lb_lstm_counts {
    size_t weights, x, state, y, gates, cells, between, operand; /* state: h0, c0 and all alike */
};

struct lb_lstm_counts lb_lstm_counts(const struct lb_problem *problem);

/* Packs one entry's weights into oracle->weights. All in double: w_ih [4H, I_l], w_hh [4H, H],
 * b_ih [4H], b_hh [4H]. */
void lb_oracle_pack(const struct lb_oracle *oracle, size_t entry, const double *w_ih,
                    const double *w_hh, const double *b_ih, const double *b_hh);

/* x, h0, c0 -> y, hn, cn. When the problem trains, gates and cells keep what backward reads. */
void lb_oracle_forward(const struct lb_oracle *oracle);

/* After a forward, once: dy, dhn, dcn -> dx, dh0, dc0; gates become the gradients of the
 * pre-activations, which the weight gradients are made of. */
void lb_oracle_backward(const struct lb_oracle *oracle);

/* After a backward: one entry's weight gradients, overwritten: dw_ih [4H, I_l], dw_hh [4H, H],
 * db [4H] (that of b_ih and of b_hh alike). Row r counts counts[r] times; counts NULL: once. */
void lb_oracle_weight_gradients(const struct lb_oracle *oracle, size_t entry, const int32_t *counts,
                                double *dw_ih, double *dw_hh, double *db);

#ifdef __cplusplus
}
#endif
#endif
