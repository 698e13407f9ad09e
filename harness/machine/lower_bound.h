/* The lower bound of a problem on a machine: the least time that any implementation could take, by
 * a model of the work that every implementation must do. Records report times as multiples of it
 * and call it the floor.
 *
 *   bound  = max(dependent steps * t_step, t_all, memory traffic, all reads of recurrent weights)
 *
 *   t_all  = all GEMMs at peak rate. A CPU adds all cells; where a tile unit multiplies beside the
 *            vector unit, it is the larger of the two
 *
 *   t_step = max(wait for h + max(bytes of h, GEMM, bytes of weights) of one tile + cell,
 *                max(bytes of h, GEMM, bytes of weights) of all rows)
 *
 * Everything overlaps that could: GEMMs of inputs with steps, one tile's wait with another tile's
 * work. A step is distributed in the best of all ways: several copies of the weights, each for some
 * batch rows; cores that divide the hidden units or the sum over h. Launches, tails and conflicts
 * take no time, and what is not known of the machine limits nothing. */
#ifndef LB_LOWER_BOUND_H
#define LB_LOWER_BOUND_H

#include "machine/machine.h"

/* The lower bound of one call and its parts, in ns. The parts of a step are those of a forward
 * step. */
struct lb_lower_bound {
    enum lb_level residency; /* the outermost level that holds recurrent weights of a step */
    int cores;               /* that hold one copy of the weights */
    double wait_ns;          /* latency until h of the step before arrives, without its bytes */
    double exchange_ns;      /* h of all rows through a core's port */
    double weights_ns;       /* reading the weights that the inner level does not hold */
    double gemm_ns, cell_ns; /* recurrent GEMM and pointwise work */
    double step_ns;          /* the step; at most wait + the largest of the middle three + cell */
    double steps; /* dependent steps of all passes: T, plus L - 1 for a wavefront of layers */
    double all_gemms_ns; /* all GEMMs, at peak rate */
    double all_cells_ns; /* of a CPU: all cells of the forward pass, at the peak rate of vectors */
    double memory_ns;    /* bytes through the cache, and through memory what it cannot keep */
    double all_weights_ns; /* the reads of recurrent weights of all layers and steps */
    double total_ns;       /* the lower bound */
};

/* What the bound depends on besides problem and machine. Zeroed: hot caches, all cores, and rows of
 * full length or, when ragged, as short as they can be. */
struct lb_lower_bound_run {
    bool cold;        /* caches are flushed before each call */
    double row_steps; /* of ragged rows, the sum of their lengths; 0: not known */
    int threads;      /* of a CPU; 0: one per core */
};

/* The lower bound of one timed call. NaN where the machine's rate of the problem's GEMMs is not
 * known. */
void lb_lower_bound_of(const struct lb_machine *machine, const struct lb_problem *problem,
                       const struct lb_lower_bound_run *run, struct lb_lower_bound *bound);
#endif
