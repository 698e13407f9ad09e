/* Tests of change points in a series. */
#include "stats/change_point.h"
#include "tests/helpers/random_draws.h"
#include "tests/helpers/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The energy distance by its definition, term by term. */
static double energy(const double *values, size_t n, size_t split)
{
    double across = 0, first = 0, second = 0, a = (double)split, b = (double)(n - split);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            double distance = fabs(values[i] - values[j]);
            if (j < split)
                first += distance;
            else if (i >= split)
                second += distance;
            else
                across += distance;
        }
    return a * b / (a + b) *
           (2 * across / (a * b) - first / (a * (a - 1) / 2) - second / (b * (b - 1) / 2));
}

TEST(split_is_the_best_of_the_definition)
{
    uint64_t random = 9;
    int single = 0;
    for (size_t n = 20; n < 60; n++) {
        double values[60], best = -INFINITY;
        size_t points[60], count, where = 0;
        for (size_t i = 0; i < n; i++)
            values[i] = draws_normal(&random) + (i > 4 ? 2.5 : 0);
        for (size_t split = 3; split + 3 <= n; split++)
            if (energy(values, n, split) > best) {
                best = energy(values, n, split);
                where = split;
            }
        count = lb_change_points(values, n, 0, points);
        single += count == 1;
        if (count == 1) /* else points[0] need not be the split of the whole series */
            assert_int_equal(points[0], where);
    }
    assert_true(single > 15);
}

/* Yearly flow of the Nile at Aswan, 1871 to 1970: the dam of 1898 is the change that the literature
 * finds (Cobb, Biometrika 65 (1978) 243-251, data there in table 1). */
TEST(nile_changes_in_1898)
{
    size_t points[100];
    assert_int_equal(lb_change_points(draws_nile, 100, 0, points), 1);
    assert_int_equal(1871 + points[0], 1899); /* the first year after it */
}

/* 60 runs with 1 % of noise and a step of 5 % at each position in turn. */
TEST(planted_change_is_found_within_one_run)
{
    uint64_t random = 60;
    for (size_t step_at = 5; step_at <= 55; step_at++) {
        double values[60];
        size_t points[60];
        for (size_t i = 0; i < 60; i++)
            values[i] = log(1e6) + 0.01 * draws_normal(&random) + (i >= step_at ? log(1.05) : 0);
        assert_int_equal(lb_change_points(values, 60, log(1.02), points), 1);
        assert_true(points[0] + 1 >= step_at && points[0] <= step_at + 1);
    }
}

TEST(several_changes_are_all_found_in_order)
{
    static const size_t expected[] = {12, 25, 45};
    static const double levels[] = {0, 0.10, 0.04, 0.12};
    uint64_t random = 3;
    double values[60];
    size_t points[60];
    for (size_t i = 0, level = 0; i < 60; i++) {
        level += level < 3 && i == expected[level];
        values[i] = levels[level] + 0.005 * draws_normal(&random);
    }
    assert_int_equal(lb_change_points(values, 60, 0, points), 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(points[i] + 1 >= expected[i] && points[i] <= expected[i] + 1);
}

/* A level of 3 % more in the middle third of 60 runs: by the median, the two parts of the first
 * split differ by half of that, which is less than the margin. */
TEST(a_level_that_comes_and_goes_is_found)
{
    uint64_t random = 20;
    int found = 0;
    for (int series = 0; series < 50; series++) {
        double values[60];
        size_t points[60];
        for (size_t i = 0; i < 60; i++)
            values[i] = 0.01 * draws_normal(&random) + (i >= 20 && i < 40 ? 0.03 : 0);
        found += lb_change_points(values, 60, log(1.02), points) == 2;
    }
    assert_true(found >= 35); /* 84 % are found */
}

TEST(nothing_is_found_where_nothing_changes)
{
    enum { SERIES = 200 };
    uint64_t random = 1;
    size_t wrong = 0, points[60];
    double values[60];
    for (int series = 0; series < SERIES; series++) {
        for (size_t i = 0; i < 60; i++)
            values[i] = 0.01 * exp(draws_normal(&random)); /* skewed */
        wrong += lb_change_points(values, 60, 0, points) > 0;
    }
    assert_true(wrong <= 7); /* 1 % of 200 is 2; more than 7 has probability 0.1 % */
}

/* With the margin of --history, 2 %, and 1 % of noise there is about one false alarm in a thousand.
 */
TEST(nothing_beyond_the_margin_is_found_in_plain_noise)
{
    uint64_t random = 2;
    size_t points[60], wrong = 0;
    double values[60];
    for (int series = 0; series < 2000; series++) {
        for (size_t i = 0; i < 60; i++)
            values[i] = log(1e6) + 0.01 * draws_normal(&random);
        wrong += lb_change_points(values, 60, log(1.02), points) > 0;
    }
    assert_true(wrong <= 8);
}

TEST(small_and_short_ones_are_no_change)
{
    double values[30];
    size_t points[30];
    for (size_t i = 0; i < 30; i++)
        values[i] = (i >= 15 ? 0.01 : 0) + 1e-4 * (double)(i % 3);
    assert_int_equal(lb_change_points(values, 30, 0, points), 1);
    assert_int_equal(lb_change_points(values, 30, 0.02, points), 0);
    for (size_t n = 0; n < 6; n++)
        assert_int_equal(lb_change_points(values, n, 0.02, points), 0);
}
