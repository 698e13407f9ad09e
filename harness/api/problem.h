/* The LSTM to compute: its sizes, precision and pass, and what follows from them (element counts,
 * flops, bytes).
 *
 * T is the sequence length, B the batch, I the input size, H the hidden size, L the layers, D the
 * directions. Gates are stored in the order i, f, g, o. Layer l has the input size I_l, which is I
 * for l = 0 and D*H for the others, and each direction of it computes, with s the sigmoid,
 *     w_ih [4H, I_l]   w_hh [4H, H]   b_ih [4H]   b_hh [4H]
 *     a_t = w_ih x_t + b_ih + w_hh h_{t-1} + b_hh        a = [ai af ag ao]
 *     i = s(ai)  f = s(af)  g = tanh(ag)  o = s(ao)      c_t = f c_{t-1} + i g    h_t = o tanh(c_t)
 *     x [T, B, I]   y [T, B, D*H]   h0, c0, hn, cn [L*D, B, H] */
#ifndef LB_PROBLEM_H
#define LB_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dtype.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum lb_pass {
    LB_INFER,    /* forward; nothing is kept for a backward pass */
    LB_FORWARD,  /* forward in training mode: fills the reserve that backward reads */
    LB_BACKWARD, /* dy, dhn, dcn -> dx, dh0, dc0, dW, db; each call follows an untimed forward */
    LB_TRAIN,    /* forward, then backward, timed together */
    LB_PASS_COUNT
};

enum lb_math {
    LB_IEEE, /* f32 and f64 multiply in their own precision; f16 and bf16 sum in f32 */
    LB_TF32, /* f32 storage; operands of matrix products are rounded to TF32 */
    LB_HALF, /* f32 storage; operands of matrix products may be rounded to f16 */
    LB_MATH_COUNT
};

enum lb_act {
    LB_ACT_TANH, /* the standard cell */
    LB_ACT_RELU, /* g = relu(ag), h = o relu(c); i, f and o stay sigmoids, as in Keras'
                    activation="relu" */
    LB_ACT_COUNT
};

struct lb_problem {
    int64_t seq_len, batch, input, hidden; /* T, B, I, H; each at least 1 */
    int64_t layers;                        /* L, at least 1 */
    int64_t directions;                    /* D, 1 or 2 */
    enum lb_dtype dtype;                   /* storage of x, y, h and weights */
    enum lb_pass pass;
    enum lb_math math;
    enum lb_act act;
    bool ragged; /* row b has lengths[b] <= T steps, lengths sorted descending, lengths[0] = T */
};

const char *lb_pass_name(enum lb_pass pass); /* "infer", "forward", "backward", "train" */
const char *lb_math_name(enum lb_math math); /* "ieee", "tf32", "half" */
const char *lb_act_name(enum lb_act act);    /* "tanh", "relu" */

/* True for forward, backward and train: the forward pass must keep what a backward pass needs. */
bool lb_trains(const struct lb_problem *problem);

/* True for backward and train, which compute gradients. */
bool lb_has_backward(const struct lb_problem *problem);

/* I_l, the input size of layer l: I for l = 0, else D*H. */
int64_t lb_layer_input(const struct lb_problem *problem, int64_t layer);

/* L*D. Element l*D + d of tables of weights, and of h0, c0, hn and cn, is layer l, direction d. */
size_t lb_layer_dir_count(const struct lb_problem *problem);

/* Element counts of a problem's tensors. */
struct lb_counts {
    size_t x;       /* T*B*I: x, dx */
    size_t y;       /* T*B*D*H: y, dy */
    size_t state;   /* L*D*B*H: h0, c0, hn, cn and their gradients */
    size_t weights; /* all w_ih, w_hh, b_ih, b_hh of all layers and directions */
};

/* Computes the counts without overflow. LB_OOM when the tensors, their gradients and the oracle's
 * copies of them take more bytes than 64 bits can count. */
enum lb_status lb_problem_counts(const struct lb_problem *problem, struct lb_counts *counts,
                                 struct lb_error *err);

/* Flops of one timed call in its matrix products alone, two per multiply-add: forward takes
 * 2 T B 4H (I_l + H) per layer and direction, backward twice as many, train three times as many.
 * Rows of a ragged batch count with the full length T. */
double lb_problem_flops(const struct lb_problem *problem);

/* The least number of bytes that one timed call must move: each of its passes reads every input
 * once and writes every output once. Rows of a ragged batch count with the full length T. 0 where
 * lb_problem_counts fails. */
double lb_problem_bytes(const struct lb_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
