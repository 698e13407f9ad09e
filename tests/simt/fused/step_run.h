/* step_run.h: the fused step kernels on the emulator, a launch a step, results against the oracle.
 */
#ifndef LB_SIMT_FUSED_STEP_RUN_H
#define LB_SIMT_FUSED_STEP_RUN_H

#include "fused_step.h"
#include "simt.h"
#include "truth.h"

#include <string>

namespace simt_step
{

using simt_fused::shape;

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

struct verdict {
    simt::outcome outcome; /* of the first launch that did not go well, or of the last */
    std::string worst;     /* tensor of the largest error in units of its limit */
    double excess;         /* that error; wrong above 1, infinite where a value is no number */
    double milliseconds;

    bool matches() const
    {
        return excess <= 1;
    }
    bool ok() const
    {
        return outcome.ok() && matches();
    }
};

verdict run(const subject &, const shape &, uint64_t seed);

} // namespace simt_step

#endif
