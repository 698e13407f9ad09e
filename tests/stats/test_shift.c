/* Tests of the shift between two sets, and of the correction for many. Reference values were made
 * with SciPy 1.17.1 or are printed in the books and manuals named beside them. */
#include "stats/comparison.h"
#include "stats/order_stats.h"
#include "tests/helpers/random_draws.h"
#include "tests/helpers/test.h"

#define COUNT(array)      (sizeof(array) / sizeof((array)[0]))
#define NEAR(a, b, limit) assert_true(fabs((a) - (b)) < (limit))

/* Sets of n and m without ties whose Mann-Whitney U is u. */
static void make_sets(size_t n, size_t m, size_t u, double *base, double *changed)
{
    for (size_t i = 0; i < n; i++)
        base[i] = (double)i + 1;
    for (size_t j = 0; j < m; j++) {
        size_t above = u > n ? n : u; /* of the base that this one exceeds */
        changed[j] = (double)above + 0.5 + 0.4 * (double)(m - j) / (double)m;
        u -= above;
    }
}

static double p_of(size_t n, size_t m, size_t u)
{
    double base[64], changed[64];
    make_sets(n, m, u, base, changed);
    struct lb_shift shift = lb_shift(base, n, changed, m);
    assert_true(shift.exact);
    return shift.p;
}

/* Critical values of U for 5 %, two-sided, as printed in most textbooks (Siegel, Nonparametric
 * Statistics, table K): the largest U that is significant. */
TEST(p_values_have_the_critical_values_of_the_printed_table)
{
    static const size_t table[] = {0,  2,  5,  8,  13, 17, 23,  30, 37,
                                   45, 55, 64, 75, 87, 99, 113, 127}; /* n = m = 4 to 20 */
    for (size_t i = 0; i < COUNT(table); i++) {
        size_t n = i + 4;
        assert_true(p_of(n, n, table[i]) <= 0.05);
        assert_true(p_of(n, n, table[i] + 1) > 0.05);
    }
}

/* Counted with Python's integers, which have any length. */
TEST(p_values_are_exact)
{
    static const struct {
        size_t n, m, u;
        double p;
    } known[] = {{5, 5, 2, 0.031746031746031744},    {6, 6, 5, 0.04112554112554113},
                 {8, 8, 13, 0.049883449883449886},   {10, 10, 23, 0.04325705254497824},
                 {20, 20, 127, 0.0490903251893724},  {7, 12, 18, 0.04493133285702945},
                 {15, 20, 90, 0.04634835419964677},  {25, 30, 250, 0.0345834501324777},
                 {31, 32, 350, 0.044926262125996666}};
    for (size_t i = 0; i < COUNT(known); i++) {
        NEAR(p_of(known[i].n, known[i].m, known[i].u), known[i].p, 1e-12);
        NEAR(p_of(known[i].n, known[i].m, known[i].n * known[i].m - known[i].u), known[i].p, 1e-12);
    }
    assert_true(p_of(5, 5, 12) == 1 && p_of(5, 5, 13) == 1);
}

/* Hollander & Wolfe (1973), p. 69: permeability of membranes. R's wilcox.test prints W = 35,
 * p = 0.2544, interval -0.15 to 0.76, difference in location 0.305. */
