/* Random numbers, and input data that is made from them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "reference/input_data.h"
#include "tests/helpers/conformance_trial.h"

typedef uint64_t bits_function(uint64_t seed, uint64_t stream, uint64_t index);

/* Chi-squared of the bytes at one position of 2^16 numbers, taken along one of the three arguments:
 * 255 degrees of freedom, so about 255 +- 23 for random bytes. */
static double chi_squared(bits_function *bits, int along, int shift)
{
    enum { COUNT = 1 << 16 };
    double counts[256] = {0}, sum = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t value = bits(along == 0 ? i : 1, along == 1 ? i : 2, along == 2 ? i : 3);
        counts[value >> shift & 255]++;
    }
    for (int i = 0; i < 256; i++)
        sum += (counts[i] - COUNT / 256.0) * (counts[i] - COUNT / 256.0) / (COUNT / 256.0);
    return sum;
}

static double worst_chi_squared(bits_function *bits)
{
    double worst = 255;
    for (int along = 0; along < 3; along++)
        for (int shift = 0; shift < 64; shift += 8) {
            double value = chi_squared(bits, along, shift);
            if (fabs(value - 255) > fabs(worst - 255))
                worst = value;
        }
    return worst;
}

/* The first numbers of seed 1234567, as published with implementations in many languages. */
static void the_sequence_is_that_of_splitmix64(void **state)
{
    (void)state;
    static const uint64_t known[] = {6457827717110365317u, 3203168211198807973u,
                                     9817491932198370423u, 4593380528125082431u,
                                     16408922859458223821u};
    uint64_t random = 1234567;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        assert_true(lb_random_next(&random) == known[i]);
}

static uint64_t unmixed(uint64_t seed, uint64_t stream, uint64_t index)
{
    return seed * 0x9e3779b97f4a7c15u + stream * 0xbf58476d1ce4e5b9u + index;
}

static void bytes_are_uniform_along_seed_stream_and_index(void **state)
{
    (void)state;
    assert_true(fabs(worst_chi_squared(lb_random_bits) - 255) < 6 * 23);
    assert_true(fabs(worst_chi_squared(unmixed) - 255) > 6 * 23); /* a plain counter is found */
}

static void floats_are_in_range_with_the_moments_of_a_uniform(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    double mean = 0, square = 0, neighbours = 0, last = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double value = (double)lb_random_float(7, 11, i);
        assert_true(value >= -1 && value < 1);
        mean += value / COUNT;
        square += value * value / COUNT;
        neighbours += value * last / COUNT;
        last = value;
    }
    assert_true(fabs(mean) < 0.01);
    assert_true(fabs(square - 1.0 / 3) < 0.01);
    assert_true(fabs(neighbours) < 0.01);
}

static void below_covers_its_range_and_no_more(void **state)
{
    (void)state;
    int seen[7] = {0};
    for (uint64_t i = 0; i < 7000; i++) {
        uint64_t value = lb_random_below(3, 5, i, 7);
        assert_true(value < 7);
        seen[value]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 850, 1150);
}

static void a_row_is_the_same_in_every_batch_and_at_every_length(void **state)
{
    (void)state;
    enum { FEW = 2, MANY = 5, I = 3, SHORT = 4, LONG = 9 };
    struct lb_problem p = trial_problem("T4_B2_I3_H5/bf16");
    double small[SHORT * FEW * I], large[LONG * MANY * I];
    lb_draw_rows(&p, 1, LB_DRAWN_X, FEW, small);
    p.seq_len = LONG;
    lb_draw_rows(&p, 1, LB_DRAWN_X, MANY, large);
    for (size_t t = 0; t < SHORT; t++)
        for (size_t k = 0; k < FEW; k++)
            assert_memory_equal(small + (t * FEW + k) * I, large + (t * MANY + k) * I,
                                I * sizeof(double));
    assert_memory_not_equal(small, small + I, I * sizeof(double)); /* rows differ */
}

