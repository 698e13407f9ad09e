/* The CUDA streams of one case, each with a cuBLAS handle of its own, and the GEMMs that
 * implementations enqueue on them. Stream 0 is the case's own stream; the others must be joined to
 * it before a call returns. Waiting between streams works under graph capture too. */
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

/* Bytes of scratch per stream that cuBLAS is given: what its manual recommends for Hopper. */
size_t lb_stream_scratch_bytes(void);

struct lb_streams;

/* Makes count streams, at most LB_STREAMS_MAX; `stream` (cudaStream_t) becomes stream 0. cuBLAS
 * handles are kept until the calling thread ends, and bound to these streams until the next create
 * or destroy. scratch [count * lb_stream_scratch_bytes()] bytes is theirs: otherwise cuBLAS would
 * allocate scratch itself, which is neither recorded nor deterministic. Here and below: LB_OOM or
 * LB_FAILED with the library's message. */
enum lb_status lb_streams_create(int count, void *stream, void *scratch, struct lb_streams **out,
                                 struct lb_error *err);
void lb_streams_destroy(struct lb_streams *streams); /* accepts NULL; the work must be done */

/* Stream number stream_index as a cudaStream_t. */
void *lb_stream_handle(const struct lb_streams *streams, int stream_index);

/* Work enqueued on stream `waiter` from now on starts after all work that is on stream `awaited`
 * now. */
enum lb_status lb_stream_wait(struct lb_streams *streams, int waiter, int awaited,
                              struct lb_error *err);

/* fork: all other streams wait for stream 0. join: stream 0 waits for all others. */
enum lb_status lb_streams_fork(struct lb_streams *streams, struct lb_error *err);
enum lb_status lb_streams_join(struct lb_streams *streams, struct lb_error *err);

/* Enqueues a copy of `bytes` of device memory on the stream. With 0 bytes it does nothing. */
enum lb_status lb_stream_copy(struct lb_streams *streams, int stream_index, void *to,
                              const void *from, size_t bytes, struct lb_error *err);

/* c [m, n] = op(a) [m, k] op(b) [k, n] (+ c), row-major, rows lda, ldb, ldc elements apart.
 * transpose_a: a is stored [k, m]; transpose_b: b is stored [n, k]. c aliases neither a nor b.
 * a and b have the dtype in. c has the dtype out: that of in, or f32 where in is f16 or bf16. Sums
 * are f32, f64 for f64. math is the problem's: f32 with LB_IEEE uses no tensor cores. */
struct lb_gemm {
    enum lb_dtype in, out;
    enum lb_math math;
    bool transpose_a, transpose_b, accumulate;
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
};

/* Enqueues the GEMM, or nothing when m, n or k is 0. LB_UNSUPPORTED when cuBLAS does not support
 * it. */
enum lb_status lb_stream_gemm(struct lb_streams *streams, int stream_index,
                              const struct lb_gemm *gemm, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
