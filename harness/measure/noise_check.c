/* Looks for what would make measurements on this machine noisy. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "measure/noise_check.h"

#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "device/nvml.h"
#include "host/cgroup.h"
#include "stats/order_stats.h"

/* A longer step of the clock in a busy loop is time that something else took. */
#define GAP_NS 20e3

enum { READS = 2001 };

static void check_clock(struct lb_noise_check *noise)
{
    static double costs[READS];
    double step = INFINITY;
    for (int i = 0; i < READS; i++) {
        double start = lb_now_ns(), end = start;
        for (int j = 0; j < 20; j++) {
            double now = lb_now_ns();
            if (now > end)
                step = fmin(step, now - end);
            end = now;
        }
        costs[i] = (end - start) / 20;
    }
    lb_sort(costs, READS);
    noise->overhead_ns = lb_median(costs, READS);
    noise->resolution_ns = step;
}

static void check_gaps(double busy_s, struct lb_noise_check *noise)
{
    double start = lb_now_ns(), last = start, lost = 0, longest = 0;
    while (last - start < busy_s * 1e9) {
        double now = lb_now_ns();
        if (now - last > GAP_NS)
            lost += now - last;
        longest = fmax(longest, now - last);
        last = now;
    }
    noise->stolen = lost / (last - start);
    noise->longest_gap_us = longest / 1e3;
}

/* /proc/stat's first line: user, nice, system, idle, iowait, irq, softirq, steal. */
static void check_steal(struct lb_noise_check *noise)
{
    enum { STEAL = 7 };
    char line[512];
    double all = 0, steal = NAN;
    (void)lb_read_line("/proc/stat", "", line, sizeof(line));
    char *at = line + strcspn(line, " ");
    for (int i = 0; i <= STEAL; i++) {
        steal = strtod(at, &at);
        all += steal;
    }
    noise->steal = all > 0 ? steal / all : NAN;
}

static void check_governor(struct lb_noise_check *noise)
{
    (void)lb_read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "", noise->governor,
                       sizeof(noise->governor));
    noise->turbo = lb_read_number("/sys/devices/system/cpu/intel_pstate/no_turbo", "") == 0 ||
                   lb_read_number("/sys/devices/system/cpu/cpufreq/boost", "") == 1;
    noise->thermal_throttles =
        lb_read_number("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "");
}

/* Those of NVML's throttle reasons that lower clocks against the user's will: software power cap,
 * hardware slowdown, software and hardware thermal slowdown, hardware power brake. */
#define THROTTLED (0x4ULL | 0x8ULL | 0x20ULL | 0x40ULL | 0x80ULL)

static void check_gpus(struct lb_noise_check *noise)
{
    noise->gpus = lb_nvml_count();
    for (int i = 0; i < noise->gpus; i++) {
        int tenants;
        unsigned long long throttle;
        lb_nvml_use(i, &tenants, &throttle);
        noise->gpu_tenants += tenants;
        noise->gpus_throttled += (throttle & THROTTLED) != 0;
    }
}

void lb_noise_check_run(double busy_s, struct lb_noise_check *noise)
{
    cpu_set_t set;
    *noise = (struct lb_noise_check){.cpus = 1};
    check_clock(noise);
    check_gaps(busy_s, noise);
    noise->load = lb_read_number("/proc/loadavg", "");
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        noise->cpus = CPU_COUNT(&set);
    noise->cgroup_throttled = lb_cgroup_throttled("");
    check_steal(noise);
    check_governor(noise);
    check_gpus(noise);
}

