/* How much of the CPUs other programs use. */
#define _GNU_SOURCE /* cpu_set_t */
#include "support/cpu_load.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "host/process.h"

/* The time of all but idle and iowait of a line of /proc/stat, "cpu3 user nice system idle iowait
 * irq softirq steal ...", in ticks. */
static double busy_ticks(const char *line)
{
    enum { IDLE = 3, IOWAIT = 4, STEAL = 7 };
    char *at = (char *)line + strcspn(line, " ");
    double busy = 0;
    for (int i = 0; i <= STEAL; i++) {
        double ticks = strtod(at, &at);
        if (i != IDLE && i != IOWAIT)
            busy += ticks;
    }
    return busy;
}

static void read_busy(struct lb_cpu_load *load)
{
    cpu_set_t set;
    char line[512];
    double ticks = 0;
    FILE *file = sched_getaffinity(0, sizeof(set), &set) == 0 ? fopen("/proc/stat", "r") : NULL;
    if (!file)
        return;
    load->cpus = 0;
    while (fgets(line, sizeof(line), file)) {
        char *end;
        long cpu = strncmp(line, "cpu", 3) == 0 ? strtol(line + 3, &end, 10) : -1;
        if (cpu < 0 || cpu >= CPU_SETSIZE || end == line + 3 || !CPU_ISSET((size_t)cpu, &set))
            continue;
        ticks += busy_ticks(line);
        load->cpus++;
    }
    fclose(file);
    load->busy_ns = load->cpus > 0 ? 1e9 * ticks / (double)sysconf(_SC_CLK_TCK) : (double)NAN;
}

void lb_cpu_load_read(struct lb_cpu_load *load)
{
    char line[128];
    *load = (struct lb_cpu_load){.busy_ns = NAN, .delay_ns = NAN, .cpus = 1, .at_ns = lb_now_ns()};
    load->own_ns = lb_process_cpu_ns() + lb_children_cpu_ns();
    if (lb_read_line("/proc/thread-self/schedstat", "", line, sizeof(line)) &&
        sscanf(line, "%*s %lf", &load->delay_ns) != 1)
        load->delay_ns = NAN;
    /* NaN where the group has no quota or its files are not where containers show them. */
    load->throttled_ns = 1e3 * lb_read_number("/sys/fs/cgroup/cpu.stat", "throttled_usec ");
    if (isnan(load->throttled_ns))
        load->throttled_ns = lb_read_number("/sys/fs/cgroup/cpu/cpu.stat", "throttled_time ");
    double threads = lb_read_number("/proc/self/status", "Threads:");
    load->threads = threads > 1 ? (int)threads : 1; /* 1 too where the number is not known */
    read_busy(load);
}

double lb_cpu_load_others(const struct lb_cpu_load *before, const struct lb_cpu_load *after)
{
    double elapsed = after->at_ns - before->at_ns, cpus = after->cpus;
    double tick = 1e9 / (double)sysconf(_SC_CLK_TCK);
    double others = after->busy_ns - before->busy_ns - (after->own_ns - before->own_ns);
    double share = (others - 2 * tick * cpus) / (elapsed * cpus);
    double delay = (after->delay_ns - before->delay_ns) / elapsed;
    double throttled = (after->throttled_ns - before->throttled_ns) / elapsed;
    if (!(elapsed > 0))
        return 0;
    /* A thread that has the process to itself waits for no other thread of it. */
    if (after->threads > 1)
        delay = 0;
    return fmax(0, fmax(share, fmax(delay, throttled))); /* fmax passes over NaN */
}
