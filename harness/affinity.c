/* Which CPUs a case runs on. */
#include "affinity.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static cpu_set_t all; /* at the first call; the process's own from then on */
static bool known;

static bool look(void)
{
    if (!known)
        known = sched_getaffinity(0, sizeof(all), &all) == 0;
    return known;
}

/* "CPU 3", "CPUs 0-1,4". */
static void describe(const cpu_set_t *set, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, CPU_COUNT(set) == 1 ? "CPU" : "CPUs");
    const char *before = " ";
    for (size_t first = 0; first < CPU_SETSIZE; first++) {
        size_t last = first;
        if (!CPU_ISSET(first, set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
            last++;
        if (used < size)
            used += (size_t)snprintf(text + used, size - used,
                                     first == last ? "%s%zu" : "%s%zu-%zu", before, first, last);
        before = ",";
        first = last;
    }
}

void lb_pin(int count, char *text, size_t size)
{
    cpu_set_t some;
    CPU_ZERO(&some);
    snprintf(text, size, "any CPU");
    if (!look() || CPU_COUNT(&all) < count)
        return;
    for (size_t cpu = CPU_SETSIZE; cpu-- > 0 && CPU_COUNT(&some) < count;)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &some);
    if (sched_setaffinity(0, sizeof(some), &some) == 0)
        describe(&some, text, size);
}

void lb_unpin(void)
{
    if (known)
        sched_setaffinity(0, sizeof(all), &all);
}
