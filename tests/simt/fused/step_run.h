/* Runs the fused step kernels on the emulator, one launch per step, and compares results with the
 * oracle's.
 */
#ifndef LB_SIMT_FUSED_STEP_RUN_H
#define LB_SIMT_FUSED_STEP_RUN_H

#include "cuda/fused/step/step.h"
#include "truth.h"

namespace simt_step
{

using simt_fused::shape;
using simt_fused::verdict;

/* A kernel, and what its launch needs. Either forward or backward is set. */
struct subject {
    const char *name;
    void (*forward)(lb_fused_forward_args, int step, bool relu);
    void (*backward)(lb_fused_backward_args, int step, bool relu);
    lb_step_tile tile;
    lb_dtype dtype;
    lb_math math;
    lb_act act;
    bool train; /* forward writes gates and cells */
};

verdict run(const subject &, const shape &, uint64_t seed);

} // namespace simt_step

#endif
