/* Order statistics of samples: median and its confidence interval, quantiles, spread. All take
 * samples in ascending order, so that they are sorted only once. */
#ifndef LB_ORDER_STATS_H
#define LB_ORDER_STATS_H

#include <stddef.h>

#include "api/status.h"

/* Sorts values [n] into ascending order; none may be NaN. */
void lb_sort(double *values, size_t n);

/* The median of sorted [n], ascending: the middle value, or the mean of the middle two; NaN when n
 * is 0. */
double lb_median(const double *sorted, size_t n);

/* Writes values [n] to sorted [n] in ascending order. */
void lb_sort_copy(const double *values, size_t n, double *sorted);

/* The median of values [n] in any order. scratch [n] */
double lb_median_of(const double *values, size_t n, double *scratch);

/* The p-quantile of sorted [n], ascending, 0 <= p <= 1: linear interpolation at the 0-based
 * position p (n - 1); NaN when n is 0. Source: Hyndman & Fan, The American Statistician 50 (1996),
 * definition 7. */
double lb_quantile(const double *sorted, size_t n, double p);

/* Order-statistic confidence interval of the p-quantile, 0 < p < 1, of the distribution that
 * sorted [n], ascending, was drawn from. *lo and *hi are elements of sorted, without interpolation;
 * no distribution is assumed. Each is on the wrong side with a probability of at most
 * (1 - level) / 2, 0 < level < 1, and the interval is the narrowest of that kind. For the median
 * (p = 0.5) it leaves out equally many samples at both ends. LB_INVALID when n is too small for the
 * level, at 95 % below 6 for the median and below 368 for p = 0.99; *lo and *hi are then unchanged.
 * Source: Hahn & Meeker, Statistical Intervals, 5.2. */
enum lb_status lb_quantile_interval(const double *sorted, size_t n, double p, double level,
                                    double *lo, double *hi);

/* The median of the absolute deviations from the median of sorted [n], ascending, not scaled to a
 * standard deviation; NaN when n is 0. */
double lb_mad(const double *sorted, size_t n);

#endif
