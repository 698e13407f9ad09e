/* How the steps of an LSTM are divided among the threads of a CPU, by a cost model. cpu_simd works
 * as it says, and --explain prints it. The rows of the batch are divided among teams of consecutive
 * threads of the topology, and in each team the hidden units among its threads, which meet at a
 * barrier per step. */
#ifndef LB_CPU_PLAN_H
#define LB_CPU_PLAN_H

#include "machine/machine.h"

/* What is planned, and for which machine. */
struct lb_cpu_task {
    const struct lb_problem *problem;
    const struct lb_cpu_topology *topology;
    const struct lb_machine *machine; /* published figures, or those of lb_machine_here */
    int threads;                      /* at most topology->count */
    size_t simd_width;                /* hidden units of a panel: lb_cpu_simd_width */
};

/* The predicted time of one step of one layer and direction, of the thread with the most work.
 *
 *   total = max(gemm, weights) + min(gemm, weights) / 4 + cell + operands + exchange + barrier */
struct lb_cpu_step_cost {
    double gemm_ns; /* at the unit's rate, or at the rate at which an inner cache gives weights */
    double weights_ns;  /* reading weights that the L2 cache does not hold; prefetch hides most */
    double cell_ns;     /* sigmoid, tanh and the state */
    double operands_ns; /* bf16 and f16: writing the rows that the unit multiplies */
    double exchange_ns; /* reading what other threads of the team have written */
    double barrier_ns;
    double total_ns;
};

struct lb_cpu_plan {
    int threads; /* that work: teams * team_size, at most as many as were asked for */
    int teams;   /* parts of the batch rows */
    int team_size;
    int group_panels;        /* panels of a group that a backward step computes: 4, 2 or 1 */
    int copies;              /* of the packed weights: one per node, or one for all */
    int team_domains;        /* third-level caches that a team spans, at most */
    enum lb_level residency; /* the level that holds the recurrent weights of a thread */
    struct lb_cpu_step_cost forward, backward;
    double total_ns; /* of a call: all layers and steps, and the GEMMs over all steps */
};

/* Items [from, to). */
struct lb_cpu_range {
    size_t from, to;
};

/* The part of n items that the part'th of `parts` has. */
static inline struct lb_cpu_range lb_cpu_share(size_t n, size_t parts, size_t part)
{
    return (struct lb_cpu_range){n * part / parts, n * (part + 1) / parts};
}

/* The fastest plan by the model. */
void lb_cpu_plan_of(const struct lb_cpu_task *task, struct lb_cpu_plan *plan);

/* The plan with these teams, of which no thread is without work. */
void lb_cpu_plan_with(const struct lb_cpu_task *task, int teams, int team_size,
                      struct lb_cpu_plan *plan);

/* The index of a thread's copy of the weights: the number of its node among those in use. */
int lb_cpu_plan_copy(const struct lb_cpu_plan *plan, const struct lb_cpu_topology *topology,
                     size_t thread);

/* How the GEMMs of weight gradients [panels, columns] are divided among threads: by panels, and
 * where that leaves threads without work or with unequal work, by blocks of columns too. */
struct lb_cpu_tiling {
    int panel_parts, column_parts;
};

struct lb_cpu_tiling lb_cpu_tiling_of(size_t panels, size_t column_blocks, int threads);

#endif
