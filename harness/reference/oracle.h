/* The oracle: the LSTM's forward and backward passes in double precision. */
#ifndef LB_ORACLE_H
#define LB_ORACLE_H

#include "reference/input_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the rounded evaluation rounds: see lb_rounded_evaluate. */
enum lb_arithmetic { LB_PLAIN, LB_COARSE, LB_BY_OPERATION, LB_SEVEN_BITS, LB_ARITHMETICS };

#define real double
#define LSTM lb_oracle
#include "reference/lstm_struct.inc"
#undef LSTM
#undef real

/* Elements of each array of struct lb_oracle, for the batch, layers and pass of its problem. Sizes
 * that no memory could hold are capped at 2^56, so that sums and byte counts of them do not
 * overflow. */
struct lb_lstm_counts {
    size_t weights, x, y, gates, cells, between, operand;
    size_t state; /* c0, and each other array of shape [L*D, R, H] */
    size_t h;     /* h0, and each other array of shape [L*D, R, P] */
    size_t mask, scratch, kept, dkept, norm;
};

struct lb_lstm_counts lb_lstm_counts(const struct lb_problem *problem);

/* One array of such a struct. */
struct lb_lstm_array {
    size_t offset; /* of its pointer in the struct, whatever the type `real` is */
    size_t count;  /* elements; 0: the problem has no such array, and the pointer is NULL */
    int drawn;     /* enum lb_tensor of an input, else -1 */
};

enum { LB_LSTM_ARRAYS = 22 };

struct lb_lstm_arrays {
    struct lb_lstm_array at[LB_LSTM_ARRAYS];
};

struct lb_lstm_arrays lb_lstm_arrays(const struct lb_problem *problem);

/* What the pointer to the array is in net, a struct of lstm_struct.inc. */
void *lb_lstm_at(const void *net, const struct lb_lstm_array *array);

/* Allocates all arrays for the problem of net, zeroed. LB_OOM; then none stays allocated. */
enum lb_status lb_lstm_allocate(void *net, size_t element_bytes, struct lb_error *err);

/* Frees all arrays, and sets their pointers to NULL. */
void lb_lstm_free(void *net);

/* Where the weight gradients of layer_dir (l*D + d) start in an array of all of them, in elements:
 * each layer and direction has dw_ih [4H, I_l], dw_hh [4H, P], db [4H], which b_ih and b_hh share,
 * and dw_cell, one after the other. The offset of layer_dir = L*D is the size of the array. */
size_t lb_gradient_offset(const struct lb_problem *problem, size_t layer_dir);

/* Packs the weights of one layer and direction into oracle->weights. weights: w_ih [4H, I_l],
 * w_hh [4H, P], b_ih [4H], b_hh [4H] and w_cell, one after the other. */
void lb_oracle_pack(const struct lb_oracle *oracle, size_t layer_dir, const double *weights);

/* x, h0, c0 -> y, hn, cn. When the problem trains, gates and cells keep what backward reads. */
void lb_oracle_forward(const struct lb_oracle *oracle);

/* To be called once after each forward: dy, dhn, dcn -> dx, dh0, dc0. The gates are overwritten by
 * the gradients of the pre-activations, from which the weight gradients follow. */
void lb_oracle_backward(const struct lb_oracle *oracle);

/* After a backward: writes the weight gradients of one layer and direction to dw, in the order of
 * lb_gradient_offset(). They are the sums over the rows that `rows` [R] has, or over all where it
 * is NULL. Needs oracle->operand, and for peephole oracle->cells. */
void lb_oracle_weight_gradients(const struct lb_oracle *oracle, size_t layer_dir, const bool *rows,
                                double *dw);

#ifdef __cplusplus
}
#endif
#endif
