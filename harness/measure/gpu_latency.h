/* What it takes SMs to wait for one another: barriers and stores, measured by small kernels. */
#ifndef LB_GPU_LATENCY_H
#define LB_GPU_LATENCY_H

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of one barrier, or of one store until its waiter goes on; NaN where the device has no such thing.
 */
struct lb_latencies {
    double grid_barrier_ns;    /* all SMs, a block each, cooperative launch */
    double cluster_barrier_ns; /* the largest cluster that starts: 16, else 8 blocks */
    double peer_ns;            /* to the shared memory of a peer in the cluster */
    double l2_ns;              /* to global memory, which another SM polls */
};

/* Measures on the current device, which has so many SMs. Takes about 100 ms; every wait in it is
 * bounded, and one that is not over in time is LB_FAILED. LB_OOM and LB_FAILED as lb_cuda_check has
 * it; latencies then holds what was measured before, and NaN. */
enum lb_status lb_latency_measure(int sm_count, void *stream, struct lb_latencies *latencies,
                                  struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
