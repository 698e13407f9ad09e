/* The lower bound of a problem on a device: the least time that any implementation could take, by a
 * model of the work that every implementation must do. Records report times as multiples of it and
 * call it the floor.
 *
 *   bound  = max(steps in a row * t_step, all matrix products at peak rate, memory traffic)
 *   t_step = max(wait for h + max(bytes of h, matrix product, bytes of weights) of one tile + cell,
 *                max(bytes of h, matrix product, bytes of weights) of all rows)
 *
 * The model overlaps everything that could overlap: matrix products of inputs with steps, one
 * tile's wait with another's work. It takes the best of all ways to distribute a step: copies of
 * the weights that serve rows of their own, SMs that divide the hidden units or the sum over h. It
 * ignores launches, tails and conflicts. It is optimistic, and therefore a lower bound. Its figures
 * are published ones, per device in lower_bound.c, or measured ones where those are better. */
#ifndef LB_LOWER_BOUND_H
#define LB_LOWER_BOUND_H

#include "api/problem.h"
#include "device/ceilings.h"
#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the model knows of a device. Clocks are those of a multiprocessor (SM). */
struct lb_machine {
    const char *name; /* "h100": the part of a device's own name that tells it, in small letters */
    double clock_hz;  /* that long runs keep; not used by the lower bound */
    double clock_max_hz; /* that the device never exceeds */
    double memory_bytes_s, l2_bytes_s;

    /* Per clock and SM. */
    double flops_clock[LB_DTYPE_COUNT]; /* matrix products; on tensor cores for f16 and bf16 */
    double tf32_flops_clock;
    double shared_bytes_clock; /* read by an SM from its shared memory */
    double peer_bytes_clock;   /* received by an SM from its cluster; 0: no clusters */
    double l2_bytes_clock;     /* read by an SM from the second-level cache */

    double peer_clocks;    /* from a store to a peer's shared memory until the peer sees it */
    double l2_clocks;      /* from a store to global memory until another SM sees it */
    double node_ns;        /* from one graph node to the next; not used by the lower bound */
    double register_bytes; /* of an SM's registers, for weights: 64 of 255 per thread stay free */
    int cluster;           /* most SMs of a cluster; 0: no clusters */
};

/* Whether a device's own name holds the machine's name in capitals. */
bool lb_machine_matches(const char *name, const struct lb_device_info *device);

/* The figures of the machine that matches the device. LB_UNSUPPORTED names the known machines. */
enum lb_status lb_machine_of(const struct lb_device_info *device, struct lb_machine *machine,
                             struct lb_error *err);

/* Replaces figures by measured ones where the device does better than published (NaN: not
 * measured), so that the bound stays a lower one. */
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

/* The lower bound of one call and its parts, in ns. Those of a step are of a forward step. */
struct lb_lower_bound {
    enum lb_residency residency; /* of the weights, in the best way to distribute a step */
    int sms;                     /* that hold one copy of the weights */
    double wait_ns;              /* until h of the step before arrives, without its bytes */
    double exchange_ns;          /* h of all rows through an SM's port */
    double weights_ns;           /* reading the weights that registers do not hold */
    double gemm_ns, cell_ns;     /* recurrent matrix product and pointwise work */
    double step_ns;      /* the step; at most wait + the largest of the middle three + cell */
    double steps;        /* in a row: T, plus L - 1 of a wavefront over layers; of all passes */
    double input_ns;     /* matrix products that need not wait for a step, at peak rate */
    double all_gemms_ns; /* all matrix products, at peak rate */
    double memory_ns;    /* bytes through the cache, and through memory those that it cannot keep */
    double total_ns;     /* the lower bound */
};

/* What the bound depends on besides problem and device. Zeroed: hot caches; rows of full length or,
 * when ragged, as short as they can be. */
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
