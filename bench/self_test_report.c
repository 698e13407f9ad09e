/* What --self-test found, in plain words. */
#include "self_test_report.h"

#include <math.h>
#include <stdio.h>

#include "stats.h"
#include "terminal.h"

static double percent(size_t part, size_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : (double)NAN;
}

/* Percent that 95 of 100 comparisons would find. */
static double detectable(double *least, size_t count)
{
    lb_sort(least, count);
    return 100 * expm1(lb_quantile(least, count, 0.95));
}

static void print_number(const char *name, double value, const char *unit)
{
    if (isfinite(value))
        printf("  %-26s %.3g%s\n", name, value, unit);
    else
        printf("  %-26s not known here\n", name);
}

static void print_machine(const struct lb_fitness *f)
{
    printf("machine\n");
    print_number("clock: resolution", f->resolution_ns, " ns");
    print_number("clock: cost of reading", f->overhead_ns, " ns");
    print_number("load", f->load, "");
    printf("  %-26s %d\n", "CPUs that may be used", f->cpus);
    print_number("lost by a busy loop", 100 * f->stolen, " % of its time");
    print_number("longest gap in it", f->longest_gap_us, " us");
    print_number("kept by the hypervisor", 100 * f->steal, " % of the time");
    print_number("control group throttled", 100 * f->cgroup_throttled, " % of its periods");
    print_number("throttled for heat", f->thermal_throttles, " times since boot");
    printf("  %-26s %s\n", "governor", f->governor[0] ? f->governor : "not known here");
    if (f->gpus >= 0)
        printf("  %-26s %d, %d other processes on them, %d held back\n", "GPUs", f->gpus,
               f->gpu_tenants, f->gpus_throttled);
    else
        printf("  %-26s none that NVML shows\n", "GPUs");
}

static void print_rate(const char *name, const struct lb_self_rate *rate)
{
    printf("  %-26s %zu of %zu comparisons have p < 0.05: %.1f %%\n", name, rate->significant,
           rate->comparisons, percent(rate->significant, rate->comparisons));
    printf("  %-26s after correction, %zu of %zu sweeps have a difference, %zu name a case\n", "",
           rate->sweeps_significant, rate->sweeps, rate->sweeps_named);
}

static void print_verdicts(struct lb_self_result *result)
{
    char time[32];
    struct lb_self_rate *dealt = &result->dealt;
    printf("\nfalse alarms: %zu cases against themselves, %zu fresh processes a side\n",
           result->cases, result->side);
    print_rate("in random order", dealt);
    print_rate("one half after the other", &result->in_turn);

    lb_sort(result->planted_estimates, result->planted);
    lb_format_ns(result->planted_ns, time);
    printf("\nplanted slowdown: 3 %% of a case of %s, interleaved\n", time);
    printf("  %-26s %zu of %zu comparisons: slower, and by more than %.3g %%\n", "found",
           result->planted_found, result->planted, 100 * result->margin);
    printf("  %-26s %zu of %zu\n", "interval above zero", result->planted_significant,
           result->planted);
    printf("  %-26s %.2f %% (median of the estimates)\n", "measured as",
           100 * expm1(lb_median(result->planted_estimates, result->planted)));

    printf("\nsmallest difference found in 95 of 100 comparisons\n");
    printf("  %-26s %.2f %%\n", "two runs, --processes 8",
           detectable(dealt->least_found, dealt->comparisons));
    printf("  %-26s %.2f %%\n", "--ab", detectable(result->planted_least, result->planted));
}

static bool within(size_t part, size_t whole, double low, double high)
{
    return percent(part, whole) >= low && percent(part, whole) <= high;
}

bool lb_self_report(struct lb_self_result *result)
{
    char text[512];
    const struct lb_self_rate *dealt = &result->dealt, *in_turn = &result->in_turn;
    print_machine(&result->fitness);
    print_verdicts(result);

    printf("\nadvice\n");
    size_t said = 0;
    while (lb_fitness_advice(&result->fitness, said, text, sizeof(text))) {
        printf("  - %s\n", text);
        said++;
    }
    if (20 * in_turn->sweeps_named > in_turn->sweeps ||
        percent(in_turn->significant, in_turn->comparisons) > 8) {
        printf(
            "  - Runs that follow each other differ here by more than their processes show. Take "
            "--ab\n    for small differences, and for --compare a wider --margin.\n");
        said++;
    }
    if (said == 0)
        printf("  - None: this machine is fit to measure.\n");

    bool alarms = within(dealt->significant, dealt->comparisons, 2, 8) &&
                  20 * dealt->sweeps_named <= dealt->sweeps;
    bool found = within(result->planted_found, result->planted, 95, 100);
    if (result->quick)
        printf("\n--quick: too few comparisons for a judgement of the rates.\n");
    else
        printf("\nfalse alarms %s (2 to 8 %% and at most one sweep in 20 expected), planted "
               "slowdown %s (95 of 100 expected)\n",
               alarms ? "as they should be" : "NOT AS THEY SHOULD BE",
               found ? "found" : "NOT FOUND OFTEN ENOUGH");
    fflush(stdout);
    return result->quick || (alarms && found);
}
