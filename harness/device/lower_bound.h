/* The floor of a problem on a device: the least time that any implementation could take, by a model
 * of what it can't do without. Rows are reported as multiples of it.
 *
 *   floor  = max(steps in a row * t_step, all products at their peak, traffic)
 *   t_step = max(wait for h + its bytes, the product or the weights' bytes, for one tile + cell,
 *                the busiest of bytes of h, product and weights for all rows)
 *
 * It takes everything to overlap that could: products of inputs with steps, one tile's wait with
 * another's work. It takes the best of all ways to share a step out: copies of the weights for rows
 * of their own, SMs by units or by depth. It knows nothing of launches, tails or conflicts. So it
 * errs towards too little. Its figures are published ones, per device in floor.c, or measured ones
 * where those are better. */
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
    const char *name;    /* "h100"; part of the device's own name in capitals */
    double clock_hz;     /* what long runs keep; no part of the floor */
    double clock_max_hz; /* what it never passes */
    double memory_bytes_s, l2_bytes_s;
    double
        flops_clock[LB_DTYPE_COUNT]; /* of an SM: products in this dtype, tensor cores for halves */
    double tf32_flops_clock;
    double shared_bytes_clock; /* read by an SM from its shared memory */
    double peer_bytes_clock;   /* received by an SM from its cluster; 0: no clusters */
    double peer_clocks;        /* from a store to a peer until its waiter goes on */
    double l2_bytes_clock;     /* read by an SM from the second-level cache */
    double l2_clocks;          /* from a store to global memory until another SM's waiter goes on */
    double node_ns;            /* two nodes of a graph, one after the other; no part of the floor */
    double register_bytes;     /* of an SM's registers, what weights may take: 64 of 255 are left */
    int cluster;               /* most SMs of a cluster; 0: none */
};

/* The device's figures by the name it gives itself. LB_UNSUPPORTED names those there are. */
enum lb_status lb_machine_of(const struct lb_device_info *device, struct lb_machine *machine,
                             struct lb_error *err);

/* Takes over what the device was measured to do better than published (NaN: not measured), so that
 * the floor stays one that nobody gets below. */
void lb_machine_measured(struct lb_machine *machine, const struct lb_device_info *device,
                         const struct lb_ceilings *ceilings);

/* Where the recurrent weights of a layer and direction rest during the sequence. */
enum lb_residency {
    LB_RESIDENCY_CLUSTER, /* registers and shared memory of a cluster's SMs */
    LB_RESIDENCY_DEVICE,  /* registers and shared memory of all SMs, or of equal parts of them */
    LB_RESIDENCY_CACHE,   /* what does not fit there: the second-level cache, read anew each step */
    LB_RESIDENCY_MEMORY   /* what does not fit there either: device memory, likewise */
};

const char *lb_residency_name(enum lb_residency rest); /* "one cluster's SMs", ... */

struct lb_lower_bound {
    enum lb_residency rest; /* where the best way to share a step out has them */
    int sms;                /* that hold one copy of the weights */
    double wait_ns; /* of a forward step: until h of the step before is there, but for its bytes */
    double exchange_ns; /* h of all rows through an SM's port */
    double weights_ns;  /* reading what registers don't hold of the weights */
    double product_ns, cell_ns;
    double step_ns;     /* at most wait + the longest of the three + cell */
    double steps;       /* that follow each other: T, and L - 1 more of a wavefront; both passes */
    double input_ns;    /* all products that need not wait for a step, at their peak */
    double products_ns; /* all products, likewise */
    double memory_ns; /* all bytes through the cache, and through memory those that it can't keep */
    double total_ns;  /* the floor */
};

/* What else of a run decides. Zeroed: hot caches, and full rows or, of ragged ones, the fewest
 * steps that they can have. */
struct lb_lower_bound_run {
    bool cold;        /* the cache is emptied before each call */
    double row_steps; /* of ragged rows, the sum of their lengths; 0: not known */
};

/* The floor of one timed call. */
void lb_lower_bound_of(const struct lb_machine *machine, const struct lb_device_info *device,
                       const struct lb_problem *problem, const struct lb_lower_bound_run *run,
                       struct lb_lower_bound *floor);

#ifdef __cplusplus
}
#endif
#endif
