/* One description of a machine, CPU or GPU: the figures with which the lower bound and the cost
 * models calculate. machines.txt and files of the user describe machines as MACHINES.md explains.
 */
#ifndef LB_MACHINE_H
#define LB_MACHINE_H

#include "api/problem.h"
#include "device/device.h"
#include "host/cpu_topology.h"
#include "host/cpu_units.h"

/* What holds data, from near to far. */
enum lb_level {
    LB_INNER,  /* registers of a GPU's core, first-level cache of a CPU's */
    LB_OWN,    /* the core's own: shared memory, or the L2 cache */
    LB_CACHE,  /* the L2 cache of a GPU, the third-level caches of a CPU */
    LB_MEMORY, /* of the GPU, or of all NUMA nodes */
    LB_LEVEL_COUNT
};

/* Rates and sizes are 0 where they are not known, and then limit nothing. A GPU's cores are its
 * multiprocessors (SMs). */
struct lb_machine {
    char label[64];   /* "h100", or the name in the file that describes the machine */
    char name[64];    /* "NVIDIA H100 80GB HBM3" */
    char matches[64]; /* a word of the names of such GPUs: "H100" */
    bool cpu;
    int major, minor; /* compute capability of a GPU */
    int cores;
    int cluster;          /* most cores that exchange data by the nearer way; 0: none */
    int threads_per_core; /* of a CPU, as are the next two; 1 on a GPU */
    int domains, nodes;   /* third-level caches; NUMA nodes */
    enum lb_cpu_unit units[LB_DTYPE_COUNT]; /* of a CPU: the unit that flops_clock is of */
    double clock_hz, clock_max_hz;          /* during long runs of all cores, and the highest */
    double flops_clock[LB_DTYPE_COUNT];     /* of GEMMs, per clock and core */
    double tf32_flops_clock;
    double flops_s[LB_DTYPE_COUNT];     /* of all cores together, where that is less */
    double bytes[LB_LEVEL_COUNT];       /* inner and own: of a core; cache: of a domain */
    double bytes_clock[LB_LEVEL_COUNT]; /* read by a core per clock */
    double bytes_s[LB_LEVEL_COUNT];     /* read by all cores together */
    double peer_bytes_clock;            /* received by a core from its cluster */
    /* Clocks from a core's store until another core sees it: of the same cluster, of another one,
     * of another NUMA node. */
    double peer_clocks, far_clocks, remote_clocks;
    double cell_clocks; /* latency of the pointwise work of a cell */
    int tile_rows;      /* rows that a core multiplies at once, in types faster than f32 */
};

/* A known machine by its label, such as "h100", or by the path of a file that describes it, which
 * is any text with a '/' or a '.'. LB_INVALID lists the known names, or names the line and key of
 * the file that is wrong. LB_IO: the file cannot be read. */
enum lb_status lb_machine_read(const char *name, struct lb_machine *machine, struct lb_error *err);

/* The figures of the known GPU, or of the one of the file that was read last, that the device's
 * name names, with the device's own sizes. LB_UNSUPPORTED names the known ones; *machine then has
 * the device's sizes only. */
enum lb_status lb_machine_of(const struct lb_device_info *device, struct lb_machine *machine,
                             struct lb_error *err);

/* What CUDA would say of a GPU that lb_machine_read reads. LB_INVALID also for a CPU. */
enum lb_status lb_device_model(const char *name, struct lb_device_info *info, struct lb_error *err);

/* This machine's CPUs: counts, caches and units. usual: the other figures are those of a usual CPU,
 * for planning; else they are not known. */
void lb_machine_here(const struct lb_cpu_topology *topology, bool usual,
                     struct lb_machine *machine);

/* The topology of a CPU that need not be there. */
void lb_machine_topology(const struct lb_machine *machine, struct lb_cpu_topology *topology);

/* The CPU that --device-model names, for everything that follows; at first none (NULL). */
void lb_cpu_assume(const struct lb_machine *machine);
const struct lb_machine *lb_cpu_assumed(void);

/* Flops per second of so many cores at the highest clock, in the problem's dtype and math; 0: not
 * known. */
double lb_machine_flops_s(const struct lb_machine *machine, const struct lb_problem *problem,
                          double cores);

/* Bytes per second that so many cores read from the level at that clock; INFINITY: not known. */
double lb_machine_read_s(const struct lb_machine *machine, enum lb_level level, double cores,
                         double clock_hz);

/* "registers", "L3", ... */
const char *lb_level_name(const struct lb_machine *machine, enum lb_level level);
#endif
