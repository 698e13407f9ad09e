/* What a device can do at best, measured: copy bandwidth, matrix-product rates, and the latencies
 * that steps wait for. */
#ifndef LB_CEILINGS_H
#define LB_CEILINGS_H

#include <jansson.h>
#include <stdbool.h>

#include "api/problem.h"

/* A product's rate in flops a second, by dtype and math; NaN where the two don't go together, here
 * and below where nothing was measured. */
struct lb_ceilings {
    char uuid[48];
    double copy_bytes_s; /* read and written, both counted */
    double gemm_flops_s[LB_DTYPE_COUNT][LB_MATH_COUNT];
    double launch_ns;     /* an empty enqueue (a tiny fill), one after the other */
    double graph_node_ns; /* the same as nodes of a graph */
    double event_ns;      /* two events with nothing between them */
    double grid_barrier_ns, cluster_barrier_ns; /* latency.h, as the next */
    double peer_ns, l2_ns;
};

/* Measures on the device that is open; takes a few seconds and 2 GiB where there are so many. What
 * the device lacks, such as clusters, or has no room for, such as a block on each SM beside others'
 * work, is NaN. LB_ABSENT: no device is open, or the program was built without CUDA. LB_OOM and
 * LB_FAILED as the device has it; ceilings then holds what was measured before. */
enum lb_status lb_ceilings_measure(struct lb_ceilings *ceilings, struct lb_error *err);

/* A new object; rates that are unknown are null. From: what is missing is NaN. */
json_t *lb_ceilings_to_json(const struct lb_ceilings *ceilings);
void lb_ceilings_from_json(const json_t *object, struct lb_ceilings *ceilings);

/* Kept from run to run under $XDG_CACHE_HOME/bench-lstm (or ~/.cache), one file a device, replaced
 * as a whole. save: LB_IO, LB_OOM. load is false when there is none. */
enum lb_status lb_ceilings_save(const struct lb_ceilings *ceilings, struct lb_error *err);
bool lb_ceilings_load(const char *uuid, struct lb_ceilings *ceilings);

/* The least time one call of the problem can take: that of its products at the measured rate, or of
 * its traffic at the measured bandwidth, whichever is more. It knows nothing of the order of steps.
 * NaN where the rates are unknown. */
double lb_ceilings_lower_bound_ns(const struct lb_ceilings *ceilings,
                                  const struct lb_problem *problem);

#endif
