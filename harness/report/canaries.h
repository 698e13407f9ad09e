/* Canaries: three fixed cases that every shard of a sweep measures at its start and at its end, by
 * which nodes of the same device are compared with each other. */
#ifndef LB_CANARIES_H
#define LB_CANARIES_H

#include "model/case.h"
#include "model/registry.h"

#define LB_CANARY_COUNT   3
#define LB_CANARY_SPREADS 6    /* a node is off when it differs by more than so many spreads */
#define LB_CANARY_LEAST   0.05 /* and by more than this */
#define LB_CANARY_NODES   3    /* fewer nodes of a device do not tell which of them is off */

/* The canaries of a sweep: on a GPU (device) by cuda_step, else by cpu_simd with that many threads,
 * or by cpu_ref where that was not built. Shards of one build choose the same. */
void lb_canaries_choose(const struct lb_registry *registry, bool device, int threads,
                        struct lb_case canaries[LB_CANARY_COUNT]);

/* One time of one canary. */
struct lb_canary_time {
    size_t node;    /* below the number of nodes */
    const char *id; /* of the case; the times of equal texts are compared */
    double median_ns;
};

/* What the canaries say of a node. */
struct lb_canary_verdict {
    bool off;
    double shift;  /* of its times, as a logarithm over the median of all nodes of its device: above
                      0 is slower; the median over the canaries that are off */
    double spread; /* that this was held against, as a logarithm */
    size_t nodes;  /* of its device that were measured, itself included */
};

/* Compares the nodes of each device by their canaries. devices [nodes] says which device a node
 * has, by any numbers; verdicts [nodes] receives the result.
 *
 * Of a canary, a node's time is the median of the logarithms of all its times, and the device's the
 * median of its nodes' times. The spread is the largest of three, each 1.4826 MAD: of the nodes'
 * times about the device's; of a node's own times about its time, the median of that over the
 * nodes; the same of the node itself. A node is off in a canary when it differs from the device by
 * more than LB_CANARY_SPREADS spreads and LB_CANARY_LEAST, and off when that is so in two canaries
 * or more, in the same direction. Devices with fewer than LB_CANARY_NODES nodes are not judged.
 *
 * In 4,000 made-up sweeps each of 3 to 24 nodes with normal noise of 0.5 to 10 %, a node was
 * wrongly named in none to 0.3 % of the sweeps; one that took 1.5 times as long was found in 99 %
 * or more where the noise was 3 % at most. LB_OOM. */
enum lb_status lb_canaries_judge(const struct lb_canary_time *times, size_t count,
                                 const size_t *devices, size_t nodes,
                                 struct lb_canary_verdict *verdicts, struct lb_error *err);

#endif
