/* The numbers that are derived from a row's samples and from the other rows of its run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/record.h"
#include "stats/anomalies.h"
#include "stats/order_stats.h"

#define MAD_TO_SIGMA 1.4826 /* standard deviation over MAD of a normal distribution */

/* The spread of sorted [n] relative to its median; NaN for fewer than 2 values. */
static double relative_spread(const double *sorted, size_t n)
{
    return n > 1 ? MAD_TO_SIGMA * lb_mad(sorted, n) / lb_median(sorted, n) : (double)NAN;
}

size_t lb_row_unit_times(const struct lb_row *row, double p, double *times)
{
    bool by_process = row->process_count >= 2;
    size_t units = by_process ? row->process_count : row->block_count;
    size_t first = 0, block = 0, filled = 0;
    double *scratch = lb_needed(malloc((row->samples + 1) * sizeof(*scratch)));
    for (size_t i = 0; i < units; i++) {
        size_t count = 0;
        for (size_t left = by_process ? row->processes[i] : 1; left > 0; left--)
            count += row->blocks[block++];
        if (times && count > 0) {
            lb_sort_copy(row->samples_ns + first, count, scratch);
            times[filled] = lb_quantile(scratch, count, p);
        }
        filled += count > 0;
        first += count;
    }
    free(scratch);
    return filled;
}

size_t lb_row_units(const struct lb_row *row)
{
    return lb_row_unit_times(row, 0.5, NULL);
}

/* The relative spread of samples within a block, as the median over all blocks; scratch
 * [samples + blocks]. */
static double spread_within(const struct lb_row *row, double *scratch)
{
    double *spreads = scratch + row->samples;
    size_t first = 0, count = 0;
    for (size_t b = 0; b < row->block_count; first += row->blocks[b++]) {
        lb_sort_copy(row->samples_ns + first, row->blocks[b], scratch);
        if (row->blocks[b] > 1)
            spreads[count++] = relative_spread(scratch, row->blocks[b]);
    }
    lb_sort(spreads, count);
    return lb_median(spreads, count);
}

/* Computes the spread of the units' medians and, when the units are processes, the median with its
 * interval. medians [blocks] is scratch. */
static void summarize_units(struct lb_row *row, double *medians)
{
    size_t units = lb_row_unit_times(row, 0.5, medians);
    lb_sort(medians, units);
    row->spread_between = relative_spread(medians, units);
    if (row->process_count < 2)
        return;
    row->median_ns = lb_median(medians, units);
    row->median_lo_ns = row->median_hi_ns = NAN;
    lb_quantile_interval(medians, units, 0.5, 0.95, &row->median_lo_ns, &row->median_hi_ns);
}

/* A right result in less than the lower bound shows that the machine's figures are too low, as when
 * other programs ran while its ceilings were measured. Such a bound is dropped. */
static void compare_to_floor(struct lb_row *row)
{
    if (row->verdict == LB_VERDICT_OK && row->median_ns < row->floor_ns) {
        row->floor_ns = row->chain_ns = NAN;
        lb_row_warn(row, "it took less time than its lower bound, which is dropped, because the "
                         "ceilings measured for this machine are too low");
    }
    row->floor_multiple = row->median_ns / row->floor_ns;
}

double lb_percentile_share(int percentile)
{
    static const double shares[LB_PERCENTILES] = {0.9, 0.99, 0.999};
    return percentile == LB_MEDIAN ? 0.5 : shares[percentile];
}

const char *lb_percentile_name(int percentile)
{
    static const char *const names[LB_PERCENTILES] = {"p90", "p99", "p99.9"};
    return percentile == LB_MEDIAN ? "p50" : names[percentile];
}

struct lb_percentile lb_row_time(const struct lb_row *row, int percentile)
{
    const struct lb_percentile median = {row->median_ns, row->median_lo_ns, row->median_hi_ns};
    struct lb_percentile time = {NAN, NAN, NAN};
    const size_t n = row->samples;
    if (percentile == LB_MEDIAN)
        return median;
    if (row->c.timing != LB_STREAMING || n == 0)
        return time;
    double *sorted = lb_needed(malloc(n * sizeof(*sorted)));
    lb_sort_copy(row->samples_ns, n, sorted);
    double share = lb_percentile_share(percentile);
    if (lb_quantile_interval(sorted, n, share, 0.95, &time.lo_ns, &time.hi_ns) == LB_OK)
        time.ns = lb_quantile(sorted, n, share);
    free(sorted);
    return time;
}

double lb_row_longest(const struct lb_row *row)
{
    double longest = NAN;
    for (size_t i = 0; i < row->samples && row->c.timing == LB_STREAMING; i++)
        longest = fmax(longest, row->samples_ns[i]);
    return longest;
}

