/* How the CPUs of a machine share cores, third-level caches and memory, as Linux says below
 * /sys/devices/system. */
#include "host/cpu_topology.h"

#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool lb_cpu_list_read(const char *text, bool listed[LB_CPU_MAX])
{
    bool fits = true;
    memset(listed, 0, LB_CPU_MAX * sizeof(*listed));
    for (const char *at = text;; at++) {
        char *end;
        if (!isdigit((unsigned char)*at))
            return false;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-' && isdigit((unsigned char)end[1]))
            last = strtoul(end + 1, &end, 10);
        if (first > last)
            return false;
        fits = fits && last < LB_CPU_MAX;
        for (unsigned long cpu = first; cpu <= last && cpu < LB_CPU_MAX; cpu++)
            listed[cpu] = true;
        at = end;
        if (*at != ',')
            return fits && (*at == '\0' || *at == '\n');
    }
}

/* The first line of folder/kind/kindN/name; "" when there is none. */
static void read_line(const char *folder, const char *kind, size_t number, const char *name,
                      char line[LB_CPU_LIST_SIZE])
{
    char path[512];
    snprintf(path, sizeof(path), "%.300s/%s/%s%zu/%.100s", folder, kind, kind, number, name);
    lb_read_line(path, "", line, LB_CPU_LIST_SIZE);
}

/* The first number of a list, which names this CPU's peers; -1: it has none. */
static int first_peer(const char *folder, size_t cpu, const char *name)
{
    char line[LB_CPU_LIST_SIZE];
    bool peers[LB_CPU_MAX];
    read_line(folder, "cpu", cpu, name, line);
    lb_cpu_list_read(line, peers);
    for (int peer = 0; peer < LB_CPU_MAX; peer++)
        if (peers[peer])
            return peer;
    return -1;
}

/* How many CPUs or nodes the system may have: one more than the last number in
 * folder/KIND/possible; LB_CPU_MAX where it does not say. */
static size_t count_possible(const char *folder, const char *kind)
{
    char path[512], line[LB_CPU_LIST_SIZE];
    bool listed[LB_CPU_MAX];
    size_t count = LB_CPU_MAX;
    snprintf(path, sizeof(path), "%.300s/%s/possible", folder, kind);
    lb_read_line(path, "", line, sizeof(line));
    if (lb_cpu_list_read(line, listed))
        while (!listed[count - 1])
            count--;
    return count;
}

/* Sets the node of all CPUs that are in a list folder/node/nodeN/cpulist. */
static void read_nodes(const char *folder, int node_of[LB_CPU_MAX])
{
    size_t nodes = count_possible(folder, "node");
    for (size_t node = 0; node < nodes; node++) {
        char line[LB_CPU_LIST_SIZE];
        bool listed[LB_CPU_MAX];
        read_line(folder, "node", node, "cpulist", line);
        lb_cpu_list_read(line, listed);
        for (int cpu = 0; cpu < LB_CPU_MAX; cpu++)
            if (listed[cpu])
                node_of[cpu] = (int)node;
    }
}

/* The size of a cache, which the system writes as "32768K"; NaN where it does not say. index: 0 is
 * the first level's data cache, 2 and 3 are the second and the third level. */
static double read_cache_bytes(const char *folder, size_t cpu, int index)
{
    char name[32], line[LB_CPU_LIST_SIZE], unit = ' ';
    double size;
    snprintf(name, sizeof(name), "cache/index%d/size", index);
    read_line(folder, "cpu", cpu, name, line);
    if (sscanf(line, "%lf%c", &size, &unit) < 1)
        return (double)NAN;
    return size * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1);
}

/* Marks the small cores. Linux lists those of an Intel CPU. Of cores of Arm it tells the capacity;
 * small is at most 3/4 of the largest, because equal cores may differ a little in clock. */
static void find_small(const char *folder, struct lb_cpu_topology *topology)
{
    char path[512], line[LB_CPU_LIST_SIZE];
    bool atoms[LB_CPU_MAX];
    double capacities[LB_CPU_MAX], largest = 0;
    snprintf(path, sizeof(path), "%.300s/../cpu_atom/cpus", folder);
    lb_read_line(path, "", line, sizeof(line));
    lb_cpu_list_read(line, atoms);
    for (size_t i = 0; i < topology->count; i++) {
        snprintf(path, sizeof(path), "%.300s/cpu/cpu%d/cpu_capacity", folder,
                 topology->places[i].cpu);
        capacities[i] = lb_read_number(path, "");
        largest = fmax(largest, capacities[i]);
    }
    for (size_t i = 0; i < topology->count; i++)
        topology->places[i].small =
            atoms[topology->places[i].cpu] || capacities[i] <= 0.75 * largest;
}

