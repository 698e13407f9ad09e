/* Element-wise kernels, one small operation each, as a framework would launch them: launchers with
 * a C interface. Tensors are contiguous unless a stride is given; outputs may alias inputs. Every
 * launcher only enqueues on the stream (cudaStream_t); a failed launch is LB_FAILED. */
#ifndef LB_ELEMENTWISE_H
#define LB_ELEMENTWISE_H

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
    LB_OP_SIGMOID_SLOPE, /* a b (1 - b): gradient a through a sigmoid whose value is b */
    LB_OP_TANH_SLOPE,    /* a (1 - b b) */
    LB_OP_RELU_SLOPE,    /* a where b > 0, else 0 */
    LB_OP_COUNT
};

/* to [count] = op(a [count], b [count]); f64 or f32. b may be NULL where the operation has none. */
enum lb_status lb_elementwise(enum lb_dtype real, enum lb_elementwise_op op, void *to,
                              const void *a, const void *b, int64_t count, void *stream,
                              struct lb_error *err);

/* to [rows, columns] = from [rows, columns] + bias [columns]; f64 or f32. */
enum lb_status lb_elementwise_add_bias(enum lb_dtype real, void *to, const void *from,
                                       const void *bias, int64_t rows, int64_t columns,
                                       void *stream, struct lb_error *err);

/* to [columns] += sums over rows of from [rows, columns]; f64 or f32. */
enum lb_status lb_elementwise_add_row_sums(enum lb_dtype real, void *to, const void *from,
                                           int64_t rows, int64_t columns, void *stream,
                                           struct lb_error *err);

/* to = from in rows that still run (step < lengths[row]), else other; all [rows, columns], rows of
 * to and from so many elements apart. lengths NULL: all run; other NULL: zero. Any dtype. */
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
