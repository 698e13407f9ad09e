/* grid_run.h: one fused grid kernel on the emulator, its results against the oracle's. */
#ifndef LB_SIMT_FUSED_GRID_RUN_H
#define LB_SIMT_FUSED_GRID_RUN_H

#include "cuda/fused/grid/grid.h"
#include "family.h"

namespace simt_grid
{

using simt_fused::shape;

/* Kernel, and what its launch must know. One of the two is there. */
struct subject {
    const char *name;
    void (*forward)(lb_grid_forward_args);
    void (*backward)(lb_grid_backward_args);
    lb_grid_tile tile;
    lb_grid_math math;
    bool train; /* forward keeps gates and cells */
};

/* How the case is launched. */
struct manner {
    int groups = 1;
    int cut = 0;           /* a launch ends at this step and another goes on; 0: none does */
    int missing = -1;      /* a block that is never seen */
    bool given_up = false; /* some block has given up waiting for it before the launch begins */
    int spoiled = -1;      /* forward: a row with a pre-activation at time 1 that is no number */
    bool apart = false;    /* directions one after the other */
    uint32_t spin_limit = 1u << 30; /* the emulator finds a livelock long before */
};

manner with_groups(int groups);
manner cut_at(int step);
manner without_block(int block);
manner after_giving_up(int block);
manner with_spoiled(int row);

struct verdict : simt_fused::verdict {
    lb_fused_fault fault = {};
    bool spread = false; /* no number of the spoiled row was taken for one */

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

/* A mutant, and what catches it: beside findings and mismatch `report`, where a block is missing
 * and nobody says so or says it of another, and `spread`, where a spoiled row has numbers. */
struct mutated {
    subject kernel;
    manner how;
};

simt_test::names detectors(const simt_fused::mutant<mutated> &, uint64_t seed);

} // namespace simt_grid

#endif
