/* Which CPUs a case runs on, and which serve which device of the PCI bus: those of the device's
 * NUMA node, divided among the devices of that node. */
#ifndef LB_CPU_AFFINITY_H
#define LB_CPU_AFFINITY_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"
#include "host/cpu_topology.h"

/* Pins the calling thread, and threads that it starts later, to `count` of the CPUs that the
 * process could use at the first call, in the order of lb_cpu_topology_take. part: how many times
 * as many CPUs it leaves out before, for other threads. When there are fewer CPUs, or the system
 * refuses, the thread may use all of them. Describes the choice in text: "CPU 3", "CPUs 2-3", "any
 * CPU". One call at a time. */
void lb_pin(int count, int part, char *text, size_t size);

/* Lets the calling thread use all CPUs again. */
void lb_unpin(void);

/* Calls work while the calling thread may use all CPUs, and then pins it as it was. Threads that
 * work starts stay unpinned. */
void lb_while_unpinned(void (*work)(void *user), void *user);

/* Runs on a CPU. last: no CPU that shares its third-level cache is visited after it. */
typedef void lb_cpu_visit(void *user, bool last);

/* Calls visit on each CPU that lb_pin gave to the case, even if the thread was bound to fewer of
 * them since, and on the current CPU last; only there where nothing is pinned, or to one CPU. */
void lb_visit_cpus(lb_cpu_visit *visit, void *user);

/* The CPUs of one device. */
struct lb_device_cpus {
    char list[LB_CPU_LIST_SIZE]; /* as the kernel writes lists: "0-3,8" */
    int node;                    /* NUMA node; -1: unknown, or the machine has only one */
    bool shared;                 /* the node has fewer cores than devices, so they share all */
};

/* Writes the CPUs that the calling thread may use, as a list; "" when the system does not say. */
void lb_allowed_cpus(char list[LB_CPU_LIST_SIZE]);

/* Binds the calling thread, and what it starts from now on, to the CPUs of the list. False: the
 * text is no list of CPUs, or the system refuses. */
bool lb_bind_cpus(const char *list);

/* Divides the CPUs in the list `allowed` among devices, into cpus [count]. addresses [count]: on
 * the PCI bus, such as "0000:3b:00.0"; "": unknown. Each device gets whole cores of its own from
 * its NUMA node. When the node of any device is unknown, or has no allowed CPU, all allowed CPUs
 * count as one node. root: "", or for tests a folder with another /sys. LB_INVALID: allowed is no
 * list. */
enum lb_status lb_divide_cpus(const char *root, const char *allowed, const char *const *addresses,
                              size_t count, struct lb_device_cpus *cpus, struct lb_error *err);

#endif
