/* The lower bound of a problem on a device: the least time that any implementation could take, by a
 * model of the work that every implementation must do. Records report times as multiples of it and
 * call it the floor.
 *
 *   bound  = max(dependent steps * t_step, all matrix products at peak rate, memory traffic)
 *   t_step = max(wait for h + max(bytes of h, matrix product, bytes of weights) of one tile + cell,
 *                max(bytes of h, matrix product, bytes of weights) of all rows)
 *
 * The model is optimistic, which makes the result a lower bound:
 * - Everything overlaps that could: matrix products of inputs with steps, one tile's wait with
 *   another tile's work.
 * - A step is distributed in the best of all ways: several copies of the weights, each for some
 *   batch rows; SMs that divide the hidden units or the sum over h.
 * - Launches, tails and conflicts take no time.
 * Its figures are published ones, per device in device_models.c, or measured ones where those are
 * better. */
#ifndef LB_LOWER_BOUND_H
#define LB_LOWER_BOUND_H

#include "api/problem.h"
#include "device/ceilings.h"
#include "device/device_models.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces published figures by measured ones where the device does better (NaN: not measured), so
 * that the bound remains a lower bound. */
void lb_machine_measured(struct lb_machine *machine, const struct lb_device_info *device,
                         const struct lb_ceilings *ceilings);

/* Where the recurrent weights of a layer and direction stay during the sequence. */
enum lb_residency {
    LB_RESIDENCY_CLUSTER, /* registers and shared memory of a cluster's SMs */
    LB_RESIDENCY_DEVICE,  /* registers and shared memory of all SMs, or of equal parts of them */
    LB_RESIDENCY_CACHE,   /* partly in the second-level cache, from which each step reads them */
    LB_RESIDENCY_MEMORY   /* partly in device memory, from which each step reads them */
};

const char *lb_residency_name(enum lb_residency residency); /* "one cluster's SMs", ... */

/* The lower bound of one call and its parts, in ns. The parts of a step are those of a forward
 * step. */
struct lb_lower_bound {
    enum lb_residency residency; /* of the weights, in the best way to distribute a step */
    int sms;                     /* number of SMs that hold one copy of the weights */
    double wait_ns;              /* latency until h of the step before arrives, without its bytes */
    double exchange_ns;          /* h of all rows through an SM's port */
    double weights_ns;           /* reading the weights that registers do not hold */
    double gemm_ns, cell_ns;     /* recurrent matrix product and pointwise work */
    double step_ns;  /* the step; at most wait + the largest of the middle three + cell */
    double steps;    /* dependent steps of all passes: T, plus L - 1 for a wavefront of layers */
    double input_ns; /* matrix products that need not wait for a step, at peak rate */
    double all_gemms_ns; /* all matrix products, at peak rate */
    double memory_ns;    /* bytes through the cache, and through memory those that it cannot keep */
    double total_ns;     /* the lower bound */
};

/* What the bound depends on besides problem and device. Zeroed: hot caches, and rows of full length
 * or, when ragged, as short as they can be. */
struct lb_lower_bound_run {
    bool cold;        /* caches are flushed before each call */
    double row_steps; /* of ragged rows, the sum of their lengths; 0: not known */
};

/* The lower bound of one timed call. */
void lb_lower_bound_of(const struct lb_machine *machine, const struct lb_device_info *device,
                       const struct lb_problem *problem, const struct lb_lower_bound_run *run,
                       struct lb_lower_bound *bound);

#ifdef __cplusplus
}
#endif
#endif