double lb_row_calls_per_s(const struct lb_row *row)
{
    double sum = 0;
    const double *ns = row->samples_ns;
    for (size_t b = 0; b < row->block_count; ns += row->blocks[b++]) {
        const size_t count = row->blocks[b];
        double took = 0;
        for (size_t i = 0; i < count && row->c.rate == 0; i++)
            took += ns[i];
        if (row->c.rate > 0 && count > 0) /* when the last call was due, and its latency */
            took = (double)(count - 1) * 1e9 / row->c.rate + ns[count - 1];
        sum += count > 0 ? 1e9 * (double)count / took : 0;
    }
    return row->c.timing == LB_STREAMING && row->samples > 0
               ? row->c.instances * sum / (double)row->block_count
               : (double)NAN;
}

double lb_row_share_above(const struct lb_row *row, double ns)
{
    size_t longer = 0;
    for (size_t i = 0; i < row->samples; i++)
        longer += row->samples_ns[i] > ns;
    return (double)longer / (double)row->samples;
}

void lb_row_summarize(struct lb_row *row)
{
    struct lb_anomalies anomalies;
    size_t n = row->samples;
    row->min_ns = row->median_ns = row->median_lo_ns = row->median_hi_ns = NAN;
    row->p5_ns = row->p95_ns = row->mad_ns = row->floor_multiple = NAN;
    row->outliers_mild = row->outliers_severe = row->spread_within = row->spread_between = NAN;
    row->flags = 0;
    if (n == 0)
        return;

    double *sorted = lb_needed(malloc((n + row->block_count) * sizeof(*sorted)));
    lb_sort_copy(row->samples_ns, n, sorted);
    row->min_ns = sorted[0];
    row->median_ns = lb_median(sorted, n);
    row->p5_ns = lb_quantile(sorted, n, 0.05);
    row->p95_ns = lb_quantile(sorted, n, 0.95);
    row->mad_ns = lb_mad(sorted, n);
    /* With too few samples it fails and the bounds stay unknown, as they should. */
    lb_quantile_interval(sorted, n, 0.5, 0.95, &row->median_lo_ns, &row->median_hi_ns);
    row->spread_within = spread_within(row, sorted);
    summarize_units(row, sorted);
    compare_to_floor(row);
    free(sorted);
    lb_find_anomalies(row->samples_ns, n, row->blocks, row->block_count, &anomalies);
    row->flags = anomalies.flags;
    row->outliers_mild = (double)anomalies.mild;
    row->outliers_severe = (double)anomalies.severe;
}

/* A row's mean time of the fixed loop, and the group of rows that it is compared within. */
struct loop_time {
    struct lb_row *row;
    double ns;
};

static int compare_groups(const struct lb_row *a, const struct lb_row *b)
{
    if (a->environment != b->environment)
        return a->environment < b->environment ? -1 : 1;
    return strcmp(a->c.impl, b->c.impl);
}

static int compare_loop_times(const void *a, const void *b)
{
    const struct loop_time *first = a, *second = b;
    int groups = compare_groups(first->row, second->row);
    return groups != 0 ? groups : (first->ns > second->ns) - (first->ns < second->ns);
}

double lb_row_mean_reference(const struct lb_row *row)
{
    double sum = 0;
    for (size_t block = 0; block < row->block_count; block++)
        sum += row->reference_ns[block];
    return row->block_count > 0 ? sum / (double)row->block_count : (double)NAN;
}

/* Sets the slowdown of a group of rows, whose times [count] are sorted. */
static void judge_group(const struct loop_time *times, size_t count)
{
    if (count < LB_SLOWDOWN_ROWS)
        return;
    double median = (times[(count - 1) / 2].ns + times[count / 2].ns) / 2;
    for (size_t i = 0; i < count; i++) {
        struct lb_row *row = times[i].row;
        row->slowdown = times[i].ns / median;
        if (row->slowdown > LB_SLOW_MACHINE)
            lb_row_warn(row,
                        "the machine was %.0f %% slower while it was measured than in most of "
                        "the run",
                        100 * (row->slowdown - 1));
    }
}

void lb_rows_find_slowdowns(struct lb_row *rows, size_t count)
{
    size_t known = 0;
    struct loop_time *times = lb_needed(malloc((count + 1) * sizeof(*times)));
    for (size_t i = 0; i < count; i++) {
        double ns = lb_row_is_timed(&rows[i]) ? lb_row_mean_reference(&rows[i]) : (double)NAN;
        rows[i].slowdown = NAN;
        if (isfinite(ns))
            times[known++] = (struct loop_time){&rows[i], ns};
    }
    qsort(times, known, sizeof(*times), compare_loop_times);
    for (size_t first = 0, next; first < known; first = next) {
        next = first + 1;
        while (next < known && compare_groups(times[first].row, times[next].row) == 0)
            next++;
        judge_group(times + first, next - first);
    }
    free(times);
}
