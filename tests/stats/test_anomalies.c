/* Anomalies of samples: each anomaly is found where it is planted, and seldom in
 * independent samples of whatever distribution. */
#include "stats/anomalies.h"
#include "stats/order_stats.h"
#include "tests/helpers/random_draws.h"
#include "tests/helpers/test.h"

enum { ROUNDS = 2000 };

/* Draws a series of n in the order of time. */
typedef void draw(double *values, size_t n, uint64_t *random);

static void draw_normal(double *values, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        values[i] = 1000 + 20 * draws_normal(random);
}

static void draw_log_normal(double *values, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        values[i] = 1000 * exp(0.3 * draws_normal(random));
}

static void draw_uniform(double *values, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        values[i] = 1000 + 100 * draws_uniform(random);
}

static void draw_two_modes(double *values, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        values[i] = (draws_uniform(random) < 0.35 ? 1000 : 1100) + 8 * draws_normal(random);
}

static void draw_drift(double *values, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        values[i] = 1000 + 60 * (double)i / (double)n + 20 * draws_normal(random);
}

/* First-order autoregression with a coefficient of 0.6. */
static void draw_autocorrelated(double *values, size_t n, uint64_t *random)
{
    double level = draws_normal(random) / sqrt(1 - 0.36);
    for (size_t i = 0; i < n; i++) {
        values[i] = 1000 + 20 * level;
        level = 0.6 * level + draws_normal(random);
    }
}

static void draw_slow_first(double *values, size_t n, uint64_t *random)
{
    draw_normal(values, n, random);
    values[0] *= 1.5;
}

static void draw_outliers(double *values, size_t n, uint64_t *random)
{
    draw_normal(values, n, random);
    for (size_t i = 3; i < n; i += 12)
        values[i] *= 2;
}

/* The anomalies of samples [n] that were all taken in one block. */
static struct lb_anomalies anomalies_of(const double *samples, size_t n)
{
    struct lb_anomalies anomalies;
    lb_find_anomalies(samples, n, &n, 1, &anomalies);
    return anomalies;
}

/* The share of series of n samples that get the flag. */
static double share(draw *series, size_t n, unsigned flag)
{
    uint64_t random = 11 + n;
    double values[256];
    int flagged = 0;
    for (int round = 0; round < ROUNDS; round++) {
        series(values, n, &random);
        flagged += (anomalies_of(values, n).flags & flag) != 0;
    }
    return (double)flagged / ROUNDS;
}

TEST(planted_anomalies_are_found)
{
    assert_true(share(draw_outliers, 100, LB_ANOMALY_OUTLIERS) > 0.99);
    assert_true(share(draw_slow_first, 100, LB_ANOMALY_SLOW_FIRST) > 0.99);
    assert_true(share(draw_drift, 100, LB_ANOMALY_DRIFT) > 0.99);
    assert_true(share(draw_autocorrelated, 100, LB_ANOMALY_AUTOCORRELATION) > 0.99);
    assert_true(share(draw_two_modes, 100, LB_ANOMALY_TWO_MODES) > 0.99);
}

TEST(independent_samples_are_seldom_flagged)
{
    static draw *const all[] = {draw_normal, draw_log_normal, draw_uniform, draw_two_modes};
    for (size_t i = 0; i < 4; i++)
        for (size_t n = 20; n <= 200; n = 3 * n + 1) {
            assert_true(share(all[i], n, LB_ANOMALY_SLOW_FIRST) < 0.02);
            assert_true(share(all[i], n, LB_ANOMALY_DRIFT) < 0.01);
            assert_true(share(all[i], n, LB_ANOMALY_AUTOCORRELATION) < 0.015);
            if (all[i] != draw_two_modes)
                assert_true(share(all[i], n, LB_ANOMALY_TWO_MODES) < 0.01);
            if (all[i] == draw_normal || all[i] == draw_uniform)
                assert_true(share(all[i], n, LB_ANOMALY_OUTLIERS) < 0.03);
        }
}

/* The 90 values of the NIST/SEMATECH e-Handbook of Statistical Methods, 7.1.6, "What are outliers
 * in the data?", which names one mild outlier, 1441, and no extreme one. */
TEST(outliers_are_those_of_the_handbook)
{
    static const double values[90] = {
        30,  171, 184, 201, 212, 250, 265, 270, 272, 289, 305, 306,  322,  322,  336,
        346, 351, 370, 390, 404, 409, 411, 436, 437, 439, 441, 444,  448,  451,  453,
        470, 480, 482, 487, 494, 495, 499, 503, 514, 521, 522, 527,  548,  550,  559,
        560, 570, 572, 574, 578, 585, 592, 592, 607, 616, 618, 621,  629,  637,  638,
        640, 656, 668, 707, 709, 719, 737, 739, 752, 758, 766, 792,  792,  794,  802,
        818, 830, 832, 843, 858, 860, 869, 918, 925, 953, 991, 1000, 1005, 1068, 1441};
    assert_int_equal(anomalies_of(values, 90).mild, 1);
    assert_int_equal(anomalies_of(values, 90).severe, 0);
}

/* Tourists to the United States, 1970 to 1982: example 5.1 of Gibbons & Chakraborti, Nonparametric
 * Statistical Inference (2003), p. 98. R's randtests::bartels.rank.test prints -3.6453 for the
 * normalized ratio; SciPy 1.17.1's spearmanr gives 0.9835164835164836 for the trend, and for the
 * Nile below -0.437449930079709. */
