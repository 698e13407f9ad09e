/* Tests of the statistics of samples. */
#include "stats/order_stats.h"
#include "tests/helpers/random_draws.h"
#include "tests/helpers/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Fills in 1, 2, ..., n, so that each order statistic is equal to its rank. */
static double *ranks(size_t n)
{
    double *values = malloc(n * sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        values[i] = (double)(i + 1);
    return values;
}

TEST(sort_orders_any_input)
{
    double values[] = {3, -1, 2, 2, INFINITY, 0, 1e-300, -INFINITY};
    lb_sort(values, COUNT(values));
    for (size_t i = 1; i < COUNT(values); i++)
        assert_true(values[i - 1] <= values[i]);
    lb_sort(values, 0);
}

TEST(median_is_the_middle_or_the_mean_of_two)
{
    assert_true(lb_median((double[]){1, 2, 10}, 3) == 2);
    assert_true(lb_median((double[]){1, 2, 4, 10}, 4) == 3);
    assert_true(lb_median((double[]){7}, 1) == 7);
    assert_true(isnan(lb_median(NULL, 0)));
}

/* Ranks of the 95 % interval, from a printed table of exact confidence levels for the population
 * median, n = 2 to 20 (statistics textbook, table A.7,
 * https://www.coursehero.com/file/5646626/A7/): for each n the narrowest interval whose level is 95
 * % or more. */
TEST(median_interval_has_the_ranks_of_the_printed_table)
{
    static const struct {
        size_t n;
        double lo, hi;
    } table[] = {{6, 1, 6},   {7, 1, 7},   {8, 1, 8},   {9, 2, 8},   {10, 2, 9},
                 {11, 2, 10}, {12, 3, 10}, {13, 3, 11}, {14, 3, 12}, {15, 4, 12},
                 {16, 4, 13}, {17, 5, 13}, {18, 5, 14}, {19, 5, 15}, {20, 6, 15}};
    for (size_t i = 0; i < COUNT(table); i++) {
        double *values = ranks(table[i].n), lo, hi;
        assert_int_equal(lb_quantile_interval(values, table[i].n, 0.5, 0.95, &lo, &hi), LB_OK);
        assert_true(lo == table[i].lo && hi == table[i].hi);
        free(values);
    }
}

/* P(r <= Binomial(n, 1/2) <= n - r), by the logarithm of the gamma function: another way than the
 * code under test takes. */
static double coverage(size_t n, size_t r)
{
    double sum = 0, size = (double)n;
    for (size_t k = r; k <= n - r; k++)
        sum += exp(lgamma(size + 1) - lgamma((double)k + 1) - lgamma(size - (double)k + 1) -
                   size * log(2));
    return sum;
}

TEST(median_interval_is_the_narrowest_that_covers)
{
    static const double levels[] = {0.5, 0.9, 0.95, 0.99};
    for (size_t n = 6; n <= 5000; n = n < 60 ? n + 1 : n * 3 / 2) {
        double *values = ranks(n);
        for (size_t i = 0; i < COUNT(levels); i++) {
            double lo, hi;
            if (lb_quantile_interval(values, n, 0.5, levels[i], &lo, &hi) != LB_OK) {
                assert_true(coverage(n, 1) < levels[i]);
                continue;
            }
            size_t r = (size_t)lo;
            assert_true(lo + hi == (double)(n + 1));
            assert_true(coverage(n, r) >= levels[i] - 1e-9);
            assert_true(2 * (r + 1) > n + 1 || coverage(n, r + 1) < levels[i]);
        }
        free(values);
    }
}

TEST(median_interval_refuses_too_few_samples)
{
    const double levels[] = {0.99, 0, 1, NAN};
    double *values = ranks(6), lo = -1, hi = -1;
    for (size_t n = 0; n < 6; n++)
        assert_int_equal(lb_quantile_interval(values, n, 0.5, 0.95, &lo, &hi), LB_INVALID);
    for (size_t i = 0; i < COUNT(levels); i++)
        assert_int_equal(lb_quantile_interval(values, 6, 0.5, levels[i], &lo, &hi), LB_INVALID);
    assert_true(lo == -1 && hi == -1);
    free(values);
}

/* Values of the examples for linear interpolation in Wikipedia, "Percentile" (C = 1). */
TEST(quantile_interpolates_as_defined)
{
    const double values[] = {15, 20, 35, 40, 50}, four[] = {1, 2, 3, 4};
    assert_true(fabs(lb_quantile(values, 5, 0.40) - 29) < 1e-12);
    assert_true(fabs(lb_quantile(four, 4, 0.75) - 3.25) < 1e-12);
    assert_true(fabs(lb_quantile(values, 5, 0.05) - 16) < 1e-12);
    assert_true(lb_quantile(values, 5, 0) == 15);
    assert_true(lb_quantile(values, 5, 1) == 50);
    assert_true(lb_quantile(values, 5, 0.5) == lb_median(values, 5));
    assert_true(lb_quantile(values, 1, 0.95) == 15);
    assert_true(isnan(lb_quantile(values, 0, 0.5)));
}

/* The least numbers of samples follow from p^n <= 2.5 % (Hahn & Meeker, 5.2). */
TEST(a_high_percentile_has_an_interval_of_the_level_or_none)
{
    enum { N = 1000, ROUNDS = 2000 };
    static double values[4000];
    static const struct {
        double p;
        size_t least;
    } known[] = {{0.9, 36}, {0.99, 368}, {0.999, 3688}};
    double lo, hi;
    uint64_t random = 5;
    for (size_t i = 0; i < 4000; i++)
        values[i] = (double)i;
    for (size_t i = 0; i < 3; i++) {
        size_t n = known[i].least;
        assert_int_equal(lb_quantile_interval(values, n - 1, known[i].p, 0.95, &lo, &hi),
                         LB_INVALID);
        assert_int_equal(lb_quantile_interval(values, n, known[i].p, 0.95, &lo, &hi), LB_OK);
        assert_true(hi == (double)(n - 1));
    }
    int below = 0, above = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < N; i++)
            values[i] = draws_uniform(&random);
        lb_sort(values, N);
        assert_int_equal(lb_quantile_interval(values, N, 0.99, 0.95, &lo, &hi), LB_OK);
        below += hi < 0.99;
        above += lo > 0.99;
    }
    /* Each side is wrong in at most 2.5 %, and the interval is no wider than that needs. */
    assert_in_range(below, ROUNDS / 100, ROUNDS * 3 / 100);
    assert_in_range(above, ROUNDS / 100, ROUNDS * 3 / 100);
}

