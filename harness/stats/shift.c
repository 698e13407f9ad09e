/* Shift between two sets of times, from ranks. */
#include "stats/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stats/order_stats.h"

#define PAIRS_EXACT 50

/* Points of the standard normal distribution with 2.5 % and 5 % above them. */
static const double z_95 = 1.959963984540054, z_90 = 1.6448536269514722;

/* The distribution of the rank statistic U when there is no shift: on 0..steps, symmetric about
 * steps / 2. */
struct law {
    double steps;
    double *at_most; /* [steps / 2 + 1] P(U <= u); NULL: the normal form is used */
    double sigma;    /* standard deviation of the normal form */
};

/* Turns counts [size] of arrangements with each u into probabilities of at most u. */
static void accumulate(double *counts, size_t size, double total)
{
    double sum = 0;
    for (size_t u = 0; u < size; u++) {
        sum += counts[u];
        counts[u] = sum / total;
    }
}

/* P(U <= u) of Mann-Whitney's U. The counts of arrangements are the coefficients of
 * prod_i (1 - q^(m+i)) / (1 - q^i), i = 1..n, up to the middle; their total is (n + m choose n).
 * The caller frees the array. */
static double *mann_whitney(size_t n, size_t m)
{
    size_t size = n * m / 2 + 1;
    double *counts = lb_needed(calloc(size, sizeof(*counts))), total = 1;
    counts[0] = 1;
    for (size_t i = 1; i <= n; i++) {
        for (size_t u = size; u-- > m + i;)
            counts[u] -= counts[u - m - i];
        for (size_t u = i; u < size; u++)
            counts[u] += counts[u - i];
        total *= (double)(m + i) / (double)i;
    }
    accumulate(counts, size, total);
    return counts;
}

/* The same of Wilcoxon's signed ranks: the counts are the coefficients of prod_i (1 + q^i),
 * i = 1..n; their total is 2^n. */
static double *signed_ranks(size_t n)
{
    size_t size = n * (n + 1) / 4 + 1;
    double *counts = lb_needed(calloc(size, sizeof(*counts)));
    counts[0] = 1;
    for (size_t i = 1; i <= n; i++)
        for (size_t u = size; u-- > i;)
            counts[u] += counts[u - i];
    accumulate(counts, size, ldexp(1, (int)n));
    return counts;
}

/* Two-sided p-value of the statistic. */
static double p_value(const struct law *law, double statistic)
{
    double tail = fmin(statistic, law->steps - statistic);
    if (law->at_most)
        return fmin(1, 2 * law->at_most[(size_t)tail]);
    double distance = law->steps / 2 - tail - 0.5;
    return distance > 0 && law->sigma > 0 ? erfc(distance / law->sigma / sqrt(2)) : 1;
}

/* The k for which the k-th smallest and the k-th largest difference bound an interval whose
 * one-sided error is alpha; z is the normal distribution's point for alpha. The least numbers of
 * units and pairs leave one of 1 or more. */
static size_t interval_rank(const struct law *law, double alpha, double z)
{
    if (!law->at_most) {
        double k = floor(law->steps / 2 + 0.5 - z * law->sigma);
        return k >= 1 ? (size_t)k : 1;
    }
    size_t k = 0, size = (size_t)law->steps / 2 + 1;
    while (k < size && law->at_most[k] <= alpha)
        k++;
    return k;
}

/* Computes the estimate, the intervals and the p-value from differences [count], which it frees
 * with the law. The normal form falls below least_p, which no arrangement does, where few units
 * have many ties. */
static struct lb_shift conclude(struct law *law, double *differences, size_t count, double least_p)
{
    double above = 0;
    for (size_t i = 0; i < count; i++)
        above += differences[i] > 0 ? 1 : differences[i] == 0 ? 0.5 : 0;
    size_t k95 = interval_rank(law, 0.025, z_95), k90 = interval_rank(law, 0.05, z_90);
    lb_sort(differences, count);
    const struct lb_shift shift = {
        .estimate = lb_median(differences, count),
        .lo95 = differences[k95 - 1],
        .hi95 = differences[count - k95],
        .lo90 = differences[k90 - 1],
        .hi90 = differences[count - k90],
        .p = fmax(p_value(law, above), least_p),
        .exact = law->at_most != NULL,
    };
    free(law->at_most);
    free(differences);
    return shift;
}

/* Sum of t^3 - t over groups of t equal values; sorted [n]. */
static double tie_sum(const double *sorted, size_t n)
{
    double sum = 0;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && sorted[end] == sorted[i]; end++)
            ;
        double t = (double)(end - i);
        sum += t * (t * t - 1);
    }
    return sum;
}

struct lb_shift lb_shift(const double *base, size_t n, const double *changed, size_t m)
{
    struct law law = {.steps = (double)n * (double)m};
    double *both = lb_needed(malloc((n + m) * sizeof(*both)));
    double *differences = lb_needed(malloc(n * m * sizeof(*differences)));
    memcpy(both, base, n * sizeof(*both));
    memcpy(both + n, changed, m * sizeof(*both));
    lb_sort(both, n + m);
    double all = (double)(n + m), ties = tie_sum(both, n + m);
    free(both);
    law.sigma = sqrt(law.steps / 12 * (all + 1 - ties / (all * (all - 1))));
    if (ties == 0 && n * m <= LB_SHIFT_EXACT)
        law.at_most = mann_whitney(n, m);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            differences[i * m + j] = changed[j] - base[i];
    return conclude(&law, differences, n * m, lb_shift_least_p(n, m));
}

/* The distribution of the signed ranks of these differences [n], of which those of 0 have the
 * lowest ranks and no sign. absolute [n] is scratch. */
static struct law signed_rank_law(const double *differences, size_t n, double *absolute)
{
    struct law law = {.at_most = NULL};
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (differences[i] != 0)
            absolute[count++] = fabs(differences[i]);
    lb_sort(absolute, count);
    double size = (double)n, zeros = (double)(n - count), ties = tie_sum(absolute, count);
    law.steps = size * (size + 1) / 2;
    law.sigma =
        sqrt((size * (size + 1) * (2 * size + 1) - zeros * (zeros + 1) * (2 * zeros + 1)) / 24 -
             ties / 48);
    if (zeros == 0 && ties == 0 && n <= PAIRS_EXACT)
        law.at_most = signed_ranks(n);
    return law;
}

struct lb_shift lb_shift_paired(const double *differences, size_t n)
{
    size_t count = n * (n + 1) / 2;
    double *averages = lb_needed(malloc(count * sizeof(*averages))), *next = averages;
    struct law law = signed_rank_law(differences, n, averages);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            *next++ = differences[i] / 2 + differences[j] / 2;
    return conclude(&law, averages, count, lb_shift_paired_least_p(n));
}

double lb_shift_least_p(size_t n, size_t m)
{
    double arrangements = 1;
    if (n < LB_SHIFT_MIN_UNITS || m < LB_SHIFT_MIN_UNITS)
        return 1;
    for (size_t i = 1; i <= n; i++)
        arrangements *= (double)(m + i) / (double)i;
    return 2 / arrangements;
}

double lb_shift_paired_least_p(size_t n)
{
    return n < LB_SHIFT_MIN_PAIRS ? 1 : ldexp(2, -(int)n);
}