TEST(trend_and_autocorrelation_are_as_published)
{
    static const double tourists[13] = {12362, 12739, 13057, 13955, 14123, 15698, 17523,
                                        18610, 19842, 20310, 22500, 23080, 21916};
    struct lb_anomalies anomalies = anomalies_of(tourists, 13);
    const double n = 13;
    double variance = 4 * (n - 2) * (5 * n * n - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) * (n - 1));
    assert_true(fabs((anomalies.von_neumann - 2) / sqrt(variance) + 3.6453) < 5e-5);
    assert_true(fabs(anomalies.trend / sqrt(12) - 0.9835164835164836) < 1e-12);
    assert_int_equal(anomalies.flags, LB_ANOMALY_DRIFT | LB_ANOMALY_AUTOCORRELATION);
    anomalies = anomalies_of(draws_nile, 100);
    assert_true(fabs(anomalies.trend / sqrt(99) + 0.437449930079709) < 1e-12);
    assert_true(fabs(anomalies.von_neumann - 1.1081367365432973) < 1e-12); /* of SciPy's ranks */
    assert_true(anomalies.flags & LB_ANOMALY_DRIFT);
}

/* What rests on independence fails under autocorrelation and drift, and that is seen: of the series
 * whose interval misses the median, hardly any goes without a flag. */
TEST(intervals_that_dependence_breaks_are_flagged)
{
    static draw *const all[] = {draw_autocorrelated, draw_drift};
    static const double medians[] = {1000, 1000}; /* of the process; of the start of the drift */
    static const unsigned flags[] = {LB_ANOMALY_AUTOCORRELATION, LB_ANOMALY_DRIFT};
    const size_t n = 100;
    for (size_t i = 0; i < 2; i++) {
        uint64_t random = 17;
        int missed = 0, unflagged = 0;
        for (int round = 0; round < ROUNDS; round++) {
            double values[100], lo, hi;
            all[i](values, n, &random);
            struct lb_anomalies anomalies = anomalies_of(values, n);
            lb_sort(values, n);
            assert_int_equal(lb_quantile_interval(values, n, 0.5, 0.95, &lo, &hi), LB_OK);
            missed += medians[i] < lo || hi < medians[i];
            unflagged += (medians[i] < lo || hi < medians[i]) && !(anomalies.flags & flags[i]);
        }
        assert_true(missed > ROUNDS / 5); /* where one in twenty was promised */
        assert_true(unflagged * 100 < missed);
    }
}

/* A drift of less than half a percent is not flagged, however significant it is. */
TEST(drift_that_is_certain_and_small_is_not_flagged)
{
    for (int large = 0; large < 2; large++) {
        double values[200];
        const size_t n = 200;
        for (size_t i = 0; i < n; i++) /* the outer thirds lie apart by two thirds of it */
            values[i] = 1000 + (large ? 9.0 : 6.0) * (double)i / (double)n;
        struct lb_anomalies anomalies = anomalies_of(values, n);
        assert_true(fabs(anomalies.trend / sqrt(199) - 1) < 1e-12);
        assert_int_equal((anomalies.flags & LB_ANOMALY_DRIFT) != 0, large);
    }
}

/* Blocks whose levels differ by chance do not drift; those that rise together do, and so do blocks
 * of one sample. */
TEST(levels_of_blocks_are_no_drift)
{
    const size_t blocks[] = {30, 30, 0, 30, 30};
    size_t single[120];
    uint64_t random = 8;
    int flagged = 0;
    for (int round = 0; round < 200; round++) {
        double values[120], levels[4], rising[120];
        struct lb_anomalies anomalies;
        draw_normal(values, 120, &random);
        draw_normal(levels, 4, &random);
        for (size_t i = 0; i < 120; i++) {
            single[i] = 1;
            rising[i] = values[i] * (1 + 0.003 * (double)i);
            values[i] *= levels[i / 30] / 1000;
        }
        lb_find_anomalies(values, 120, blocks, 5, &anomalies);
        flagged += (anomalies.flags & LB_ANOMALY_DRIFT) != 0;
        lb_find_anomalies(rising, 120, blocks, 5, &anomalies);
        assert_true(anomalies.flags & LB_ANOMALY_DRIFT);
        lb_find_anomalies(rising, 120, single, 120, &anomalies);
        assert_true(anomalies.flags & LB_ANOMALY_DRIFT);
    }
    assert_true(flagged <= 3);
}

/* Blocks at different levels are not autocorrelation within the blocks. */
TEST(levels_of_blocks_are_no_autocorrelation)
{
    const size_t blocks[] = {30, 30, 30, 30};
    uint64_t random = 4;
    int flagged = 0;
    for (int round = 0; round < 200; round++) {
        double values[120];
        struct lb_anomalies anomalies;
        draw_normal(values, 120, &random);
        for (size_t i = 0; i < 120; i++)
            values[i] *= i / 30 % 2 ? 1.1 : 1;
        lb_find_anomalies(values, 120, blocks, 4, &anomalies);
        flagged += (anomalies.flags & LB_ANOMALY_AUTOCORRELATION) != 0;
    }
    assert_true(flagged <= 6);
}

TEST(few_and_equal_samples_are_no_anomaly)
{
    double same[64];
    for (size_t i = 0; i < 64; i++)
        same[i] = 40;
    for (size_t n = 0; n <= 64; n++)
        assert_int_equal(anomalies_of(same, n).flags, 0);
}
