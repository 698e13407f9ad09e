/* Runs one fused grid kernel on the emulator and compares its results with the oracle's. */
#ifndef LB_SIMT_FUSED_GRID_RUN_H
#define LB_SIMT_FUSED_GRID_RUN_H

#include "cuda/fused/grid/grid.h"
#include "family.h"

namespace simt_grid
{

using simt_fused::shape;

/* A kernel, and what its launch needs. Either forward or backward is set. */
struct subject {
    const char *name;
    void (*forward)(lb_grid_forward_args);
    void (*backward)(lb_grid_backward_args);
    lb_grid_tile tile;
    lb_grid_math math;
    bool train; /* forward writes gates and cells */
};

/* How the case is launched. */
struct manner {
    int groups = 1;
    int cut = 0;      /* one launch ends before this step and another continues; 0: one launch */
    int missing = -1; /* a block that never runs */
    bool given_up = false; /* the fault record says before the launch that a block gave up */
    int spoiled = -1;   /* a row with a NaN in the second step: a pre-activation, backward a dy */
    int loud = -1;      /* backward, f16, T = 1: a row with an infinite gradient of g of unit 0 */
    bool apart = false; /* one direction after the other */
    uint32_t spin_limit = 1u << 30; /* the emulator reports a livelock long before */
};

manner with_groups(int groups);
manner cut_at(int step);
manner without_block(int block);
manner after_giving_up(int block);
manner with_spoiled(int row);
manner with_loud(int row);

struct verdict : simt_fused::verdict {
    lb_fused_fault fault = {};
    /* All results of the spoiled row that must be NaN are NaN, and those of the loud row that must
     * be infinite are so. */
    bool spread = false;

    bool ok() const
    {
        return simt_fused::verdict::ok() && !fault.raised;
    }
    const char *note() const
    {
        return fault.raised ? ", a wait was given up" : "";
    }
};

verdict run(const subject &, const shape &, const manner &, uint64_t seed);

/* A mutant of the grid kernels. Beside findings and `mismatch` two detectors can catch it:
 * `report`, when a block is missing and no block reports that, or reports another; `spread`, when a
 * spoiled row has numbers where it must have NaN, or a loud row where it must be infinite. */
struct mutated {
    subject kernel;
    manner how;
};

simt_test::names detectors(const simt_fused::mutant<mutated> &, uint64_t seed);

} // namespace simt_grid

#endif
