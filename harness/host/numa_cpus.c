/* Which CPUs serve which device of the PCI bus. */
#include "host/numa_cpus.h"

#include <sched.h>
#include <stdio.h>

#include "base/text.h"
#include "host/system_file.h"

/* Writes the set as a list. */
static void print_list(const cpu_set_t *set, char list[LB_CPU_LIST_SIZE])
{
    list[0] = '\0';
    for (size_t first = 0; first < CPU_SETSIZE; first++) {
        size_t last = first;
        if (!CPU_ISSET(first, set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
            last++;
        lb_append(list, LB_CPU_LIST_SIZE, first == last ? "%s%zu" : "%s%zu-%zu", list[0] ? "," : "",
                  first, last);
        first = last;
    }
}

void lb_allowed_cpus(char list[LB_CPU_LIST_SIZE])
{
    cpu_set_t set;
    list[0] = '\0';
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        print_list(&set, list);
}

bool lb_bind_cpus(const char *list)
{
    bool listed[LB_CPU_MAX];
    cpu_set_t set;
    if (!lb_cpu_list_read(list, listed))
        return false;
    CPU_ZERO(&set);
    for (size_t cpu = 0; cpu < LB_CPU_MAX; cpu++)
        if (listed[cpu])
            CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set) == 0;
}

/* The NUMA node of the device at that address; -1: unknown, or none of the CPUs is there. */
static int node_of(const char *root, const char *address, const struct lb_cpu_topology *topology)
{
    char path[4352];
    snprintf(path, sizeof(path), "%.4000s/sys/bus/pci/devices/%.64s/numa_node", root, address);
    double node = lb_system_number(path, "");
    for (size_t i = 0; i < topology->count; i++)
        if (topology->places[i].node == node)
            return topology->places[i].node;
    return -1;
}

/* Writes the CPUs of part number `part` of a node (-1: of all nodes), which is cut into `parts`
 * parts of whole cores. False when there are fewer cores than parts; each part is then the whole.
 */
static bool cut(const struct lb_cpu_topology *topology, int node, size_t parts, size_t part,
                char list[LB_CPU_LIST_SIZE])
{
    size_t core_number[LB_CPU_MAX] = {0}, cores = 0;
    cpu_set_t own;
    CPU_ZERO(&own);
    for (size_t i = 0; i < topology->count; i++) {
        const struct lb_cpu_place *place = &topology->places[i];
        if ((node < 0 || place->node == node) && place->sibling == 0)
            core_number[place->core] = cores++;
    }
    for (size_t i = 0; i < topology->count; i++) {
        const struct lb_cpu_place *place = &topology->places[i];
        size_t number = core_number[place->core];
        bool in_part = number >= part * cores / parts && number < (part + 1) * cores / parts;
        if ((node < 0 || place->node == node) && (in_part || cores < parts))
            CPU_SET((size_t)place->cpu, &own);
    }
    print_list(&own, list);
    return cores >= parts;
}

enum lb_status lb_divide_cpus(const char *root, const char *allowed, const char *const *addresses,
                              size_t count, struct lb_device_cpus *cpus, struct lb_error *err)
{
    struct lb_cpu_topology topology;
    bool usable[LB_CPU_MAX], known = true;
    char folder[4352];
    if (!lb_cpu_list_read(allowed, usable))
        return lb_fail(err, LB_INVALID, "'%.80s' is not a list of CPUs", allowed);
    snprintf(folder, sizeof(folder), "%.4000s/sys/devices/system", root);
    lb_cpu_topology_read(folder, usable, &topology);
    for (size_t i = 0; i < count; i++) {
        cpus[i].node = node_of(root, addresses[i], &topology);
        known = known && cpus[i].node >= 0;
    }
    for (size_t i = 0; i < count && !known; i++)
        cpus[i].node = -1;
    for (size_t i = 0; i < count; i++) {
        size_t parts = 0, part = 0;
        for (size_t k = 0; k < count; k++) {
            parts += cpus[k].node == cpus[i].node;
            part += k < i && cpus[k].node == cpus[i].node;
        }
        cpus[i].shared = !cut(&topology, cpus[i].node, parts, part, cpus[i].list);
    }
    return LB_OK;
}
