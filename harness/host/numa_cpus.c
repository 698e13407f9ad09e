/* Which CPUs serve which device of the PCI bus. */
#include "host/numa_cpus.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Reads a list such as "0-3,8". False when the text is none. */
static bool parse_list(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    for (const char *at = text;; at++) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (end == at || *at < '0' || *at > '9')
            return false;
        if (*end == '-') {
            at = end + 1;
            last = strtoul(at, &end, 10);
            if (end == at)
                return false;
        }
        if (first > last || last >= CPU_SETSIZE)
            return false;
        for (unsigned long cpu = first; cpu <= last; cpu++)
            CPU_SET(cpu, set);
        at = end;
        if (*at != ',')
            return *at == '\0' || *at == '\n';
    }
}

/* Writes the set as such a list; "" when it does not fit. */
static void print_list(const cpu_set_t *set, char list[LB_CPU_LIST_SIZE])
{
    size_t used = 0;
    list[0] = '\0';
    for (size_t first = 0; first < CPU_SETSIZE; first++) {
        size_t last = first;
        if (!CPU_ISSET(first, set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
            last++;
        used += (size_t)snprintf(list + used, LB_CPU_LIST_SIZE - used,
                                 first == last ? "%s%zu" : "%s%zu-%zu", used > 0 ? "," : "", first,
                                 last);
        if (used >= LB_CPU_LIST_SIZE) {
            list[0] = '\0';
            return;
        }
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
    cpu_set_t set;
    return parse_list(list, &set) && sched_setaffinity(0, sizeof(set), &set) == 0;
}

/* Reads the first line of the file at root and path; "" where there is none. */
static void read_line(const char *root, const char *path, char *line, size_t size)
{
    char whole[4352];
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    (void)lb_read_line(whole, line, size);
}

/* The NUMA node of the device at that address; -1: unknown. */
static int node_of(const char *root, const char *address)
{
    char path[128], line[32], *end;
    if (!address[0])
        return -1;
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.64s/numa_node", address);
    read_line(root, path, line, sizeof(line));
    long node = strtol(line, &end, 10);
    return end == line || node < 0 || node > 65535 ? -1 : (int)node;
}

/* The allowed CPUs of the node; -1: all allowed ones. False when there are none. */
static bool cpus_of_node(const char *root, int node, const cpu_set_t *allowed, cpu_set_t *set)
{
    char path[64], line[LB_CPU_LIST_SIZE];
    *set = *allowed;
    if (node < 0)
        return true;
    snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
    read_line(root, path, line, sizeof(line));
    if (!parse_list(line, set))
        return false;
    CPU_AND(set, set, allowed);
    return CPU_COUNT(set) > 0;
}

/* The hardware threads of the CPU's core; the CPU alone where the system does not say. */
static void core_of(const char *root, size_t cpu, cpu_set_t *core)
{
    char path[96], line[LB_CPU_LIST_SIZE];
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
             cpu);
    read_line(root, path, line, sizeof(line));
    if (!parse_list(line, core) || !CPU_ISSET(cpu, core)) {
        CPU_ZERO(core);
        CPU_SET(cpu, core);
    }
}

/* Cuts a node's CPUs into `parts` parts of whole cores and writes part number `part`. False when
 * there are fewer cores than parts. */
static bool cut(const char *root, const cpu_set_t *node, size_t parts, size_t part, cpu_set_t *own)
{
    static const size_t none = CPU_SETSIZE;
    size_t core_number[CPU_SETSIZE], cores = 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        core_number[cpu] = none;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        cpu_set_t core;
        if (!CPU_ISSET(cpu, node) || core_number[cpu] != none)
            continue;
        core_of(root, cpu, &core);
        for (size_t other = cpu; other < CPU_SETSIZE; other++)
            if (CPU_ISSET(other, &core) && CPU_ISSET(other, node))
                core_number[other] = cores;
        cores++;
    }
    CPU_ZERO(own);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (core_number[cpu] != none && core_number[cpu] >= part * cores / parts &&
            core_number[cpu] < (part + 1) * cores / parts)
            CPU_SET(cpu, own);
    return cores >= parts;
}

enum lb_status lb_divide_cpus(const char *root, const char *allowed, const char *const *addresses,
                              size_t count, struct lb_device_cpus *cpus, struct lb_error *err)
{
    cpu_set_t all, node, own;
    bool known = true;
    if (!parse_list(allowed, &all))
        return lb_fail(err, LB_INVALID, "'%.80s' is not a list of CPUs", allowed);
    for (size_t i = 0; i < count; i++) {
        cpus[i].node = node_of(root, addresses[i]);
        known = known && cpus[i].node >= 0 && cpus_of_node(root, cpus[i].node, &all, &node);
    }
    for (size_t i = 0; i < count && !known; i++)
        cpus[i].node = -1;
    for (size_t i = 0; i < count; i++) {
        size_t parts = 0, part = 0;
        for (size_t k = 0; k < count; k++) {
            parts += cpus[k].node == cpus[i].node;
            part += k < i && cpus[k].node == cpus[i].node;
        }
        cpus_of_node(root, cpus[i].node, &all, &node);
        cpus[i].shared = !cut(root, &node, parts, part, &own);
        if (cpus[i].shared)
            own = node;
        print_list(&own, cpus[i].list);
    }
    return LB_OK;
}