void lb_noise_check_print(const struct lb_noise_check *n, FILE *out)
{
    const struct {
        const char *name, *unit;
        double value;
    } lines[] = {
        {"clock: resolution", " ns", n->resolution_ns},
        {"clock: cost of reading", " ns", n->overhead_ns},
        {"load", "", n->load},
        {"CPUs that may be used", "", n->cpus},
        {"lost by a busy loop", " % of its time", 100 * n->stolen},
        {"longest gap in it", " us", n->longest_gap_us},
        {"kept by the hypervisor", " % of the time", 100 * n->steal},
        {"control group throttled", " % of its periods", 100 * n->cgroup_throttled},
        {"throttled for heat", " times since boot", n->thermal_throttles},
    };
    fprintf(out, "machine\n");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (isfinite(lines[i].value))
            fprintf(out, "  %-26s %.3g%s\n", lines[i].name, lines[i].value, lines[i].unit);
        else
            fprintf(out, "  %-26s unknown\n", lines[i].name);
    fprintf(out, "  %-26s %s\n", "governor", n->governor[0] ? n->governor : "unknown");
    if (n->gpus >= 0)
        fprintf(out, "  %-26s %d, %d other processes on them, %d held back\n", "GPUs", n->gpus,
                n->gpu_tenants, n->gpus_throttled);
    else
        fprintf(out, "  %-26s none that NVML shows\n", "GPUs");
}

/* Prints an advice where it is called for. Returns 1 when it was, else 0. */
__attribute__((format(printf, 3, 4))) static size_t advise(FILE *out, bool called_for,
                                                           const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (called_for) {
        fputs("  - ", out);
        vfprintf(out, format, arguments);
        fputc('\n', out);
    }
    va_end(arguments);
    return called_for;
}

static size_t advise_on_cpus(const struct lb_noise_check *n, FILE *out)
{
    double clock_ns = fmax(n->overhead_ns, n->resolution_ns);
    size_t count = 0;
    count += advise(out, n->load > 0.5 * n->cpus,
                    "Other work is running: a load of %.1f on %d CPUs. Stop it, or pin the "
                    "benchmark to a CPU of its own (taskset -c N).",
                    n->load, n->cpus);
    count += advise(out, n->stolen > 0.01,
                    "A busy loop lost %.1f %% of its time to other work, up to %.0f us at once. "
                    "Short cases will have outliers; use --processes 10 or more, and --ab for "
                    "small differences.",
                    100 * n->stolen, n->longest_gap_us);
    count += advise(out, n->steal > 0.005,
                    "The hypervisor kept %.1f %% of the time for other machines. Compare only "
                    "cases that were measured alternately (--ab), or move to a dedicated machine.",
                    100 * n->steal);
    count += advise(out, n->governor[0] && strcmp(n->governor, "performance") != 0,
                    "The CPU's governor is '%s', so clocks follow the load. As root: cpupower "
                    "frequency-set -g performance.",
                    n->governor);
    count += advise(out, n->turbo,
                    "Turbo clocks are on, so times depend on heat and on the load of other cores. "
                    "For baselines switch them off (cpufreq/boost or intel_pstate/no_turbo).");
    count += advise(out, n->cgroup_throttled > 0.001,
                    "The control group was throttled in %.1f %% of its periods: raise its CPU "
                    "quota, otherwise times measure the quota.",
                    100 * n->cgroup_throttled);
    count += advise(out, n->thermal_throttles > 0,
                    "The CPU was throttled for heat %.0f times since boot: cool it, or let it rest "
                    "between runs.",
                    n->thermal_throttles);
    count += advise(out, clock_ns > 200,
                    "Reading the clock costs %.0f ns in steps of %.0f ns: cases below %.0f us need "
                    "--timing batched.",
                    n->overhead_ns, n->resolution_ns, 0.1 * clock_ns);
    return count;
}

size_t lb_noise_check_advise(const struct lb_noise_check *n, FILE *out)
{
    size_t count = advise_on_cpus(n, out);
    count += advise(out, n->gpu_tenants > 0,
                    "%d other processes compute on this machine's GPUs: stop them before you "
                    "measure.",
                    n->gpu_tenants);
    count += advise(out, n->gpus_throttled > 0,
                    "%d GPUs are held back by heat or power: let them cool, or lock their clocks "
                    "(nvidia-smi -lgc).",
                    n->gpus_throttled);
    return count;
}
