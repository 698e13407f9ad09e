/* run.h: one fused kernel on the emulator, its results against the oracle's. */
#ifndef LB_SIMT_FUSED_RUN_H
#define LB_SIMT_FUSED_RUN_H

#include "fused_args.h"
#include "fused_tile.h"
#include "simt.h"
#include "truth.h"

#include <string>

namespace simt_fused
{

/* Kernel, and the template arguments that its launch must know. One of the two is there. */
struct subject {
    const char *name;
    void (*forward)(lb_fused_forward_args);
    void (*backward)(lb_fused_backward_args);
    lb_fused_tile tile;
    lb_dtype dtype;
    bool train; /* forward keeps gates and cells */
};

struct verdict {
    simt::outcome outcome;
    std::string worst; /* tensor of the largest error in units of its limit */
    double excess;     /* that error; wrong above 1, infinite where a value is no number */
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

} // namespace simt_fused

#endif
