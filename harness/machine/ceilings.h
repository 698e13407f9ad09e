/* What a machine was measured to do at best: see measure/ceilings_measure.h. A run keeps the
 * figures in its header. */
#ifndef LB_CEILINGS_H
#define LB_CEILINGS_H

#include <jansson.h>
#include <stdio.h>

#include "machine/machine.h"

/* Rates of GEMMs, by dtype and by math of f32; of a CPU, of multiply-adds in registers. */
enum lb_figure {
    LB_FLOPS, /* + enum lb_dtype */
    LB_TF32_FLOPS = LB_FLOPS + LB_DTYPE_COUNT,
    LB_HALF_FLOPS,
    LB_READ, /* + enum lb_level: bytes per second; of a GPU, read and written by a copy */
    LB_PEER_NS = LB_READ + LB_LEVEL_COUNT, /* a core waits for a store of a core of its cluster, */
    LB_FAR_NS,                             /* of any core */
    LB_BARRIER_NS,                         /* of all cores */
    LB_CLUSTER_BARRIER_NS,
    LB_LAUNCH_NS,     /* per empty kernel, each launched by a call of its own */
    LB_GRAPH_NODE_NS, /* per empty kernel, as a node of a graph */
    LB_EVENT_NS,      /* between two events with nothing between them */
    LB_FIGURE_COUNT
};

/* Figures that were not measured are NaN. */
struct lb_ceilings {
    char of[64];                  /* the GPU's uuid, or "cpu" */
    int cores;                    /* that `all` is of */
    double all[LB_FIGURE_COUNT];  /* of all cores together */
    double core[LB_FIGURE_COUNT]; /* of one core of a CPU */
};

/* No figures of that machine yet. */
void lb_ceilings_clear(struct lb_ceilings *ceilings, const char *of, int cores);

/* To a new JSON object {of, cores, all: {}, core: {}} of the measured figures, and back. */
json_t *lb_ceilings_to_json(const struct lb_ceilings *ceilings);
void lb_ceilings_from_json(const json_t *object, struct lb_ceilings *ceilings);

/* Replaces figures of the machine by measured ones that are better, or that the machine lacks. */
void lb_machine_measured(struct lb_machine *machine, const struct lb_ceilings *ceilings);

/* Prints each measured figure, with the published one of the machine beside it (NULL: none). */
void lb_ceilings_print_figures(FILE *to, const struct lb_ceilings *ceilings,
                               const struct lb_machine *published);

/* The ceilings of this process's machines, for all that follows; of a GPU when `gpu`, else of the
 * CPUs. Initially none. */
void lb_ceilings_assume(bool gpu, const struct lb_ceilings *ceilings);
const struct lb_ceilings *lb_ceilings_assumed(bool gpu); /* NULL: none */

/* Assumes those of an array of such objects, a header's environment.ceilings. */
void lb_ceilings_assume_all(const json_t *list);

#endif
