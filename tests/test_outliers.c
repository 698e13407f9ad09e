/* Tests of what is odd about samples: each oddity is found where it is planted, and seldom in
 * independent samples of whatever distribution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "outliers.h"

enum { ROUNDS = 2000 };

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(2 * acos(-1.0) * uniform(state));
}

/* Draws a series of n in the order of time. */
typedef void draw(double *values, size_t n, uint64_t *random);

static void draw_normal(double *values, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        values[i] = 1000 + 20 * normal(random);
}

static void draw_log_normal(double *values, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        values[i] = 1000 * exp(0.3 * normal(random));
}

static void draw_uniform(double *values, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        values[i] = 1000 + 100 * uniform(random);
}

static void draw_two_modes(double *values, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        values[i] = (uniform(random) < 0.35 ? 1000 : 1100) + 8 * normal(random);
}

static void draw_drift(double *values, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        values[i] = 1000 + 60 * (double)i / (double)n + 20 * normal(random);
}

/* First-order autoregression with a coefficient of 0.6. */
static void draw_autocorrelated(double *values, size_t n, uint64_t *random)
{
    double level = normal(random) / sqrt(1 - 0.36);
    for (size_t i = 0; i < n; i++) {
        values[i] = 1000 + 20 * level;
        level = 0.6 * level + normal(random);
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

/* Share of series of n with the flag. */
static double share(draw *series, size_t n, unsigned flag)
{
    uint64_t random = 11 + n;
    double values[256];
    int flagged = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct lb_oddities oddities;
        series(values, n, &random);
        assert_int_equal(lb_find_oddities(values, n, &n, 1, &oddities, NULL), LB_OK);
        flagged += (oddities.flags & flag) != 0;
    }
    return (double)flagged / ROUNDS;
}

static void planted_oddities_are_found(void **state)
{
    (void)state;
    assert_true(share(draw_outliers, 100, LB_ODD_OUTLIERS) > 0.99);
    assert_true(share(draw_slow_first, 100, LB_ODD_SLOW_FIRST) > 0.99);
    assert_true(share(draw_drift, 100, LB_ODD_DRIFT) > 0.99);
    assert_true(share(draw_autocorrelated, 100, LB_ODD_AUTOCORRELATION) > 0.99);
    assert_true(share(draw_two_modes, 100, LB_ODD_TWO_MODES) > 0.99);
}

static void independent_samples_are_seldom_flagged(void **state)
{
    (void)state;
    static draw *const all[] = {draw_normal, draw_log_normal, draw_uniform, draw_two_modes};
    for (size_t i = 0; i < 4; i++)
        for (size_t n = 20; n <= 200; n = 3 * n + 1) {
            assert_true(share(all[i], n, LB_ODD_SLOW_FIRST) < 0.02);
            assert_true(share(all[i], n, LB_ODD_DRIFT) < 0.01);
            assert_true(share(all[i], n, LB_ODD_AUTOCORRELATION) < 0.015);
            if (all[i] != draw_two_modes)
                assert_true(share(all[i], n, LB_ODD_TWO_MODES) < 0.01);
            if (all[i] == draw_normal || all[i] == draw_uniform)
                assert_true(share(all[i], n, LB_ODD_OUTLIERS) < 0.03);
        }
}

/* The hand-made example: quartiles 3 and 7 (definition 7), so fences at -3, 13 and -9, 19. */
static void outliers_are_classed_by_tukeys_fences(void **state)
{
    (void)state;
    const double values[] = {5, 1, 2, 13, 3, 4, 14, 6, 7};
    const double severe[] = {5, 1, 2, 3, 4, 19.5, 6, 7, 5};
    const size_t block = 9;
    struct lb_oddities oddities;
    assert_int_equal(lb_find_oddities(values, 9, &block, 1, &oddities, NULL), LB_OK);
    assert_int_equal(oddities.mild, 1);
    assert_int_equal(oddities.severe, 0);
    assert_int_equal(lb_find_oddities(severe, 9, &block, 1, &oddities, NULL), LB_OK);
    assert_int_equal(oddities.mild, 0);
    assert_int_equal(oddities.severe, 1);
}

/* Blocks that differ as wholes have levels, which is no autocorrelation inside them. */
static void levels_of_blocks_are_no_autocorrelation(void **state)
{
    (void)state;
    const size_t blocks[] = {30, 30, 30, 30};
    uint64_t random = 4;
    int flagged = 0;
    for (int round = 0; round < 200; round++) {
        double values[120];
        struct lb_oddities oddities;
        draw_normal(values, 120, &random);
        for (size_t i = 0; i < 120; i++)
            values[i] *= i / 30 % 2 ? 1.1 : 1;
        assert_int_equal(lb_find_oddities(values, 120, blocks, 4, &oddities, NULL), LB_OK);
        flagged += (oddities.flags & LB_ODD_AUTOCORRELATION) != 0;
    }
    assert_true(flagged <= 6);
}

static void few_and_equal_samples_are_not_odd(void **state)
{
    (void)state;
    double same[64];
    struct lb_oddities oddities;
    for (size_t i = 0; i < 64; i++)
        same[i] = 40;
    for (size_t n = 0; n <= 64; n++) {
        assert_int_equal(lb_find_oddities(same, n, &n, 1, &oddities, NULL), LB_OK);
        assert_int_equal(oddities.flags, 0);
    }
    assert_string_equal(lb_oddity_name(0), "outliers");
    assert_null(lb_oddity_name(LB_ODD_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_oddities_are_found),
        cmocka_unit_test(independent_samples_are_seldom_flagged),
        cmocka_unit_test(outliers_are_classed_by_tukeys_fences),
        cmocka_unit_test(levels_of_blocks_are_no_autocorrelation),
        cmocka_unit_test(few_and_equal_samples_are_not_odd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
