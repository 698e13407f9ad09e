/* Anomalies of a result's samples. */
#include "stats/anomalies.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "stats/order_stats.h"

enum { MIN_SAMPLES = 8 /* with fewer none of the tests has any power */ };

const char *const lb_anomaly_names[LB_ANOMALY_COUNT] = {"outliers", "slow_first", "drift",
                                                        "autocorrelation", "two_modes"};

/* How many of sorted [n] are below the value, or also equal to it. */
static size_t count_below(const double *sorted, size_t n, double value, bool or_equal)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle] < value || (or_equal && sorted[middle] == value))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ranks [n], from 1, in the order of time; equal values share the mean of their ranks. sorted [n]
 * receives the values in ascending order. */
static void rank(const double *values, size_t n, double *sorted, double *ranks)
{
    lb_sort_copy(values, n, sorted);
    for (size_t i = 0; i < n; i++) {
        size_t below = count_below(sorted, n, values[i], false);
        size_t end = count_below(sorted, n, values[i], true);
        ranks[i] = (double)(below + end + 1) / 2;
    }
}

static double sum_of_squares(const double *ranks, size_t n)
{
    double sum = 0, mean = ((double)n + 1) / 2;
    for (size_t i = 0; i < n; i++)
        sum += (ranks[i] - mean) * (ranks[i] - mean);
    return sum;
}

/* By how many standard deviations the ranks rise with the order within their blocks, of all orders
 * within these. Of one block it is Spearman's correlation times sqrt(n - 1). NaN where no block has
 * different ranks. */
static double trend_of(const double *ranks, const size_t *blocks, size_t block_count)
{
    double product = 0, variance = 0;
    for (size_t b = 0; b < block_count; ranks += blocks[b++]) {
        double size = (double)blocks[b], sum = 0, squares = 0;
        for (size_t i = 0; i < blocks[b]; i++)
            sum += ranks[i];
        for (size_t i = 0; i < blocks[b]; i++) {
            double distance = ranks[i] - sum / size;
            squares += distance * distance;
            product += distance * ((double)i - (size - 1) / 2);
        }
        variance += squares * size * (size + 1) / 12;
    }
    return variance > 0 ? product / sqrt(variance) : (double)NAN;
}

/* trend, trend_of_blocks: within blocks, and of the blocks' medians. */
static bool drifts(const double *samples, size_t n, double trend, double trend_of_blocks,
                   double *scratch)
{
    if (!(fmax(fabs(trend), fabs(trend_of_blocks)) >= 3.2905))
        return false;
    /* With many samples even a tiny drift is significant, so it must also be large enough. */
    size_t third = n / 3;
    double first = lb_median_of(samples, third, scratch);
    double last = lb_median_of(samples + n - third, third, scratch);
    return fabs(last - first) > 0.005 * first;
}

/* The sum of squared steps over the sum of squared distances from the mean; NaN when all ranks are
 * equal. */
static double von_neumann_ratio(const double *ranks, size_t n)
{
    double steps = 0, all = sum_of_squares(ranks, n);
    for (size_t i = 1; i < n; i++)
        steps += (ranks[i] - ranks[i - 1]) * (ranks[i] - ranks[i - 1]);
    return all > 0 ? steps / all : (double)NAN;
}

static bool is_autocorrelated(double ratio, size_t n)
{
    double size = (double)n;
    double variance = 4 * (size - 2) * (5 * size * size - 2 * size - 9) /
                      (5 * size * (size + 1) * (size - 1) * (size - 1));
    return (ratio - 2) / sqrt(variance) < -2.5758;
}

/* The probability of at most k successes in n trials of probability p. */
static double binomial_at_most(size_t k, size_t n, double p)
{
    double size = (double)n, sum = 0;
    for (size_t i = 0; i <= k; i++) {
        double x = (double)i;
        sum += exp(lgamma(size + 1) - lgamma(x + 1) - lgamma(size - x + 1) + x * log(p) +
                   (size - x) * log1p(-p));
    }
    return sum;
}

/* The split of sorted [n] that minimises the sum of squares within both sides. Returns the size of
 * the lower side. */
