/* Launchers with a C interface for element-wise kernels: one small operation per kernel, as a
 * framework launches them. Tensors are contiguous unless a stride is given, and outputs may alias
 * inputs. A launcher only enqueues on the stream (cudaStream_t), and returns LB_FAILED where the
 * launch fails. */
#ifndef LB_ELEMENTWISE_H
#define LB_ELEMENTWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/dtype.h"
#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* to [count] = op(a [count], b [count]) in f64 or f32. b is NULL where the operation takes a alone.
 */
enum lb_status lb_elementwise(enum lb_dtype real, enum lb_elementwise_op op, void *to,
                              const void *a, const void *b, int64_t count, void *stream,
                              struct lb_error *err);

/* to [rows, columns] = from [rows, columns] + bias [columns] in f64 or f32. */
enum lb_status lb_elementwise_add_bias(enum lb_dtype real, void *to, const void *from,
                                       const void *bias, int64_t rows, int64_t columns,
                                       void *stream, struct lb_error *err);

/* to [rows, columns] = from op vector in f64 or f32, where op is LB_OP_MULTIPLY or LB_OP_SUBTRACT
 * and the vector is [rows], one number per row, or else [columns]. */
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