TEST(mad_is_the_median_of_the_sorted_deviations)
{
    uint64_t random = 3;
    /* The example of Wikipedia, "Median absolute deviation". */
    assert_true(lb_mad((double[]){1, 1, 2, 2, 4, 6, 9}, 7) == 1);
    assert_true(isnan(lb_mad(NULL, 0)));
    for (size_t n = 1; n < 40; n++) {
        double values[40], deviations[40];
        for (size_t i = 0; i < n; i++)
            values[i] = floor(100 * pow(draws_uniform(&random), 3));
        lb_sort(values, n);
        for (size_t i = 0; i < n; i++)
            deviations[i] = fabs(values[i] - lb_median(values, n));
        lb_sort(deviations, n);
        assert_true(lb_mad(values, n) == lb_median(deviations, n));
    }
}

/* Yearly flow of the Nile, 1871 to 1970 (Cobb, Biometrika 65 (1978) 243-251, table 1).
 * SciPy 1.17.1: median, min, median_abs_deviation, numpy.quantile, and quantile_test(x, q=0,
 * p=0.5).confidence_interval(0.95) and (0.99). */
TEST(nile_is_as_in_scipy)
{
    double flow[100], lo, hi;
    memcpy(flow, draws_nile, sizeof(flow));
    lb_sort(flow, 100);
    assert_true(flow[0] == 456);
    assert_true(lb_median(flow, 100) == 893.5);
    assert_true(lb_mad(flow, 100) == 121);
    assert_true(fabs(lb_quantile(flow, 100, 0.05) - 697.8) < 1e-9);
    assert_true(lb_quantile(flow, 100, 0.25) == 798.5);
    assert_true(lb_quantile(flow, 100, 0.75) == 1032.5);
    assert_true(fabs(lb_quantile(flow, 100, 0.95) - 1210.5) < 1e-9);
    assert_int_equal(lb_quantile_interval(flow, 100, 0.5, 0.95, &lo, &hi), LB_OK);
    assert_true(lo == 845 && hi == 944);
    assert_int_equal(lb_quantile_interval(flow, 100, 0.5, 0.99, &lo, &hi), LB_OK);
    assert_true(lo == 838 && hi == 963);
}
