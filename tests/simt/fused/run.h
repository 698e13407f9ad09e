/* Runs one fused kernel of any family on the emulator and compares its results with the oracle's.
 */
#ifndef LB_SIMT_FUSED_RUN_H
#define LB_SIMT_FUSED_RUN_H

#include "cuda/fused/cluster/cluster.h"
#include "cuda/fused/grid/grid.h"
#include "cuda/fused/step/step.h"
#include "simt.h"
#include "truth.h"

#include <string>
#include <variant>

namespace simt_fused
{

/* The kernels of the families. Either forward or backward is set. */
struct cluster_kernel {
    lb_cluster_tile tile;
    void (*forward)(lb_fused_forward_args);
    void (*backward)(lb_fused_backward_args);
};

struct grid_kernel {
    lb_grid_tile tile;
    lb_grid_math math;
    void (*forward)(lb_fused_forward_args);
    void (*backward)(lb_fused_backward_args);
};

struct step_kernel {
    lb_step_tile tile;
    void (*forward)(lb_fused_forward_args, int step, bool relu);
    void (*backward)(lb_fused_backward_args, int step, bool relu);
};

/* A kernel, and what its launch needs. */
struct subject {
    std::string name;
    std::variant<cluster_kernel, grid_kernel, step_kernel> kernel;
    lb_dtype dtype;
    lb_math math;       /* of f32: LB_TF32 on tensor cores, else LB_IEEE */
    bool train = false; /* forward writes gates and cells */
    lb_act act = LB_ACT_TANH;

    bool backward() const
    {
        return std::visit([](const auto &k) { return k.backward != nullptr; }, kernel);
    }
    int columns() const
    {
        return std::visit([](const auto &k) { return k.tile.columns; }, kernel);
    }
};

/* How a case is launched. The second part is for grid kernels alone. */
struct manner {
    int cut = 0; /* one launch ends before this step and another continues; 0: one launch */
    bool saturated = false; /* unit 0 adds 1 to c in each step, so that its h rounds to 1 */
    bool count = false;     /* count what accesses cost instead of looking for races */
    int rows = 0;           /* cluster kernels: batch rows per cluster; 0: the tile's columns */
    /* The steps are the last ones of so long a sequence that indices do not fit in 32 bits. */
    bool late = false;
    int spoiled = -1; /* a row with a NaN in the second step: a pre-activation, backward a dy */

    int groups = 1;
    bool apart = false;    /* one direction after the other */
    int missing = -1;      /* a block that never runs */
    bool given_up = false; /* the fault record says before the launch that a block gave up */
    int loud = -1; /* backward, f16, T = 1: a row with an infinite gradient of g of unit 0 */
    uint32_t spin_limit = 1u << 30; /* the emulator reports a livelock long before */
};

struct check_case {
    subject kernel;
    shape size; /* T, B, H, D, ragged */
    manner how = {};
};

/* The outcome of one or several launches. */
struct verdict {
    simt::outcome outcome;
    std::string worst; /* the tensor with the largest error relative to its limit */
    double excess = 0; /* that error; above 1 it is wrong, and it is infinite for a NaN */
    std::vector<unsigned char> bits; /* of results that must not depend on the seed */
    lb_fused_fault fault = {};
    /* All results of the spoiled row that must be NaN are NaN, and those of the loud row that must
     * be infinite are so. */
    bool spread = false;

    bool matches() const
    {
        return excess <= 1;
    }
    bool ok() const
    {
        return outcome.ok() && matches() && !fault.raised;
    }
    /* Compares got [expected.size()], whose elements may be off by `limit` times the largest
     * expected magnitude, which counts as 1/4 if it is less. An element that should be NaN is not
     * compared. */
    void compare(const char *name, const std::vector<double> &got,
                 const std::vector<double> &expected, double limit);
};

verdict run(const check_case &c, uint64_t seed);

/* Packs a matrix on the host into packed [elements] of `size` bytes: 2, 4 or 8. */
void pack_weights(const lb_weight_layout &layout, size_t size, const void *matrix, void *packed);

/* A mutant of a kernel. Beside findings three detectors can catch it: `mismatch`; `report`, when a
 * block is missing and no block reports that, or reports another; `spread`, when a spoiled row has
 * numbers where it must have NaN, or a loud row where it must be infinite. */
struct mutant {
    int number;
    const char *check, *fast; /* the detector of each mode; "-": none must catch it */
    const char *breaks;
    check_case broken;
};

/* Runs all mutants, or the one with the number `only`, under 2 seeds in check mode and 8 in fast
 * mode. Each must be caught by the detector that it names. Returns the program's exit code. */
int test_mutants(const std::vector<mutant> &mutants, int only);

/* ---- What test_cluster.cpp, test_grid.cpp and test_step.cpp define for family.cpp --------------
 */

using cases = std::vector<check_case>;

cases clean_cases();   /* small tiles on odd sizes, for many schedules */
cases builtin_cases(); /* every built-in tile, for counts of accesses */
cases path_cases();    /* every built-in tile, on the smallest shapes that take the paths of
                          bench/cases */
int test_more();       /* what else the family has to test: 0 where all is right */

/* " 16 8 4 32 8" for the numbers of a tile. */
std::string figures_text(std::initializer_list<int> figures);

/* Checks that a NaN spreads over its row and no other, in all kernels. */
int test_no_number(const std::vector<subject> &kernels);

/* Checks the last steps of long sequences. */
int test_late(const std::vector<subject> &kernels);

/* Runs each case under each seed of [first, past): it must be right, and have the same bits. */
int test_clean(const cases &all, uint64_t first, uint64_t past);

} // namespace simt_fused

#endif
