/* Which CPUs a case runs on. */
#include "host/cpu_affinity.h"

#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/cpu_topology.h"
#include "host/numa_cpus.h"
#include "host/system_file.h"

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

/* Takes the last cores, one CPU of each; then, when these are too few, a second CPU of the last
 * cores, and so on. */
static void take(int count, cpu_set_t *some)
{
    CPU_ZERO(some);
    for (int sibling = 0; CPU_COUNT(some) < count && sibling < LB_CPU_MAX; sibling++)
        for (size_t i = topology.count; i-- > 0 && CPU_COUNT(some) < count;)
            if (topology.places[i].sibling == sibling)
                CPU_SET((size_t)topology.places[i].cpu, some);
}

void lb_pin(int count, char *text, size_t size)
{
    cpu_set_t some;
    char list[LB_CPU_LIST_SIZE];
    snprintf(text, size, "any CPU");
    if (!look())
        return;
    given = all;
    if (CPU_COUNT(&all) < count)
        return;
    take(count, &some);
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

/* The CPU time of a thread of this process; 0 where the system does not say. */
static double thread_cpu_ns(long thread)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", thread);
    return fmax(0, lb_system_number(path, "")); /* fmax passes over NaN */
}

double lb_cpu_ns_elsewhere(void)
{
    double ns = 0;
    DIR *folder = CPU_COUNT(&given) > 0 ? opendir("/proc/self/task") : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        cpu_set_t set, both;
        long thread = strtol(entry->d_name, NULL, 10); /* 0 for "." and ".." */
        if (thread == 0 || sched_getaffinity((pid_t)thread, sizeof(set), &set) != 0)
            continue;
        CPU_AND(&both, &set, &given);
        ns += CPU_EQUAL(&both, &set) ? 0 : thread_cpu_ns(thread);
    }
    if (folder)
        closedir(folder);
    return ns;
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
