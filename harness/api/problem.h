/* The LSTM to compute: its sizes, precision and pass, and the resulting element counts, flops and
 * bytes.
 *
 * T is the sequence length, B the batch, I the input size, H the hidden size, L the number of
 * layers, D the number of directions. Gates are stored in the order i, f, g, o. Layer l has the
 * input size I_l, which is I for l = 0 and D*H for the other layers. With s the sigmoid, each
 * direction of a layer computes
 *     w_ih [4H, I_l]   w_hh [4H, H]   b_ih [4H]   b_hh [4H]
 *     a_t = w_ih x_t + b_ih + w_hh h_{t-1} + b_hh        a = [ai af ag ao]
 *     i = s(ai)  f = s(af)  g = tanh(ag)  o = s(ao)      c_t = f c_{t-1} + i g    h_t = o tanh(c_t)
 *     x [T, B, I]   y [T, B, D*H]   h0, c0, hn, cn [L*D, B, H]
 *
 * That is the standard cell. The other cells (enum lb_cell_kind) change these equations as follows;
 * equations that are not named stay. w_cell is a weight tensor that only such a cell has, one for
 * each layer and direction. LN(v) = gain (v - mean(v)) / sqrt(var(v) + 1e-5) + bias, with the mean
 * and the variance (divided by H) of the H elements of v. * is the elementwise product.
 * - projection: w_cell = w_hr [P, H] with P < H. h_t = w_hr (o tanh(c_t)). h has the size P:
 *   w_hh is [4H, P], y [T, B, D*P], h0 and hn [L*D, B, P], and I_l is D*P for l > 0. Source: Sak,
 *   Senior, Beaufays 2014; torch.nn.LSTM's proj_size, cuDNN's projSize, oneDNN's LSTM projection.
 * - peephole: w_cell [3, H] = [pi pf po]. ai += pi * c_{t-1}, af += pf * c_{t-1}, ao += po * c_t.
 *   Source: Gers, Schraudolph, Schmidhuber 2002; oneDNN's weights_peephole has the same order.
 * - layernorm: w_cell [10, H] = gains of i f g o c, then biases of i f g o c. i = s(LN_i(ai)),
 *   f = s(LN_f(af)), g = tanh(LN_g(ag)), o = s(LN_o(ao)), c_t = LN_c(f c_{t-1} + i g): the
 *   normalised c goes on to the next step. Source: Ba, Kiros, Hinton 2016, in the form of
 *   TensorFlow's LayerNormBasicLSTMCell, which normalises each gate alone; here b_ih and b_hh are
 *   added before the normalisation.
 * - recurrent-dropout: a_t has w_hh (mask * h_{t-1}). The mask [L*D, B, H] is an input of the call
 *   with elements 0 or 1 / (1 - rate), and the same at all steps. Source: Gal, Ghahramani 2016, as
 *   Keras' recurrent_dropout does it.
 * - residual: the output of layer l > 0 is h plus the layer's input, [h of all directions]_t + x_t;
 *   hn is h alone. Needs L >= 2. Source: Wu et al. 2016 (GNMT); TensorFlow's ResidualWrapper. */
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

enum lb_cell_kind {
    LB_CELL_STANDARD,
    LB_CELL_LAYERNORM,
    LB_CELL_RECURRENT_DROPOUT,
    LB_CELL_PROJECTION,
    LB_CELL_PEEPHOLE,
    LB_CELL_RESIDUAL,
    LB_CELL_COUNT
};

/* LN adds this to the variance. */
#define LB_LAYERNORM_EPSILON 1e-5

struct lb_problem {
    int64_t seq_len, batch, input, hidden; /* T, B, I, H; each at least 1 */
    int64_t layers;                        /* L, at least 1 */
    int64_t directions;                    /* D, 1 or 2 */
    enum lb_dtype dtype;                   /* of x, y, h and weights; int8 goes with infer */
    enum lb_pass pass;
    enum lb_math math;
    enum lb_act act;
    bool ragged; /* row b has lengths[b] <= T steps, lengths sorted descending, lengths[0] = T */

    uint8_t cell;       /* enum lb_cell_kind */
    int32_t projection; /* P, from 1 to H - 1, of the cell projection; else 0 */
};

const char *lb_pass_name(enum lb_pass pass); /* "infer", "forward", "backward", "train" */
const char *lb_math_name(enum lb_math math); /* "ieee", "tf32", "half" */
const char *lb_act_name(enum lb_act act);    /* "tanh", "relu" */

/* "standard", "layernorm", "recurrent-dropout", "projection", "peephole", "residual". */
const char *lb_cell_name(enum lb_cell_kind cell);

/* True for forward, backward and train: the forward pass must keep what a backward pass needs. */
bool lb_trains(const struct lb_problem *problem);

/* True for backward and train, which compute gradients. */
bool lb_has_backward(const struct lb_problem *problem);

/* The size of h: P for the cell projection, else H. y has D times as many columns. */
int64_t lb_h_size(const struct lb_problem *problem);

/* Elements of h0, hn and their gradients: L*D*B times the size of h. */
size_t lb_h_count(const struct lb_problem *problem);

/* Elements of w_cell of one layer and direction; 0 for a cell that has none. */
size_t lb_cell_weight_count(const struct lb_problem *problem);

/* I_l, the input size of layer l: I for l = 0, else D times the size of h. */
int64_t lb_layer_input(const struct lb_problem *problem, int64_t layer);

/* L*D. Element l*D + d of tables of weights, and of h0, c0, hn and cn, is layer l, direction d. */
size_t lb_layer_dir_count(const struct lb_problem *problem);

/* Element counts of a problem's tensors. */
struct lb_counts {
    size_t x;       /* T*B*I: x, dx */
    size_t y;       /* T*B*D*H, for the cell projection T*B*D*P: y, dy */
    size_t state;   /* L*D*B*H: c0, cn and their gradients; lb_h_count has those of h0 and hn */
    size_t weights; /* all w_ih, w_hh, b_ih, b_hh and w_cell of all layers and directions */
};

/* Computes the counts. LB_OOM when the tensors, their gradients and the oracle's copies of them
 * take 2^56 bytes or more. */
enum lb_status lb_problem_counts(const struct lb_problem *problem, struct lb_counts *counts,
                                 struct lb_error *err);

/* Flops of the matrix products of one timed call, two per multiply-add. forward takes
 * 2 T B 4H (I_l + H) per layer and direction, for the cell projection 2 T B (4H (I_l + P) + P H).
 * backward takes twice as many, train three times as many. Rows of a ragged batch count with the
 * full length T. */
double lb_problem_flops(const struct lb_problem *problem);

/* The least number of bytes that one timed call must move: each of its passes reads every input
 * once and writes every output once. Rows of a ragged batch count with the full length T. 0 where
 * lb_problem_counts fails. */
double lb_problem_bytes(const struct lb_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
