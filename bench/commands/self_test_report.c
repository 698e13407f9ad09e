/* What --self-test found, in plain words. */
#include "commands/self_test_report.h"

#include <math.h>
#include <stdio.h>

#include "stats/order_stats.h"
#include "support/terminal.h"

static double percent(size_t part, size_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : (double)NAN;
}

/* Percent that 95 of 100 comparisons would find; "none" where no difference is large enough. */
static void format_detectable(double *least, size_t count, char text[32])
{
    lb_sort(least, count);
    size_t place = count > 0 ? (95 * count + 99) / 100 - 1 : 0;
    if (count > 0 && isfinite(least[place]))
        snprintf(text, 32, "%.2f %%", 100 * expm1(least[place]));
    else
        snprintf(text, 32, "none");
}

static void print_number(FILE *out, const char *name, double value, const char *unit)
{
    if (isfinite(value))
        fprintf(out, "  %-26s %.3g%s\n", name, value, unit);
    else
        fprintf(out, "  %-26s not known here\n", name);
}

static void print_machine(FILE *out, const struct lb_noise_check *f)
{
    fprintf(out, "machine\n");
    print_number(out, "clock: resolution", f->resolution_ns, " ns");
    print_number(out, "clock: cost of reading", f->overhead_ns, " ns");
    print_number(out, "load", f->load, "");
    fprintf(out, "  %-26s %d\n", "CPUs that may be used", f->cpus);
    print_number(out, "lost by a busy loop", 100 * f->stolen, " % of its time");
    print_number(out, "longest gap in it", f->longest_gap_us, " us");
    print_number(out, "kept by the hypervisor", 100 * f->steal, " % of the time");
    print_number(out, "control group throttled", 100 * f->cgroup_throttled, " % of its periods");
    print_number(out, "throttled for heat", f->thermal_throttles, " times since boot");
    fprintf(out, "  %-26s %s\n", "governor", f->governor[0] ? f->governor : "not known here");
    if (f->gpus >= 0)
        fprintf(out, "  %-26s %d, %d other processes on them, %d held back\n", "GPUs", f->gpus,
                f->gpu_tenants, f->gpus_throttled);
    else
        fprintf(out, "  %-26s none that NVML shows\n", "GPUs");
}

static void print_rate(FILE *out, const char *name, const struct lb_self_rate *rate)
{
    fprintf(out, "  %-26s %zu of %zu comparisons have p < 0.05: %.1f %%, where 5 %% are due\n",
            name, rate->significant, rate->comparisons,
            percent(rate->significant, rate->comparisons));
    fprintf(out, "  %-26s after correction, %zu of %zu sweeps have a difference, %zu name a case\n",
            "", rate->sweeps_significant, rate->sweeps, rate->sweeps_named);
}

static void print_verdicts(FILE *out, struct lb_self_result *result)
{
    char time[32], seen[32], named[32];
    struct lb_self_rate *dealt = &result->dealt;
    fprintf(out, "\nfalse alarms: %zu cases against themselves, %zu fresh processes a side\n",
            result->cases, result->side);
    print_rate(out, "both sides mixed in time", dealt);
    print_rate(out, "one side after the other", &result->in_turn);
    print_rate(out, "its spread allowed for", &result->allowed_for);

    fprintf(out, "\nspread between runs that follow each other (standard deviation)\n");
    print_number(out, "as measured", 100 * result->run_spread.raw, " %");
    print_number(
        out, "over the fixed loop's time",
        result->run_spread.corrected > 0 ? 100 * result->run_spread.corrected : (double)NAN, " %");
    fprintf(out, "  --compare allows for it from now on, for runs of this machine\n");

    lb_sort(result->planted_estimates, result->planted);
    lb_format_ns(result->planted_ns, time);
    fprintf(out, "\nplanted slowdown: 3 %% of a case of %s, interleaved\n", time);
    fprintf(out, "  %-26s %zu of %zu comparisons: slower, and by more than %.3g %%\n", "found",
            result->planted_found, result->planted, 100 * result->margin);
    fprintf(out, "  %-26s %zu of %zu\n", "interval above zero", result->planted_significant,
            result->planted);
    fprintf(out, "  %-26s %.2f %% (median of the estimates)\n", "measured as",
            100 * expm1(lb_median(result->planted_estimates, result->planted)));

    fprintf(out, "\nsmallest slowdown that 95 of 100 comparisons would\n");
    fprintf(out, "  %-26s %12s   %s\n", "", "tell from 0", "name slower");
    format_detectable(dealt->least_seen, dealt->comparisons, seen);
    format_detectable(dealt->least_named, dealt->comparisons, named);
    fprintf(out, "  two runs, --processes %-4zu %12s   %s, alone among %zu cases\n", result->side,
            seen, named, result->cases);
    format_detectable(result->allowed_for.least_seen, result->allowed_for.comparisons, seen);
    fprintf(out, "  %-26s %12s\n", "one after the other", seen);
    format_detectable(result->planted_least_seen, result->planted, seen);
    format_detectable(result->planted_least_named, result->planted, named);
    fprintf(out, "  %-26s %12s   %s\n", "--ab", seen, named);
}

static bool within(size_t part, size_t whole, double low, double high)
{
    return percent(part, whole) >= low && percent(part, whole) <= high;
}

static void print_advice(FILE *out, const struct lb_self_result *result)
{
    char text[512];
    size_t said = 0;
    const struct lb_self_rate *in_turn = &result->in_turn;
    fprintf(out, "\nadvice\n");
    while (lb_noise_check_advice(&result->noise, said, text, sizeof(text))) {
        fprintf(out, "  - %s\n", text);
        said++;
    }
    if (20 * in_turn->sweeps_named > in_turn->sweeps ||
        percent(in_turn->significant, in_turn->comparisons) > 8) {
        fprintf(out,
                "  - Runs that follow each other differ here by more than their processes show. "
                "Take --ab\n    for small differences, and for --compare a wider --margin.\n");
        said++;
    }
    if (said == 0)
        fprintf(out, "  - None: this machine is fit to measure.\n");
}

bool lb_self_report(struct lb_self_result *result, FILE *out)
{
    const struct lb_self_rate *dealt = &result->dealt;
    print_machine(out, &result->noise);
    print_verdicts(out, result);
    print_advice(out, result);
    bool alarms = within(dealt->significant, dealt->comparisons, 2, 8) &&
                  20 * dealt->sweeps_significant <= dealt->sweeps;
    bool found = within(result->planted_found, result->planted, 95, 100);
    if (result->quick)
        fprintf(out, "\n--quick: too few comparisons for a judgement of the rates.\n");
    else
        fprintf(out,
                "\nfalse alarms %s (2 to 8 %% and at most one sweep in 20 expected), planted "
                "slowdown %s (95 of 100 expected)\n",
                alarms ? "as they should be" : "NOT AS THEY SHOULD BE",
                found ? "found" : "NOT FOUND OFTEN ENOUGH");
    fflush(out);
    return result->quick || (alarms && found);
}
