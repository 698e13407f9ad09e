/* How the CPUs of a machine share cores, third-level caches and memory. */
#ifndef LB_CPU_TOPOLOGY_H
#define LB_CPU_TOPOLOGY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    LB_CPU_MAX = 1024,      /* as many CPUs as an affinity set of the C library has room for */
    LB_CPU_LIST_SIZE = 4096 /* bytes of a list of CPUs, "0-3,8": room for every other CPU */
};

/* Where a CPU of the system is. A core with hyper-threads is several CPUs. */
struct lb_cpu_place {
    int cpu;     /* the system's number */
    int core;    /* the first CPU of its core */
    int domain;  /* the first CPU that shares its third-level cache; the node where there is none */
    int node;    /* NUMA node */
    int sibling; /* 0 for one CPU of each core; 1, 2, ... for its further hyper-threads */
    bool small;  /* an efficiency core of a machine that has faster ones */
};

struct lb_cpu_topology {
    bool known; /* the system says; otherwise each CPU counts as a core, all in one domain */
    size_t count, cores, domains, nodes;
    double domain_bytes; /* of one third-level cache; NaN where the system does not say */
    /* In the order in which threads take CPUs: one per core first, then the second of each core,
     * and so on; among these by node, domain and core, so that neighbours share caches. Small cores
     * come after all others. */
    struct lb_cpu_place places[LB_CPU_MAX];
};

/* Reads a list as the kernel writes it, "0-3,8". False when the text is none or names CPUs from
 * LB_CPU_MAX on; listed then has those before the mistake that are below. */
bool lb_cpu_list_read(const char *text, bool listed[LB_CPU_MAX]);

/* Bytes of the third-level caches that the first `threads` CPUs have together; NaN where the size
 * is not known. */
double lb_cpu_topology_l3_bytes(const struct lb_cpu_topology *topology, size_t threads);

/* Reads the CPUs `usable` (LB_CPU_MAX flags; NULL: all that are there) below a folder such as
 * "/sys/devices/system". Where the folder says nothing of them, known is false, and the places are
 * those of the usable CPUs. */
void lb_cpu_topology_read(const char *folder, const bool *usable, struct lb_cpu_topology *topology);

/* Marks `count` CPUs for a case, or all where there are fewer: one CPU of each of the last cores,
 * because the first CPUs take most interrupts; then, when these are too few, a second CPU of the
 * last cores, and so on; small cores after all others. */
void lb_cpu_topology_take(const struct lb_cpu_topology *topology, size_t count,
                          bool taken[LB_CPU_MAX]);

/* The CPUs of this machine that the calling thread may use now, at least one; where the system does
 * not say, all whose numbers are below LB_CPU_MAX. No other thread may make the first call at the
 * same time. */
void lb_cpu_topology_here(struct lb_cpu_topology *topology);

/* Bytes of CPU 0's data cache of a level from 1 to 4; 0 where the system does not say. */
size_t lb_cpu_cache_bytes(int level);

/* Size of the largest CPU cache in bytes; 32 MiB where the system does not say. */
size_t lb_host_cache_bytes(void);

/* A made-up topology for planning. All counts are totals, each a multiple of the one after it. */
void lb_cpu_topology_make(size_t cpus, size_t cores, size_t domains, size_t nodes,
                          double domain_bytes, struct lb_cpu_topology *topology);

/* A new object for the record of a run; from_system is false where its numbers are assumptions. */
json_t *lb_cpu_topology_to_json(const struct lb_cpu_topology *topology);

#endif
