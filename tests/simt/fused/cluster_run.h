/* Runs one fused cluster kernel on the emulator and compares its results with the oracle's. */
#ifndef LB_SIMT_FUSED_CLUSTER_RUN_H
#define LB_SIMT_FUSED_CLUSTER_RUN_H

#include "cuda/fused/cluster/tile.h"
#include "cuda/fused/common/args.h"
#include "truth.h"

namespace simt_cluster
{

using simt_fused::shape;
using simt_fused::verdict;

/* A kernel, and the template arguments that its launch needs. Either forward or backward is set. */
struct subject {
    const char *name;
    void (*forward)(lb_fused_forward_args);
    void (*backward)(lb_fused_backward_args);
    lb_cluster_tile tile;
    lb_dtype dtype;
    bool train; /* forward writes gates and cells */
};

verdict run(const subject &, const shape &, uint64_t seed);

} // namespace simt_cluster

#endif
