/* Simulation: intervals hold what they are about as often as they say, whatever the distribution,
 * for independent draws. Those that are exact order statistics have tests of their own:
 * test_shift.c and test_order_stats.c. */
#include "stats/comparison.h"
#include "stats/order_stats.h"
#include "tests/helpers/random_draws.h"
#include "tests/helpers/test.h"

enum { DRAWS = 20000 /* the standard error of a coverage of 95 % is then 0.15 points */ };

static double draw_log_normal(uint64_t *state)
{
    return exp(draws_normal(state));
}

/* Two modes: 60 % of the values are near 0, 40 % near 10. */
static double draw_two_modes(uint64_t *state)
{
    return draws_uniform(state) < 0.6 ? draws_normal(state) : 10 + draws_normal(state);
}

static double (*const laws[])(uint64_t *state) = {draws_normal, draw_log_normal, draw_two_modes};

/* Beyond LB_SHIFT_EXACT, and where times tie, the law is the normal form: its intervals too hold
 * what they are about, within a point of what they say, ties making them wider. */
TEST(shift_interval_covers_in_its_normal_form)
{
    enum { N = 40, ROUNDS = 5000 };
    for (size_t l = 0; l < 3; l++)
        for (int steps = 0; steps < 2; steps++) {
            uint64_t random = 40 + l;
            int held = 0, significant = 0;
            for (int i = 0; i < ROUNDS; i++) {
                double sets[2][N];
                for (size_t j = 0; j < 2 * N; j++) {
                    double value = laws[l](&random);
                    sets[j / N][j % N] = steps ? round(4 * value) / 4 : value;
                }
                struct lb_shift shift = lb_shift(sets[0], N, sets[1], N);
                assert_false(shift.exact);
                held += shift.lo95 <= 0 && 0 <= shift.hi95;
                significant += shift.p <= 0.05;
            }
            double coverage = (double)held / ROUNDS, error = 4 * 0.0031;
            assert_true(coverage > 0.95 - error);
            if (!steps) /* the interval leaves out 0 exactly when p is 5 % or less */
                assert_int_equal(held + significant, ROUNDS);
            assert_true(steps || coverage < 0.95 + error);
            assert_true((double)significant / ROUNDS < 0.05 + error);
        }
}

/* The paired form under differences that are symmetric about the shift. 1 - 2 P(V <= 13) for 12
 * pairs; the table of Hollander & Wolfe has P(V <= 13) = 0.021. --ab's 60 pairs are beyond the
 * exact law of signed ranks, and 50 are not. */
TEST(paired_interval_covers_as_the_ranks_say)
{
    static const struct {
        size_t n;
        int rounds;
        double shift, level, error;
    } table[] = {{12, DRAWS, 3, 0.95751953125, 4 * 0.0015},
                 {50, 5000, 0, 0.95, 4 * 0.004},
                 {60, 5000, 0, 0.95, 4 * 0.004}};
    for (size_t k = 0; k < 3; k++) {
        uint64_t random = table[k].n;
        int held = 0, significant = 0;
        for (int i = 0; i < table[k].rounds; i++) {
            double differences[60];
            for (size_t j = 0; j < table[k].n; j++)
                differences[j] = table[k].shift + draw_two_modes(&random) - draw_two_modes(&random);
            struct lb_shift shift = lb_shift_paired(differences, table[k].n);
            assert_int_equal(shift.exact, table[k].n <= 50);
            held += shift.lo95 <= table[k].shift && table[k].shift <= shift.hi95;
            significant += shift.p <= 0.05;
        }
        if (table[k].shift == 0)
            assert_int_equal(held + significant, table[k].rounds);
        assert_true(fabs((double)held / table[k].rounds - table[k].level) < table[k].error);
    }
}

/* Times that a coarse clock rounds: from one in twenty to three in four of the differences are 0.
 */
TEST(paired_interval_covers_where_differences_are_0)
{
    enum { ROUNDS = 3000 };
    static const size_t sizes[] = {6, 10, 20};
    static const double steps[] = {0.2, 1, 2, 3};
    for (size_t s = 0; s < 3; s++)
        for (size_t q = 0; q < 4; q++) {
            uint64_t random = 10 * s + q + 1;
            int held = 0, held_90 = 0, significant = 0;
            for (int i = 0; i < ROUNDS; i++) {
                double differences[20];
                for (size_t j = 0; j < sizes[s]; j++)
                    differences[j] = round(draws_normal(&random) / steps[q]) -
                                     round(draws_normal(&random) / steps[q]);
                struct lb_shift shift = lb_shift_paired(differences, sizes[s]);
                held += shift.lo95 <= 0 && 0 <= shift.hi95;
                held_90 += shift.lo90 <= 0 && 0 <= shift.hi90;
                significant += shift.p <= 0.05;
            }
            assert_true((double)held / ROUNDS > 0.95 - 4 * 0.004);
            assert_true((double)held_90 / ROUNDS > 0.90 - 4 * 0.0055);
            assert_true((double)significant / ROUNDS < 0.05 + 4 * 0.004);
        }
}

/* The mutant: blocks that share a level, pooled sample by sample. The interval is far too
 * narrow, which is why units are blocks. */
TEST(pooled_samples_of_blocks_cover_nothing)
{
    uint64_t random = 8;
    int pooled = 0, by_block = 0;
    enum { ROUNDS = 2000, BLOCKS = 6, SAMPLES = 5 };
    for (int round = 0; round < ROUNDS; round++) {
        double sample[2][BLOCKS * SAMPLES], unit[2][BLOCKS];
        for (int side = 0; side < 2; side++)
            for (int b = 0; b < BLOCKS; b++) {
                double level = draws_normal(&random), *first = sample[side] + b * SAMPLES;
                for (int i = 0; i < SAMPLES; i++)
                    first[i] = level + 0.3 * draws_normal(&random);
                lb_sort(first, SAMPLES);
                unit[side][b] = lb_median(first, SAMPLES);
            }
        pooled += lb_shift(sample[0], BLOCKS * SAMPLES, sample[1], BLOCKS * SAMPLES).p <= 0.05;
        by_block += lb_shift(unit[0], BLOCKS, unit[1], BLOCKS).p <= 0.05;
    }
    assert_true(pooled > ROUNDS / 4);
    assert_true(by_block < ROUNDS * 6 / 100);
}
