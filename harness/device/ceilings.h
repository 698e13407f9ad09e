/* The measured ceilings of a device: copy bandwidth, GEMM rates, and the latencies that the steps
 * of an LSTM wait for. measure/ceilings_measure.h measures them. */
#ifndef LB_CEILINGS_H
#define LB_CEILINGS_H

#include <jansson.h>
#include <stdbool.h>

#include "api/problem.h"

/* Figures that were not measured are NaN. */
struct lb_ceilings {
    char uuid[48];
    double copy_bytes_s; /* of a copy in device memory, counting reads and writes */
    /* Rate of a large GEMM in flops per second; NaN where the dtype has no such math. */
    double gemm_flops_s[LB_DTYPE_COUNT][LB_MATH_COUNT];
    double launch_ns;     /* per tiny fill, each enqueued by a call of its own */
    double graph_node_ns; /* per such fill, as a node of a graph */
    double event_ns;      /* between two events with nothing between them */
    double grid_barrier_ns, cluster_barrier_ns, peer_ns, l2_ns; /* measure/gpu_latency.h */
};

/* Converts to a new JSON object, in which unknown figures are null, and back. Figures that the
 * object lacks become NaN. */
json_t *lb_ceilings_to_json(const struct lb_ceilings *ceilings);
void lb_ceilings_from_json(const json_t *object, struct lb_ceilings *ceilings);

/* Copies the figures that *ceilings lacks from an older measurement of the same device. */
void lb_ceilings_complete(struct lb_ceilings *ceilings, const struct lb_ceilings *older);

/* Write and read the file of a device. These files are kept from run to run under
 * $XDG_CACHE_HOME/bench-lstm (or ~/.cache) and are replaced atomically. save: LB_IO, LB_OOM. load:
 * false, and all figures NaN, when the device has no file. */
enum lb_status lb_ceilings_save(const struct lb_ceilings *ceilings, struct lb_error *err);
bool lb_ceilings_load(const char *uuid, struct lb_ceilings *ceilings);

/* The least time one call of the problem can take: that of its GEMMs at the measured rate or of its
 * memory traffic at the measured bandwidth, whichever is longer. It ignores that steps wait for
 * each other. NaN where the rates are unknown. */
double lb_ceilings_lower_bound_ns(const struct lb_ceilings *ceilings,
                                  const struct lb_problem *problem);

#endif