static int compare_places(const void *a, const void *b)
{
    const struct lb_cpu_place *x = a, *y = b;
    const int keys[][2] = {{x->small, y->small},   {x->sibling, y->sibling}, {x->node, y->node},
                           {x->domain, y->domain}, {x->core, y->core},       {x->cpu, y->cpu}};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

/* Sorts the places and counts cores, domains and nodes. Places are in the order of their CPUs. */
static void finish(struct lb_cpu_topology *topology)
{
    bool domains[LB_CPU_MAX] = {false}, nodes[LB_CPU_MAX] = {false};
    int siblings[LB_CPU_MAX] = {0};
    topology->cores = topology->domains = topology->nodes = 0;
    /* The last CPU of a core comes first: the system's first CPUs take most interrupts. */
    for (size_t i = topology->count; i-- > 0;) {
        struct lb_cpu_place *place = &topology->places[i];
        place->sibling = siblings[place->core]++;
        topology->cores += place->sibling == 0;
        topology->domains += !domains[place->domain];
        topology->nodes += !nodes[place->node];
        domains[place->domain] = nodes[place->node] = true;
    }
    qsort(topology->places, topology->count, sizeof(topology->places[0]), compare_places);
}

double lb_cpu_topology_l3_bytes(const struct lb_cpu_topology *topology, size_t threads)
{
    bool seen[LB_CPU_MAX] = {false};
    double bytes = 0;
    for (size_t i = 0; i < threads && i < topology->count; i++) {
        bool *known = &seen[topology->places[i].domain];
        bytes += *known ? 0 : topology->domain_bytes;
        *known = true;
    }
    return bytes;
}

void lb_cpu_topology_read(const char *folder, const bool *usable, struct lb_cpu_topology *topology)
{
    int node_of[LB_CPU_MAX] = {0};
    size_t cpus = usable ? LB_CPU_MAX : count_possible(folder, "cpu");
    *topology = (struct lb_cpu_topology){.domain_bytes = (double)NAN};
    read_nodes(folder, node_of);
    for (size_t cpu = 0; cpu < cpus; cpu++) {
        int core = first_peer(folder, cpu, "topology/thread_siblings_list");
        if (usable ? !usable[cpu] : core < 0) /* a CPU that is offline has no topology */
            continue;
        int domain = first_peer(folder, cpu, "cache/index3/shared_cpu_list");
        topology->known |= core >= 0;
        if (domain >= 0 && isnan(topology->domain_bytes))
            topology->domain_bytes = read_cache_bytes(folder, cpu, 3);
        topology->places[topology->count++] =
            (struct lb_cpu_place){.cpu = (int)cpu,
                                  .core = core >= 0 ? core : (int)cpu,
                                  .domain = domain >= 0 ? domain : node_of[cpu],
                                  .node = node_of[cpu]};
    }
    find_small(folder, topology);
    finish(topology);
}

void lb_cpu_topology_take(const struct lb_cpu_topology *topology, size_t count,
                          bool taken[LB_CPU_MAX])
{
    const struct lb_cpu_place *places = topology->places;
    memset(taken, 0, LB_CPU_MAX * sizeof(*taken));
    for (size_t from = 0, to = 0; from < topology->count; from = to) {
        while (to < topology->count && places[to].small == places[from].small &&
               places[to].sibling == places[from].sibling)
            to++;
        for (size_t i = to; i-- > from && count > 0; count--)
            taken[places[i].cpu] = true;
    }
}

void lb_cpu_topology_here(struct lb_cpu_topology *topology)
{
    /* The whole machine does not change while a process runs; what the thread may use does. */
    static struct lb_cpu_topology machine;
    cpu_set_t set;
    if (machine.count == 0)
        lb_cpu_topology_read("/sys/devices/system", NULL, &machine);
    *topology = (struct lb_cpu_topology){.known = machine.known,
                                         .domain_bytes = machine.count > 0 ? machine.domain_bytes
                                                                           : (double)NAN};
    bool limited = sched_getaffinity(0, sizeof(set), &set) == 0;
    for (int cpu = 0; cpu < LB_CPU_MAX && cpu < CPU_SETSIZE; cpu++) {
        struct lb_cpu_place place = {.cpu = cpu, .core = cpu};
        bool there = machine.count == 0 && cpu == 0;
        for (size_t i = 0; i < machine.count; i++)
            if (machine.places[i].cpu == cpu) {
                place = machine.places[i];
                there = true;
            }
        if (limited ? CPU_ISSET((size_t)cpu, &set) : there)
            topology->places[topology->count++] = place;
    }
    finish(topology);
}

size_t lb_cpu_cache_bytes(int level)
{
    static const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE};
    long said = sysconf(names[level - 1]); /* which the C library knows on x86 alone */
    double read = said > 0 ? (double)said
                           : read_cache_bytes("/sys/devices/system", 0, level == 1 ? 0 : level);
    return read > 0 ? (size_t)read : 0;
}

size_t lb_host_cache_bytes(void)
{
    for (int level = 4; level > 1; level--)
        if (lb_cpu_cache_bytes(level) > 0)
            return lb_cpu_cache_bytes(level);
    return (size_t)32 << 20;
}

void lb_cpu_topology_make(size_t cpus, size_t cores, size_t domains, size_t nodes,
                          double domain_bytes, struct lb_cpu_topology *topology)
{
    *topology = (struct lb_cpu_topology){.known = true,
                                         .count = cpus < LB_CPU_MAX ? cpus : LB_CPU_MAX,
                                         .domain_bytes = domain_bytes};
    for (size_t cpu = 0; cpu < topology->count; cpu++) {
        size_t core = cpu % cores, domain = core / (cores / domains);
        topology->places[cpu] = (struct lb_cpu_place){.cpu = (int)cpu,
                                                      .core = (int)core,
                                                      .domain = (int)(domain * (cores / domains)),
                                                      .node = (int)(domain / (domains / nodes))};
    }
    finish(topology);
}

json_t *lb_cpu_topology_to_json(const struct lb_cpu_topology *topology)
{
    size_t per_core = topology->cores > 0 ? topology->count / topology->cores : 0;
    bool sized = isfinite(topology->domain_bytes);
    return json_pack("{s:I, s:I, s:I, s:o, s:I, s:b}", "physical_cores",
                     (json_int_t)topology->cores, "threads_per_core", (json_int_t)per_core,
                     "l3_domains", (json_int_t)topology->domains, "l3_bytes",
                     sized ? json_real(topology->domain_bytes) : json_null(), "numa_nodes",
                     (json_int_t)topology->nodes, "from_system", (int)topology->known);
}
