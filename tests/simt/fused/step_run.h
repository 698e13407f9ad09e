/* step_run.h: the fused step kernels on the emulator, a launch a step, results against the oracle.
 */
#ifndef LB_SIMT_FUSED_STEP_RUN_H
#define LB_SIMT_FUSED_STEP_RUN_H

#include "cuda/fused/step/step.h"
#include "truth.h"

namespace simt_step
{

using simt_fused::shape;
using simt_fused::verdict;

/* Kernel, and what its launch must know. One of the two is there. */
struct subject {
    const char *name;
    void (*forward)(lb_fused_forward_args, int step, bool relu);
    void (*backward)(lb_fused_backward_args, int step, bool relu);
    lb_fused_step_tile tile;
    lb_dtype dtype;
    lb_math math;
    lb_act act;
    bool train; /* forward keeps gates and cells */
};

verdict run(const subject &, const shape &, uint64_t seed);

} // namespace simt_step

#endif
