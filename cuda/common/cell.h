/* Launchers with a C interface for the LSTM cell on the GPU: one step of one layer and direction.
 *
 * T is the storage type (dtype), R the type of arithmetic: double for f64, else float. Gates are in
 * the order i f g o. A batch row past its end (step >= lengths[b]) keeps its state, and its y is
 * zero. A launcher only enqueues on the stream (cudaStream_t), and returns LB_FAILED where the
 * launch fails. */
#ifndef LB_CELL_H
#define LB_CELL_H

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

/* One step backward: from the gradients of the state to those of the pre-activations and of c_prev.
 */
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
 * unless that is NULL. scratch [LB_CELL_PARTS, columns] R is overwritten. The order of additions is
 * fixed.
 */
#define LB_CELL_PARTS 64
enum lb_status lb_cell_column_sums(enum lb_dtype dtype, void *to, void *also, const void *from,
                                   int64_t rows, int64_t columns, void *scratch, void *stream,
                                   struct lb_error *err);

/* Sets data [T, B, width] T to zero past the end of each batch row. lengths [B] is in device
 * memory.
 */
enum lb_status lb_cell_zero_tails(enum lb_dtype dtype, void *data, const int32_t *lengths,
                                  int64_t seq_len, int64_t batch, int64_t width, void *stream,
                                  struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
