/* The report of --self-test. */
#include "commands/self_test_report.h"

#include <math.h>
#include <stdio.h>

#include "stats/order_stats.h"
#include "support/terminal.h"

static double percent(size_t part, size_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : (double)NAN;
}

/* The percentage that 95 of 100 comparisons would find; "none" where they find no difference. */
static void format_detectable(double *least, size_t count, char text[32])
{
    lb_sort(least, count);
    size_t index = count > 0 ? (95 * count + 99) / 100 - 1 : 0;
    if (count > 0 && isfinite(least[index]))
        snprintf(text, 32, "%.2f %%", 100 * expm1(least[index]));
    else
        snprintf(text, 32, "none");
}

static void print_number(FILE *out, const char *name, double value, const char *unit)
{
    if (isfinite(value))
        fprintf(out, "  %-26s %.3g%s\n", name, value, unit);
    else
        fprintf(out, "  %-26s unknown\n", name);
}

static void print_machine(FILE *out, const struct lb_noise_check *noise)
{
    fprintf(out, "machine\n");
    print_number(out, "clock: resolution", noise->resolution_ns, " ns");
    print_number(out, "clock: cost of reading", noise->overhead_ns, " ns");
    print_number(out, "load", noise->load, "");
    fprintf(out, "  %-26s %d\n", "CPUs that may be used", noise->cpus);
    print_number(out, "lost by a busy loop", 100 * noise->stolen, " % of its time");
    print_number(out, "longest gap in it", noise->longest_gap_us, " us");
    print_number(out, "kept by the hypervisor", 100 * noise->steal, " % of the time");
    print_number(out, "control group throttled", 100 * noise->cgroup_throttled,
                 " % of its periods");
    print_number(out, "throttled for heat", noise->thermal_throttles, " times since boot");
    fprintf(out, "  %-26s %s\n", "governor", noise->governor[0] ? noise->governor : "unknown");
    if (noise->gpus >= 0)
        fprintf(out, "  %-26s %d, %d other processes on them, %d held back\n", "GPUs", noise->gpus,
                noise->gpu_tenants, noise->gpus_throttled);
    else
        fprintf(out, "  %-26s %s\n", "GPUs",
                noise->nvml_silent ? "unknown, because NVML does not answer"
                                   : "none that NVML shows");
}

static void print_rate(FILE *out, const char *name, const struct lb_self_rate *rate)
{
    fprintf(out, "  %-26s %zu of %zu comparisons have p < 0.05: %.1f %%, 5 %% expected\n", name,
            rate->significant, rate->comparisons, percent(rate->significant, rate->comparisons));
    fprintf(out, "  %-26s after correction, %zu of %zu sweeps have a difference, %zu name a case\n",
            "", rate->sweeps_significant, rate->sweeps, rate->sweeps_named);
}

static void print_verdicts(FILE *out, struct lb_self_result *result)
{
    char time[32], seen[32], named[32];
    struct lb_self_rate *shuffled = &result->shuffled, *planted = &result->planted;
    fprintf(out, "\nfalse alarms: %zu case%s, %zu fresh processes per side\n", result->cases,
            result->cases == 1 ? " against itself" : "s against themselves", result->side);
    print_rate(out, "both sides mixed in time", shuffled);
    print_rate(out, "one side after the other", &result->in_turn);
    print_rate(out, "its spread allowed for", &result->allowed_for);

    fprintf(out, "\nspread between runs that follow each other\n");
    fprintf(out, "  %-26s %.3g %%; --compare allows for it where it has several runs of the base\n",
            "standard deviation", 100 * result->run_spread);

    lb_sort(planted->estimates, planted->comparisons);
    lb_format_ns(result->planted_ns, time);
    fprintf(out, "\nplanted slowdown: 3 %% of a case of %s, interleaved\n", time);
    fprintf(out, "  %-26s %zu of %zu comparisons: slower, and by more than %.3g %%\n", "found",
            planted->named, planted->comparisons, 100 * result->margin);
    fprintf(out, "  %-26s %zu of %zu\n", "p below 5 %", planted->significant, planted->comparisons);
    fprintf(out, "  %-26s %.2f %% (median of the estimates)\n", "measured as",
            100 * expm1(lb_median(planted->estimates, planted->comparisons)));

    fprintf(out, "\nsmallest slowdown that 95 of 100 comparisons would\n");
    fprintf(out, "  %-26s %12s   %s\n", "", "tell from 0", "name slower");
    format_detectable(shuffled->least_seen, shuffled->comparisons, seen);
    format_detectable(shuffled->least_named, shuffled->comparisons, named);
    fprintf(out, "  two runs, --processes %-4zu %12s   %s, alone among %zu case%s\n", result->side,
            seen, named, result->cases, result->cases == 1 ? "" : "s");
    format_detectable(result->allowed_for.least_seen, result->allowed_for.comparisons, seen);
    fprintf(out, "  %-26s %12s\n", "one after the other", seen);
    format_detectable(planted->least_seen, planted->comparisons, seen);
    format_detectable(planted->least_named, planted->comparisons, named);
    fprintf(out, "  %-26s %12s   %s\n", "--ab", seen, named);
}

static bool within(size_t part, size_t whole, double low, double high)
{
    return percent(part, whole) >= low && percent(part, whole) <= high;
}

static void print_advice(FILE *out, const struct lb_self_result *result)
{
    char text[512];
    size_t count = 0;
    const struct lb_self_rate *in_turn = &result->in_turn;
    fprintf(out, "\nadvice\n");
    while (lb_noise_check_advice(&result->noise, count, text, sizeof(text))) {
        fprintf(out, "  - %s\n", text);
        count++;
    }
    if (20 * in_turn->sweeps_named > in_turn->sweeps ||
        percent(in_turn->significant, in_turn->comparisons) > 8) {
        fprintf(out,
                "  - Runs that follow each other differ here by more than their processes show. "
                "Use --ab\n    for small differences, and a wider --margin for --compare.\n");
        count++;
    }
    if (count == 0)
        fprintf(out, "  - None: this machine is ready to measure.\n");
}

bool lb_self_report(struct lb_self_result *result, FILE *out)
{
    const struct lb_self_rate *shuffled = &result->shuffled;
    print_machine(out, &result->noise);
    print_verdicts(out, result);
    print_advice(out, result);
    bool alarms = within(shuffled->significant, shuffled->comparisons, 2, 8) &&
                  20 * shuffled->sweeps_significant <= shuffled->sweeps;
    bool found = within(result->planted.named, result->planted.comparisons, 95, 100);
    if (result->quick)
        fprintf(out, "\n--quick: too few comparisons to judge the rates.\n");
    else
        fprintf(out,
                "\nfalse alarms %s (2 to 8 %% and at most one sweep in 20 expected), planted "
                "slowdown %s (95 of 100 expected)\n",
                alarms ? "as expected" : "NOT AS EXPECTED",
                found ? "found" : "NOT FOUND OFTEN ENOUGH");
    fflush(out);
    return result->quick || (alarms && found);
}
