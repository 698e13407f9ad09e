/* Order statistics of samples. */
#include "stats/order_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void lb_sort(double *values, size_t n)
{
    if (n > 1)
        qsort(values, n, sizeof(*values), compare_doubles);
}

void lb_sort_copy(const double *values, size_t n, double *sorted)
{
    if (n > 0)
        memcpy(sorted, values, n * sizeof(*values));
    lb_sort(sorted, n);
}

double lb_median(const double *sorted, size_t n)
{
    if (n == 0)
        return NAN;
    double low = sorted[(n - 1) / 2];
    return low + (sorted[n / 2] - low) / 2;
}

double lb_median_of(const double *values, size_t n, double *scratch)
{
    lb_sort_copy(values, n, scratch);
    return lb_median(scratch, n);
}

double lb_quantile(const double *sorted, size_t n, double p)
{
    if (n == 0)
        return NAN;
    double position = p * (double)(n - 1);
    size_t below = (size_t)position;
    if (below >= n - 1)
        return sorted[n - 1];
    return sorted[below] + (position - (double)below) * (sorted[below + 1] - sorted[below]);
}

enum lb_status lb_quantile_interval(const double *sorted, size_t n, double p, double level,
                                    double *lo, double *hi)
{
    /* `above` samples of n are larger than the quantile, by a binomial distribution. */
    const double outside = (1 - level) / 2, odds = log1p(-p) - log(p);
    double log_weight = (double)n * log(p), sum = 0; /* of `above` samples; of fewer */
    size_t above = 0, fewest = 0; /* so few are larger with a probability of at most `outside` */
    for (; above <= n && 1 - sum > outside; above++) {
        sum += exp(log_weight);
        if (sum <= outside)
            fewest = above + 1;
        log_weight += log((double)(n - above) / (double)(above + 1)) + odds;
    }
    if (fewest == 0 || above > n || !(level > 0))
        return LB_INVALID;
    *hi = sorted[n - fewest];
    *lo = sorted[n - above];
    return LB_OK;
}

double lb_mad(const double *sorted, size_t n)
{
    double middle = lb_median(sorted, n);
    double *deviations = lb_needed(malloc((n + 1) * sizeof(*deviations)));
    for (size_t i = 0; i < n; i++)
        deviations[i] = fabs(sorted[i] - middle);
    lb_sort(deviations, n);
    middle = lb_median(deviations, n);
    free(deviations);
    return middle;
}
