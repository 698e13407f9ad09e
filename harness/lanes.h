/* Lanes: streams of one case, each with a cuBLAS handle of its own, and the matrix products that
 * implementations enqueue on them. Lane 0 is the case's own stream; the others must be joined to it
 * before a call returns. Waiting lane on lane works under graph capture too. */
#ifndef LB_LANES_H
#define LB_LANES_H

#include <stdbool.h>

#include "dtype.h"
#include "problem.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LB_LANES_MAX 16

/* Bytes of scratch that cuBLAS is given for each lane: what its manual recommends for Hopper. */
size_t lb_lane_scratch(void);

struct lb_lanes;

/* count lanes, at most LB_LANES_MAX; stream is that of lane 0. cuBLAS handles are kept for the
 * process and bound to the lanes until the next create. LB_OOM or LB_FAILED in the library's words,
 * here and below. */
enum lb_status lb_lanes_create(int count, void *stream, struct lb_lanes **out,
                               struct lb_error *err);
void lb_lanes_destroy(struct lb_lanes *lanes); /* accepts NULL; the work must be done */

int lb_lanes_count(const struct lb_lanes *lanes);
void *lb_lane_stream(const struct lb_lanes *lanes, int lane); /* cudaStream_t */

/* Gives the lanes' handles their scratch: memory [count * lb_lane_scratch()] bytes. Without it the
 * library would allocate by itself, which is neither measured nor deterministic. */
enum lb_status lb_lanes_workspace(struct lb_lanes *lanes, void *memory, struct lb_error *err);

/* What is enqueued on waiter from now on starts after what is on awaited so far. */
enum lb_status lb_lane_wait(struct lb_lanes *lanes, int waiter, int awaited, struct lb_error *err);

/* All other lanes wait for lane 0; lane 0 waits for all others. */
enum lb_status lb_lanes_fork(struct lb_lanes *lanes, struct lb_error *err);
enum lb_status lb_lanes_join(struct lb_lanes *lanes, struct lb_error *err);

/* Device memory on the lane: bytes of to set to zero; from copied to to. 0 bytes are none. */
enum lb_status lb_lane_zero(struct lb_lanes *lanes, int lane, void *to, size_t bytes,
                            struct lb_error *err);
enum lb_status lb_lane_copy(struct lb_lanes *lanes, int lane, void *to, const void *from,
                            size_t bytes, struct lb_error *err);

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
enum lb_status lb_lane_gemm(struct lb_lanes *lanes, int lane, const struct lb_gemm *gemm,
                            struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
