/* CPUs that are known without being there: the figures that cost model and lower bound calculate
 * with. CPU_MODELS.md says how a file describes another one. */
#ifndef LB_CPU_MODELS_H
#define LB_CPU_MODELS_H

#include "host/cpu_ceilings.h"
#include "host/cpu_topology.h"

struct lb_cpu_machine {
    char name[64];
    int cores, threads_per_core, domains, nodes;           /* totals; domains: third-level caches */
    enum lb_cpu_unit unit, f16_unit, bf16_unit;            /* of f64 and f32; of f16; of bf16 */
    double clock_hz;                                       /* that all cores keep */
    double flops_clock[LB_DTYPE_COUNT];                    /* per core and clock, in that unit */
    double l1_bytes, l2_bytes, l3_bytes;                   /* of a core, of a core, of a domain */
    double l1_bytes_clock, l2_bytes_clock, l3_bytes_clock; /* read by a core per clock */
    double memory_bytes_s, core_memory_bytes_s;            /* of the machine, of one core */
    /* From a core's store until another core sees it: a core of the same domain, of another
     * domain of the same node, of another node. */
    double core_ns, domain_ns, node_ns;
};

/* A machine by its short name, such as "epyc9654", or by the path of a file that describes it,
 * which is any text with a '/' or a '.'. LB_INVALID lists the known names, or names the line and
 * key of the file that is wrong; LB_IO: the file cannot be read. */
enum lb_status lb_cpu_model(const char *name, struct lb_cpu_machine *machine, struct lb_error *err);

/* Whether that names a known CPU, or a file that describes a CPU: one with the key `cores`, or
 * `like = NAME` with a known CPU. */
bool lb_cpu_model_is(const char *name);

/* "epyc9654, xeon8480, ..." */
void lb_cpu_model_names(char *names, size_t size);

/* What would be measured on the machine and read from its system. With n threads they are on the
 * first n cores. */
void lb_cpu_machine_ceilings(const struct lb_cpu_machine *machine,
                             struct lb_cpu_ceilings *ceilings);
void lb_cpu_machine_topology(const struct lb_cpu_machine *machine,
                             struct lb_cpu_topology *topology);

/* The ceilings of this machine for planning: measured figures, and figures of a usual CPU
 * with the same units and caches wherever there are none. Returns whether they were measured. */
bool lb_cpu_ceilings_assume(const struct lb_cpu_topology *topology,
                            struct lb_cpu_ceilings *ceilings);

/* The machine that --device-model names, for everything that follows; NULL: this one. */
void lb_cpu_assume(const struct lb_cpu_machine *machine);
const struct lb_cpu_machine *lb_cpu_assumed(void);

#endif
