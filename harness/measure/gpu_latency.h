/* Small kernels measure the latencies of barriers and stores, and one that does nothing the time of
 * its launch. */
#ifndef LB_GPU_LATENCY_H
#define LB_GPU_LATENCY_H

#include "machine/ceilings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Measures four figures of the open device, which has ceilings->cores SMs: a barrier of one block
 * per SM, one of the largest cluster that can start (16 blocks, else 8), and how long it takes from
 * a store to the shared memory of a peer in the cluster (LB_PEER_NS), or to global memory
 * (LB_FAR_NS), until the block that polls for it sees it. Figures that the device lacks stay as
 * they are. Takes about 100 ms. LB_FAILED when a wait takes too long; LB_OOM and LB_FAILED as
 * lb_cuda_check. */
enum lb_status lb_latency_measure(struct lb_ceilings *ceilings, struct lb_error *err);

/* lb_call: enqueues a kernel of one warp that does nothing. LB_FAILED with CUDA's message. */
enum lb_status lb_launch_empty(void *unused, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