static void data_is_exact_in_its_dtype(void **state)
{
    (void)state;
    double values[4 * 5 * 5];
    for (int dtype = 0; dtype < LB_DTYPE_COUNT; dtype++) {
        struct lb_problem p = trial_problem("T1_B1_I5_H5");
        p.dtype = (enum lb_dtype)dtype;
        lb_draw_weights(&p, 1, LB_DRAWN_W_HH, 0, values);
        for (size_t i = 0; i < 4 * 5 * 5; i++)
            assert_true(values[i] == lb_round(p.dtype, values[i]));
    }
}

static void lengths_descend_from_the_whole_to_at_least_one_step(void **state)
{
    (void)state;
    enum { ROWS = 6 };
    int32_t lengths[ROWS];
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct lb_problem p = trial_problem("T1_B6_H1");
        p.seq_len = 1 + (int64_t)seed % 40;
        lb_draw_lengths(&p, seed, ROWS, lengths);
        assert_int_equal(lengths[0], p.seq_len);
        for (size_t k = 1; k < ROWS; k++)
            assert_in_range(lengths[k], 1, lengths[k - 1]);
    }
}

static void dealing_uses_every_row_and_keeps_ragged_lengths_sorted(void **state)
{
    (void)state;
    enum { BATCH = 40, ROWS = 4 };
    int32_t class_of[BATCH], counts[ROWS], seen[ROWS], first[BATCH];
    struct lb_problem p = trial_problem("T9_B40_H1");
    for (uint64_t seed = 0; seed < 100; seed++) {
        p.ragged = seed & 1;
        memset(seen, 0, sizeof(seen));
        lb_deal(&p, seed, ROWS, class_of, counts);
        for (size_t b = 0; b < BATCH; b++) {
            assert_in_range(class_of[b], 0, ROWS - 1);
            seen[class_of[b]]++;
            if (p.ragged && b > 0)
                assert_true(class_of[b] >= class_of[b - 1]);
        }
        assert_memory_equal(seen, counts, sizeof(seen));
        for (size_t k = 0; k < ROWS; k++)
            assert_true(counts[k] > 0);
        if (seed == 0)
            memcpy(first, class_of, sizeof(first));
    }
    lb_deal(&p, 0, BATCH, class_of, (int32_t[BATCH]){0});
    for (int32_t b = 0; b < BATCH; b++)
        assert_int_equal(class_of[b], b);
    p.ragged = false;
    lb_deal(&p, 0, ROWS, class_of, counts);
    assert_memory_equal(class_of, first, sizeof(first)); /* by seed alone */
}

static void small_problems_have_distinct_rows_and_big_ones_a_few(void **state)
{
    (void)state;
    struct lb_problem p = trial_problem("T5_B128_H8");
    assert_int_equal(lb_class_count(&p), 128);
    p = trial_problem("T1024_B128_H768");
    size_t few = lb_class_count(&p);
    assert_true(few < 128);
    p.batch = 64;
    assert_int_equal(lb_class_count(&p), few); /* so both batches share expected values */
    p.batch = 2;
    assert_int_equal(lb_class_count(&p), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sequence_is_that_of_splitmix64),
        cmocka_unit_test(bytes_are_uniform_along_seed_stream_and_index),
        cmocka_unit_test(floats_are_in_range_with_the_moments_of_a_uniform),
        cmocka_unit_test(below_covers_its_range_and_no_more),
        cmocka_unit_test(a_row_is_the_same_in_every_batch_and_at_every_length),
        cmocka_unit_test(data_is_exact_in_its_dtype),
        cmocka_unit_test(lengths_descend_from_the_whole_to_at_least_one_step),
        cmocka_unit_test(dealing_uses_every_row_and_keeps_ragged_lengths_sorted),
        cmocka_unit_test(small_problems_have_distinct_rows_and_big_ones_a_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
