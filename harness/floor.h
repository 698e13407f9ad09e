/* The floor of a problem on a device: the least time that any implementation could take, by a model
 * of what a step must wait for. Rows are reported as multiples of it.
 *
 *   floor = max(input products / peak + steps in a row * t_step, bytes / bandwidth)
 *   t_step = exchange of h + reading the recurrent weights from where they rest + product + cell
 *
 * The model knows nothing of launches, tails or conflicts: it errs towards too little. Its figures
 * are published ones, per device in floor.c, or measured ones where those are better. */
#ifndef LB_FLOOR_H
#define LB_FLOOR_H

#include "ceilings.h"
#include "device.h"
#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the model knows of a device. Clocks are those of a multiprocessor (SM). */
struct lb_machine {
    const char *name; /* "h100"; part of the device's own name in capitals */
    double clock_hz;
    double memory_bytes_s, l2_bytes_s;
    double
        flops_clock[LB_DTYPE_COUNT]; /* of an SM: products in this dtype, tensor cores for halves */
    double tf32_flops_clock;
    double shared_bytes_clock; /* read by an SM from its shared memory */
    double peer_bytes_clock;   /* received by an SM from its cluster; 0: no clusters */
    double peer_clocks;        /* from a store to a peer until its waiter goes on */
    double l2_bytes_clock;     /* read by an SM from the second-level cache */
    double l2_clocks;          /* from a store to global memory until another SM's waiter goes on */
    double node_ns;            /* two nodes of a graph, one after the other */
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
enum lb_rest {
    LB_REST_CLUSTER, /* registers and shared memory of a cluster's SMs */
    LB_REST_DEVICE,  /* registers and shared memory of all SMs */
    LB_REST_CACHE,   /* the second-level cache, read anew each step */
    LB_REST_MEMORY   /* device memory, likewise */
};

const char *lb_rest_name(enum lb_rest rest); /* "one cluster's SMs", ... */

struct lb_floor {
    enum lb_rest rest;                                   /* the best of those that fit; forward */
    int sms;                                             /* that hold one copy of the weights */
    double exchange_ns, weights_ns, product_ns, cell_ns; /* of a forward step */
    double step_ns;                                      /* their sum */
    double steps;     /* that follow each other: T, and L - 1 more of a wavefront; both passes */
    double input_ns;  /* all products that need not wait for a step */
    double memory_ns; /* bytes / bandwidth */
    double total_ns;  /* the floor */
};

/* The floor of one timed call. */
void lb_floor_of(const struct lb_machine *machine, const struct lb_device_info *device,
                 const struct lb_problem *problem, struct lb_floor *floor);

#ifdef __cplusplus
}
#endif
#endif
