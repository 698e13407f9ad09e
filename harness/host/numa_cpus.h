/* Which CPUs serve which device of the PCI bus: those of the device's NUMA node, divided among the
 * devices of that node. */
#ifndef LB_NUMA_CPUS_H
#define LB_NUMA_CPUS_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"
#include "host/cpu_topology.h"

/* The CPUs of one device. */
struct lb_device_cpus {
    char list[LB_CPU_LIST_SIZE]; /* as the kernel writes lists: "0-3,8" */
    int node;                    /* NUMA node; -1: unknown, or the machine has only one */
    bool shared;                 /* the node has fewer cores than devices, so they share all */
};

/* Writes the CPUs that the calling thread may use, as a list; "" when the system does not say. */
void lb_allowed_cpus(char list[LB_CPU_LIST_SIZE]);

/* Binds the calling thread, and the threads and processes that it starts from now on, to the CPUs
 * of the list. False: the text is no list of CPUs, or the system refuses. */
bool lb_bind_cpus(const char *list);

/* Divides the CPUs in the list `allowed` among devices. addresses [count]: on the PCI bus, such as
 * "0000:3b:00.0"; "": unknown. Each device gets whole cores of its own, with all their hardware
 * threads, from its NUMA node. When the node of any device is unknown, or has no allowed CPU, all
 * allowed CPUs count as one node. cpus [count] receives the result. root: "", or for tests a folder
 * with another /sys. LB_INVALID: allowed is no list, or is empty. */
enum lb_status lb_divide_cpus(const char *root, const char *allowed, const char *const *addresses,
                              size_t count, struct lb_device_cpus *cpus, struct lb_error *err);

#endif
