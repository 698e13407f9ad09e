/* Canaries: three fixed cases that every shard of a sweep measures at its start and at its end.
 * Their times show which nodes are slower or faster than others with the same device. */
#ifndef LB_CANARIES_H
#define LB_CANARIES_H

#include "model/case.h"
#include "model/registry.h"

#define LB_CANARY_COUNT   3
#define LB_CANARY_SPREADS 6    /* a node is off when it differs by more than this many spreads */
#define LB_CANARY_LEAST   0.05 /* and by more than this */
#define LB_CANARY_NODES   3    /* with fewer nodes per device, it is unclear which one is off */

/* Chooses the canaries of a sweep. On a GPU (`device`) they run with cuda_step or, where that was
 * not built, with the first implementation that runs on a device, such as a plug-in; else with
 * cpu_simd on that many threads, or with cpu_ref where the former was not built. All shards that
 * run the same build choose the same canaries. */
void lb_canaries_choose(const struct lb_registry *registry, bool device, int threads,
                        struct lb_case canaries[LB_CANARY_COUNT]);

/* One time of one canary. */
struct lb_canary_time {
    size_t node;    /* index of the node, below the number of nodes */
    const char *id; /* text of the case; times of equal texts are compared */
    double median_ns;
};

/* How a node compares with the others of its device. */
struct lb_canary_verdict {
    bool off;
    double shift;  /* logarithm of its time over the median of its device's nodes; above 0 means
                      slower. It is the mean over the canaries that are off */
    double spread; /* the spread that the shift was compared with, as a logarithm */
    size_t nodes;  /* measured nodes of its device, including itself */
};

/* Compares the nodes of each device by their canaries. devices [nodes]: nodes with the same
 * number, below `nodes`, have the same device. verdicts [nodes] receives the result.
 *
 * For each canary, the time of a node is the median of the logarithms of its times, and the time
 * of a device is the median of its nodes' times. The spread is the largest of three values, each
 * 1.4826 times a median absolute deviation: that of the nodes' times; that of one node's times,
 * as the median over all nodes; and that of the judged node's own times. A node is off in a
 * canary when it differs from its device by more than LB_CANARY_SPREADS spreads and by more than
 * LB_CANARY_LEAST. It is off when that holds for two or more canaries in the same direction.
 * Devices with fewer than LB_CANARY_NODES nodes are not judged.
 *
 * This was simulated with 4,000 sweeps for each of several combinations of 3 to 24 nodes and
 * normal noise of 0.5 to 10 %. A node was wrongly called off in at most 0.3 % of the sweeps. A
 * node that took 1.5 times as long was found in at least 99 % of the sweeps when the noise was
 * at most 3 %. LB_OOM. */
enum lb_status lb_canaries_judge(const struct lb_canary_time *times, size_t count,
                                 const size_t *devices, size_t nodes,
                                 struct lb_canary_verdict *verdicts, struct lb_error *err);

#endif
