/* Small kernels measure how long SMs wait for each other: the latencies of barriers and stores. One
 * kernel does nothing, so that its launch can be timed. */
#ifndef LB_GPU_LATENCY_H
#define LB_GPU_LATENCY_H

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Nanoseconds per barrier, or from a store until the block that polls for it sees it. NaN where the
 * device lacks the feature. */
struct lb_latencies {
    double grid_barrier_ns;    /* one block per SM, cooperative launch */
    double cluster_barrier_ns; /* largest cluster that can start: 16 blocks, else 8 */
    double peer_ns;            /* store to the shared memory of a peer in the cluster */
    double l2_ns;              /* store to global memory, polled by another SM */
};

/* Measures on the open device, which has sm_count SMs, on its stream. Takes about 100 ms. Every
 * wait in it is bounded: LB_FAILED when one takes too long. Otherwise LB_OOM and LB_FAILED as
 * lb_cuda_check. After a failure *latencies holds what was measured before, else NaN. */
enum lb_status lb_latency_measure(int sm_count, struct lb_latencies *latencies,
                                  struct lb_error *err);

/* Enqueues a kernel of one warp that does nothing on the device's stream, which may be capturing.
 * LB_FAILED with CUDA's message. */
enum lb_status lb_launch_empty(struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