static size_t best_split(const double *sorted, size_t n)
{
    size_t least = (size_t)ceil(0.15 * (double)n), best = least;
    double all = 0, left = 0, most = -1;
    for (size_t i = 0; i < n; i++)
        all += sorted[i] - sorted[0];
    for (size_t i = 1; i + least <= n; i++) {
        left += sorted[i - 1] - sorted[0];
        double a = (double)i, b = (double)(n - i), between = left / a - (all - left) / b;
        if (i >= least && a * b * between * between > most) {
            most = a * b * between * between;
            best = i;
        }
    }
    return best;
}

static bool has_two_modes(const double *sorted, size_t n)
{
    size_t split = best_split(sorted, n), between = 0;
    double low = lb_median(sorted, split), high = lb_median(sorted + split, n - split);
    double third = (high - low) / 3;
    if (high - low < 0.01 * low)
        return false;
    for (size_t i = 0; i < n; i++)
        between += sorted[i] > low + third && sorted[i] < high - third;
    return 6 * between < n && binomial_at_most(between, n, 1.0 / 6) < 0.001;
}

/* Counts outliers, and the blocks whose first sample is a severe outlier above the others. */
static void count_outliers(const double *samples, const double *sorted, size_t n,
                           const size_t *blocks, size_t block_count, struct lb_anomalies *anomalies)
{
    double q1 = lb_quantile(sorted, n, 0.25), q3 = lb_quantile(sorted, n, 0.75), range = q3 - q1;
    size_t slow = 0, first = 0;
    for (size_t i = 0; i < n; i++) {
        bool severe = samples[i] < q1 - 3 * range || samples[i] > q3 + 3 * range;
        bool mild = samples[i] < q1 - 1.5 * range || samples[i] > q3 + 1.5 * range;
        anomalies->severe += severe;
        anomalies->mild += mild && !severe;
    }
    for (size_t b = 0; b < block_count; first += blocks[b++])
        slow += blocks[b] > 0 && samples[first] > q3 + 3 * range;
    if (20 * anomalies->severe > n)
        anomalies->flags |= LB_ANOMALY_OUTLIERS;
    if (block_count > 0 && 2 * slow >= block_count)
        anomalies->flags |= LB_ANOMALY_SLOW_FIRST;
}

/* Divides samples by the median of their block: a level that a block's samples share is neither
 * autocorrelation nor drift. medians receives those of blocks with samples; returns how many. */
static size_t divide_by_block_medians(const double *samples, const size_t *blocks,
                                      size_t block_count, double *out, double *medians,
                                      double *scratch)
{
    size_t count = 0;
    for (size_t b = 0; b < block_count; samples += blocks[b++]) {
        double median = lb_median_of(samples, blocks[b], scratch);
        for (size_t i = 0; i < blocks[b]; i++)
            *out++ = samples[i] / median;
        if (blocks[b] > 0)
            medians[count++] = median;
    }
    return count;
}

void lb_find_anomalies(const double *samples, size_t n, const size_t *blocks, size_t block_count,
                       struct lb_anomalies *anomalies)
{
    *anomalies = (struct lb_anomalies){.trend = NAN, .von_neumann = NAN};
    if (n < MIN_SAMPLES)
        return;
    double *sorted = lb_needed(malloc(4 * n * sizeof(*sorted)));
    double *ranks = sorted + n, *centred = sorted + 2 * n, *medians = sorted + 3 * n;
    lb_sort_copy(samples, n, sorted);
    count_outliers(samples, sorted, n, blocks, block_count, anomalies);
    if (has_two_modes(sorted, n))
        anomalies->flags |= LB_ANOMALY_TWO_MODES;
    size_t count = divide_by_block_medians(samples, blocks, block_count, centred, medians, sorted);
    rank(centred, n, sorted, ranks);
    anomalies->trend = trend_of(ranks, blocks, block_count);
    anomalies->von_neumann = von_neumann_ratio(ranks, n);
    if (is_autocorrelated(anomalies->von_neumann, n))
        anomalies->flags |= LB_ANOMALY_AUTOCORRELATION;
    rank(medians, count, sorted, ranks);
    if (drifts(samples, n, anomalies->trend, trend_of(ranks, &count, 1), sorted))
        anomalies->flags |= LB_ANOMALY_DRIFT;
    free(sorted);
}
