/* Streams: streams of one case, each with a cuBLAS handle of its own, and the matrix products that
 * implementations enqueue on them. Stream 0 is the case's own stream; the others must be joined to
 * it before a call returns. Waiting stream on stream works under graph capture too. */
#ifndef LB_STREAMS_H
#define LB_STREAMS_H

#include <stdbool.h>

#include "api/dtype.h"
#include "api/problem.h"
#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LB_STREAMS_MAX 16

/* Bytes of scratch that cuBLAS is given for each stream: what its manual recommends for Hopper. */
size_t lb_stream_scratch_bytes(void);

struct lb_streams;

/* count streams, at most LB_STREAMS_MAX; stream is that of stream 0. cuBLAS handles are kept for
 * the process and bound to the streams until the next create. LB_OOM or LB_FAILED in the library's
 * words, here and below. */
enum lb_status lb_streams_create(int count, void *stream, struct lb_streams **out,
                                 struct lb_error *err);
void lb_streams_destroy(struct lb_streams *streams); /* accepts NULL; the work must be done */

int lb_streams_count(const struct lb_streams *streams);
void *lb_stream_handle(const struct lb_streams *streams, int stream_index); /* cudaStream_t */

/* Gives the streams' handles their scratch: memory [count * lb_stream_scratch_bytes()] bytes.
 * Without it the library would allocate by itself, which is neither measured nor deterministic. */
enum lb_status lb_streams_set_workspace(struct lb_streams *streams, void *memory,
                                        struct lb_error *err);

/* What is enqueued on waiter from now on starts after what is on awaited so far. */
enum lb_status lb_stream_wait(struct lb_streams *streams, int waiter, int awaited,
                              struct lb_error *err);

/* All other streams wait for stream 0; stream 0 waits for all others. */
enum lb_status lb_streams_fork(struct lb_streams *streams, struct lb_error *err);
enum lb_status lb_streams_join(struct lb_streams *streams, struct lb_error *err);

/* Device memory on the stream: bytes of to set to zero; from copied to to. 0 bytes are none. */
enum lb_status lb_stream_zero(struct lb_streams *streams, int stream_index, void *to, size_t bytes,
                              struct lb_error *err);
enum lb_status lb_stream_copy(struct lb_streams *streams, int stream_index, void *to,
                              const void *from, size_t bytes, struct lb_error *err);

/* c [m, n] = op(a) [m, k] op(b) [k, n] (+ c), row-major, rows lda, ldb, ldc elements apart.
 * transpose_a: a is stored [k, m]; transpose_b: b is stored [n, k]. c aliases neither.
 * a and b are of dtype in; c is of in, or f32 where in is f16 or bf16. Sums are f32, f64 for f64.
 * math as in the problem: ieee f32 uses no tensor cores. */
struct lb_gemm {
    enum lb_dtype in, out;
    enum lb_math math;
    bool transpose_a, transpose_b, accumulate;
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
};

/* m, n or k of 0 is no work. LB_UNSUPPORTED too, where cuBLAS says so. */
enum lb_status lb_stream_gemm(struct lb_streams *streams, int stream_index,
                              const struct lb_gemm *gemm, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
