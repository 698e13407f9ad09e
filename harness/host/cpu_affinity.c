/* Which CPUs a case runs on, and which serve which device. */
#include "host/cpu_affinity.h"

#include <sched.h>
#include <stdio.h>

#include "base/text.h"

static cpu_set_t all; /* the CPUs that this process could use at the first call */
static bool known;
static struct lb_cpu_topology topology; /* of these CPUs */
static cpu_set_t given; /* the CPUs of the current case; none while nothing is pinned */

static bool look(void)
{
    if (!known) {
        known = sched_getaffinity(0, sizeof(all), &all) == 0;
        lb_cpu_topology_here(&topology);
    }
    return known;
}

static void take(int count, cpu_set_t *some)
{
    bool taken[LB_CPU_MAX];
    lb_cpu_topology_take(&topology, (size_t)count, taken);
    CPU_ZERO(some);
    for (size_t cpu = 0; cpu < LB_CPU_MAX; cpu++)
        if (taken[cpu])
            CPU_SET(cpu, some);
}

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

void lb_pin(int count, int part, char *text, size_t size)
{
    cpu_set_t some, before;
    char list[LB_CPU_LIST_SIZE];
    snprintf(text, size, "any CPU");
    if (!look())
        return;
    given = all;
    if (CPU_COUNT(&all) / (part + 1) < count)
        return;
    take(count * part, &before);
    take(count * (part + 1), &some);
    CPU_XOR(&some, &some, &before);
    if (sched_setaffinity(0, sizeof(some), &some) != 0)
        return;
    given = some;
    lb_allowed_cpus(list);
    snprintf(text, size, count == 1 ? "CPU %s" : "CPUs %s", list);
}

void lb_unpin(void)
{
    CPU_ZERO(&given);
    if (known)
        sched_setaffinity(0, sizeof(all), &all);
}

void lb_while_unpinned(void (*work)(void *user), void *user)
{
    cpu_set_t before;
    bool pinned = known && sched_getaffinity(0, sizeof(before), &before) == 0;
    if (pinned)
        sched_setaffinity(0, sizeof(all), &all);
    work(user);
    if (pinned)
        sched_setaffinity(0, sizeof(before), &before);
}

/* Identifies a CPU's third-level cache by the first CPU that shares it; the CPU itself where the
 * process could not use it at the first call. */
static size_t cache_of(size_t cpu)
{
    for (size_t i = 0; i < topology.count; i++)
        if ((size_t)topology.places[i].cpu == cpu)
            return (size_t)topology.places[i].domain;
    return cpu;
}

/* Of the given CPUs that share a CPU's cache, the one to visit last: `here`, or else the first. */
static size_t last_of_cache(size_t cpu, size_t here)
{
    size_t cache = cache_of(cpu), last = 0;
    if (cache_of(here) == cache)
        return here;
    while (!CPU_ISSET(last, &given) || cache_of(last) != cache)
        last++;
    return last;
}

static void visit_on(size_t cpu, lb_cpu_visit *visit, void *user, bool last)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) == 0)
        visit(user, last);
}

void lb_visit_cpus(lb_cpu_visit *visit, void *user)
{
    cpu_set_t before;
    int cpu = sched_getcpu();
    if (CPU_COUNT(&given) < 2 || cpu < 0 || cpu >= CPU_SETSIZE ||
        sched_getaffinity(0, sizeof(before), &before) != 0) {
        visit(user, true);
        return;
    }
    size_t here = (size_t)cpu;
    for (int last = 0; last < 2; last++)
        for (size_t other = 0; other < CPU_SETSIZE; other++)
            if (other != here && CPU_ISSET(other, &given) &&
                (other == last_of_cache(other, here)) == (last == 1))
                visit_on(other, visit, user, last == 1);
    visit_on(here, visit, user, true);
    sched_setaffinity(0, sizeof(before), &before);
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
static int node_of(const char *root, const char *address, const struct lb_cpu_topology *machine)
{
    char path[4352];
    snprintf(path, sizeof(path), "%.4000s/sys/bus/pci/devices/%.64s/numa_node", root, address);
    double node = lb_read_number(path, "");
    for (size_t i = 0; i < machine->count; i++)
        if (machine->places[i].node == node)
            return machine->places[i].node;
    return -1;
}

/* Writes the CPUs of part number `part` of a node (-1: of all nodes), which is cut into `parts`
 * parts of whole cores. False when there are fewer cores than parts; each part is then the whole.
 */
static bool cut(const struct lb_cpu_topology *machine, int node, size_t parts, size_t part,
                char list[LB_CPU_LIST_SIZE])
{
    size_t core_number[LB_CPU_MAX] = {0}, cores = 0;
    cpu_set_t own;
    CPU_ZERO(&own);
    for (size_t i = 0; i < machine->count; i++) {
        const struct lb_cpu_place *place = &machine->places[i];
        if ((node < 0 || place->node == node) && place->sibling == 0)
            core_number[place->core] = cores++;
    }
    for (size_t i = 0; i < machine->count; i++) {
        const struct lb_cpu_place *place = &machine->places[i];
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
    struct lb_cpu_topology machine;
    bool usable[LB_CPU_MAX], all_known = true;
    char folder[4352];
    if (!lb_cpu_list_read(allowed, usable))
        return lb_fail(err, LB_INVALID, "'%.80s' is not a list of CPUs", allowed);
    snprintf(folder, sizeof(folder), "%.4000s/sys/devices/system", root);
    lb_cpu_topology_read(folder, usable, &machine);
    for (size_t i = 0; i < count; i++) {
        cpus[i].node = node_of(root, addresses[i], &machine);
        all_known = all_known && cpus[i].node >= 0;
    }
    for (size_t i = 0; i < count && !all_known; i++)
        cpus[i].node = -1;
    for (size_t i = 0; i < count; i++) {
        size_t parts = 0, part = 0;
        for (size_t k = 0; k < count; k++) {
            parts += cpus[k].node == cpus[i].node;
            part += k < i && cpus[k].node == cpus[i].node;
        }
        cpus[i].shared = !cut(&machine, cpus[i].node, parts, part, cpus[i].list);
    }
    return LB_OK;
}
