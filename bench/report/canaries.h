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
    int balance;   /* canaries in which it is slower, minus those in which it is faster */
    double shift;  /* logarithm of its time over that of the others, above 0 when it is slower: the
                      mean over the canaries */
    double spread; /* the largest that a shift was compared with, as a logarithm */
    size_t nodes;  /* measured nodes of its device, including itself */
};

/* Compares the nodes of each device by their canaries. devices [nodes]: nodes with the same
 * number have the same device. Sorts times; verdicts [nodes] receives the result.
 *
 * In a canary, a node is slower or faster when the median of its times (as logarithms) differs from
 * the median of all times of the device's other nodes by more than LB_CANARY_SPREADS spreads, and
 * by more than LB_CANARY_LEAST. The spread is 1.4826 times the median absolute deviation of the
 * node's own times or of the others', whichever is larger. A node is off when it is slower, or
 * faster, in at least two canaries more than not. Devices with fewer than LB_CANARY_NODES nodes are
 * not judged. */
void lb_canaries_judge(struct lb_canary_time *times, size_t count, const size_t *devices,
                       size_t nodes, struct lb_canary_verdict *verdicts);

#endif