TEST(membranes_are_as_in_the_book)
{
    const double x[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
    const double y[] = {1.15, 0.88, 0.90, 0.74, 1.21};
    struct lb_shift shift = lb_shift(y, COUNT(y), x, COUNT(x));
    assert_true(shift.exact);
    NEAR(shift.p, 0.2544122544122544, 1e-12);
    NEAR(shift.estimate, 0.305, 1e-12);
    NEAR(shift.lo95, -0.15, 1e-12);
    NEAR(shift.hi95, 0.76, 1e-12);
}

/* The example of R's wilcox.test, ozone in May and August: W = 127.5, p = 0.0001208. Tied. */
TEST(ozone_is_as_in_the_manual_of_r)
{
    const double may[] = {41, 36, 12, 18, 28, 23, 19, 8, 7,  16, 11, 14,  18,
                          14, 34, 6,  30, 11, 1,  11, 4, 32, 23, 45, 115, 37};
    const double august[] = {39, 9,  16, 78, 35, 66, 122, 89,  110, 44, 28,  65, 22,
                             59, 23, 31, 44, 21, 9,  45,  168, 73,  76, 118, 84, 85};
    struct lb_shift shift = lb_shift(may, COUNT(may), august, COUNT(august));
    assert_false(shift.exact);
    NEAR(shift.p, 0.00012080783076877434, 1e-12);
    assert_true(shift.lo95 > 0 && shift.lo95 < shift.lo90 && shift.lo90 < shift.estimate);
    assert_true(shift.estimate < shift.hi90 && shift.hi90 < shift.hi95);
}

/* Hollander & Wolfe (1973), p. 29: depression before and after. R prints V = 40, p = 0.03906,
 * interval -0.786 to -0.010, (pseudo)median -0.46. */
TEST(depression_is_as_in_the_book)
{
    const double x[] = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
    const double y[] = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
    double differences[COUNT(x)];
    struct lb_shift shift;
    for (size_t i = 0; i < COUNT(x); i++)
        differences[i] = y[i] - x[i];
    shift = lb_shift_paired(differences, COUNT(x));
    assert_true(shift.exact);
    NEAR(shift.p, 0.0390625, 1e-12);
    NEAR(shift.estimate, -0.46, 1e-12);
    NEAR(shift.lo95, -0.786, 1e-12);
    NEAR(shift.hi95, -0.010, 1e-12);
}

/* SciPy: wilcoxon(d, zero_method='pratt', correction=True, mode='approx'). One difference is 0,
 * some tie. */
TEST(tied_pairs_are_as_in_scipy)
{
    const double differences[] = {15, -7, 5, 20, 0, -9, 17, -12, 5, -10};
    struct lb_shift shift = lb_shift_paired(differences, COUNT(differences));
    assert_false(shift.exact);
    NEAR(shift.p, 0.645818701677725, 1e-12);
}

/* Five of ten pairs are equal, the others go one way: the interval does not leave out 0. By hand:
 * sigma^2 = (10 11 21 - 5 6 11) / 24 = 82.5, so the bounds are the 10th of 55 averages from either
 * end; those of 5 % are the 13th. */
TEST(pairs_without_a_difference_widen_the_interval)
{
    const double differences[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5};
    double averages[55];
    size_t count = 0;
    for (size_t i = 0; i < 10; i++)
        for (size_t j = i; j < 10; j++)
            averages[count++] = (differences[i] + differences[j]) / 2;
    lb_sort(averages, count);
    struct lb_shift shift = lb_shift_paired(differences, 10);
    NEAR(shift.p, 0.03180288863269329, 1e-12); /* SciPy, as above */
    assert_true(shift.lo95 == averages[9] && shift.hi95 == averages[45]);
    assert_true(shift.lo90 == averages[12] && shift.hi90 == averages[42]);
    assert_true(shift.lo95 == 0);
}

/* All differences by brute force, in order; the interval's bounds must be two of them. */
TEST(bounds_are_order_statistics_of_all_differences)
{
    double base[12], changed[9], all[108];
    uint64_t random = 5;
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < 21; i++)
            *(i < 12 ? &base[i] : &changed[i - 12]) = draws_uniform(&random);
        for (size_t i = 0; i < 108; i++)
            all[i] = changed[i % 9] - base[i / 9];
        struct lb_shift shift = lb_shift(base, 12, changed, 9);
        int above = 0, below[5] = {0};
        const double found[] = {shift.lo95, shift.lo90, shift.estimate, shift.hi90, shift.hi95};
        for (size_t i = 0; i < 108; i++) {
            above += all[i] > 0;
            for (size_t j = 0; j < 5; j++)
                below[j] += all[i] < found[j];
        }
        /* R: qwilcox(c(0.025, 0.05), 12, 9) is 27, 31; the median of 108 lies between two. */
        const int expected[] = {26, 30, 54, 77, 81};
        for (size_t j = 0; j < 5; j++)
            assert_int_equal(below[j], expected[j]);
        assert_int_equal(shift.p <= 0.05, shift.lo95 > 0 || shift.hi95 < 0);
        NEAR(shift.p, p_of(12, 9, (size_t)above), 1e-12);
    }
}

TEST(the_least_p_values_are_those_of_sets_that_do_not_overlap)
{
    assert_true(lb_shift_least_p(3, 4) == 1);
    NEAR(lb_shift_least_p(10, 10), 2.0 / 184756, 1e-15);
    assert_true(lb_shift_paired_least_p(5) == 1);
    for (size_t n = 6; n <= 16; n += 10) { /* all differences on one side reach it */
        double differences[16];
        for (size_t i = 0; i < n; i++)
            differences[i] = (double)i + 1;
        NEAR(lb_shift_paired(differences, n).p, lb_shift_paired_least_p(n), 1e-15);
    }
}

/* Two one-valued sets: of the 126 ways to draw 4 of 9 units, one is as extreme in each direction.
 */
TEST(ties_reach_no_lower_p_values)
{
    const double low[] = {1, 1, 1, 1}, high[] = {2, 2, 2, 2, 2, 2, 2};
    NEAR(lb_shift(low, 4, high, 5).p, 2.0 / 126, 1e-15);
    NEAR(lb_shift_paired(high, 7).p, 2.0 / 128, 1e-15);
}

TEST(sets_that_are_all_one_value_do_not_differ)
{
    const double same[] = {5, 5, 5, 5, 5, 5};
    const double zeros[6] = {0};
    struct lb_shift shift = lb_shift(same, 6, same, 6);
    assert_true(shift.p == 1 && shift.estimate == 0 && shift.lo95 == 0 && shift.hi95 == 0);
    shift = lb_shift_paired(zeros, 6);
    assert_true(shift.p == 1 && shift.estimate == 0);
}
