/* Launchers with a C interface for pointwise kernels: the LSTM cell, one step of one layer and
 * direction, and the small operations of which a framework's generic cell consists.
 *
 * T is the storage type (dtype), R the type of arithmetic: double for f64, else float. Gates are in
 * the order i f g o. A batch row past its end (step >= lengths[b]) keeps its state, and its y is
 * zero. A launcher only enqueues on the stream (cudaStream_t), and returns LB_FAILED where the
 * launch fails. */
#ifndef LB_CELL_H
#define LB_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/problem.h"
#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One step forward: from pre-activations to the new state. */
struct lb_cell_forward {
    int64_t batch, hidden;  /* B, H */
    int64_t step;           /* t, in time */
    const int32_t *lengths; /* [B]; NULL: all rows are full */
    enum lb_act act;
    const void *pre;    /* [B, 4H] R, without biases */
    const void *bias;   /* [4H] R, b_ih + b_hh */
    const void *c_prev; /* [B, H] R */
    const void *h_prev; /* [B, H] T */
    void *c;            /* [B, H] R; may alias c_prev */
    void *h;            /* [B, H] T; must not alias h_prev */
    void *y;            /* T, row b at y + b y_stride, H wide */
    int64_t y_stride;
    void *gates;   /* [B, 4H] R, activated, for backward; may alias pre; NULL: not kept */
    void *hn, *cn; /* [B, H] T: the final state, at the last step; else NULL */
};

/* One step backward: from the gradients of the state to those of pre-activations and c_prev. */
struct lb_cell_backward {
    int64_t batch, hidden;
    int64_t step;
    const int32_t *lengths; /* as in forward */
    enum lb_act act;
    const void *gates;  /* [B, 4H] R, activated */
    const void *c_prev; /* [B, H] R */
    const void *c;      /* [B, H] R */
    const void *dy;     /* T, row b at dy + b dy_stride, H wide; ignored past a row's end */
    int64_t dy_stride;
    const void *dh; /* [B, H] R, from the following step */
    void *dc;       /* [B, H] R, in: of c, out: of c_prev */
    void *dgates;   /* [B, 4H] T, zero past a row's end */
};

enum lb_status lb_cell_forward_step(enum lb_dtype dtype, const struct lb_cell_forward *cell,
                                    void *stream, struct lb_error *err);
enum lb_status lb_cell_backward_step(enum lb_dtype dtype, const struct lb_cell_backward *cell,
                                     void *stream, struct lb_error *err);

/* Convert `from` [count] T to `to` [count] R, and back with one rounding. */
enum lb_status lb_cell_convert_to_sums(enum lb_dtype dtype, void *to, const void *from,
                                       int64_t count, void *stream, struct lb_error *err);
enum lb_status lb_cell_convert_to_storage(enum lb_dtype dtype, void *to, const void *from,
                                          int64_t count, void *stream, struct lb_error *err);

/* to [count] R = a [count] T + b [count] T. */
enum lb_status lb_cell_add(enum lb_dtype dtype, void *to, const void *a, const void *b,
                           int64_t count, void *stream, struct lb_error *err);

/* Sums `from` [rows, columns] T over its rows into `to` [columns] T, and into `also` [columns] T
 * unless that is NULL, always in the same order. scratch [LB_CELL_PARTS, columns] R is
 * overwritten. */
#define LB_CELL_PARTS 64
enum lb_status lb_cell_column_sums(enum lb_dtype dtype, void *to, void *also, const void *from,
                                   int64_t rows, int64_t columns, void *scratch, void *stream,
                                   struct lb_error *err);

/* Sets data [T, B, width] T to zero past the end of each batch row. lengths [B]: on the device. */
enum lb_status lb_cell_zero_tails(enum lb_dtype dtype, void *data, const int32_t *lengths,
                                  int64_t seq_len, int64_t batch, int64_t width, void *stream,
                                  struct lb_error *err);

/* ---- Element-wise operations -----------------------------------------------------------------
 * One small operation per kernel. Tensors are contiguous unless a stride is given, and outputs may
 * alias inputs. */

enum lb_elementwise_op {
    LB_OP_ADD,           /* a + b */
    LB_OP_MULTIPLY,      /* a b */
    LB_OP_SIGMOID,       /* s(a) */
    LB_OP_TANH,          /* tanh(a) */
    LB_OP_RELU,          /* relu(a) */
    LB_OP_SIGMOID_SLOPE, /* a b (1 - b): the gradient a, through a sigmoid whose value is b */
    LB_OP_TANH_SLOPE,    /* a (1 - b b): the gradient a, through a tanh whose value is b */
    LB_OP_RELU_SLOPE,    /* a where b > 0, else 0: the gradient a, through a relu */
    LB_OP_SUBTRACT,      /* a - b */
    LB_OP_INVERSE_ROOT,  /* 1 / sqrt(a + LB_LAYERNORM_EPSILON) */
    LB_OP_COUNT
};

/* to [count] = op(a [count], b [count]) in f64 or f32. b is NULL where op takes a alone. */
enum lb_status lb_elementwise(enum lb_dtype real, enum lb_elementwise_op op, void *to,
                              const void *a, const void *b, int64_t count, void *stream,
                              struct lb_error *err);

/* to [rows, columns] = from op vector in f64 or f32. The vector is [rows] with per_row, else
 * [columns]. op is LB_OP_MULTIPLY, or LB_OP_SUBTRACT with per_row, or LB_OP_ADD without. */
enum lb_status lb_elementwise_broadcast(enum lb_dtype real, enum lb_elementwise_op op, bool per_row,
                                        void *to, const void *from, const void *vector,
                                        int64_t rows, int64_t columns, void *stream,
                                        struct lb_error *err);

/* Adds to `to` [columns] the sums of `from` [rows, columns] over its rows, in f64 or f32. */
enum lb_status lb_elementwise_add_row_sums(enum lb_dtype real, void *to, const void *from,
                                           int64_t rows, int64_t columns, void *stream,
                                           struct lb_error *err);

/* Copies batch rows that have not ended (step < lengths[row]) from `from` to `to`, and the others
 * from `other`. All three are [rows, columns] in any dtype; the strides are elements from one row
 * to the next. With lengths NULL no row has ended; with other NULL the ended rows become zero. */
struct lb_elementwise_select {
    int64_t rows, columns, step;
    const int32_t *lengths; /* [rows] */
    void *to;
    int64_t to_stride;
    const void *from;
    int64_t from_stride;
    const void *other;
};
enum lb_status lb_elementwise_select_rows(enum lb_dtype dtype,
                                          const struct lb_elementwise_select *select, void *stream,
                                          struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
