/* Random numbers, and input data that is made from them. */
#include "base/random.h"
#include "reference/input_data.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

/* The first numbers of seed 1234567, as published with implementations in many languages. */
TEST(the_sequence_is_that_of_splitmix64)
{
    static const uint64_t known[] = {6457827717110365317u, 3203168211198807973u,
                                     9817491932198370423u, 4593380528125082431u,
                                     16408922859458223821u};
    uint64_t random = 1234567;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        assert_true(lb_random_next(&random) == known[i]);
}

TEST(floats_are_in_range_with_the_moments_of_a_uniform)
{
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

TEST(below_covers_its_range_and_no_more)
{
    int seen[7] = {0};
    for (uint64_t i = 0; i < 7000; i++) {
        uint64_t value = lb_random_below(3, 5, i, 7);
        assert_true(value < 7);
        seen[value]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 850, 1150);
}

TEST(a_row_is_the_same_in_every_batch_and_at_every_length)
{
    enum { FEW = 2, MANY = 5, I = 3, SHORT = 4, LONG = 9 };
    struct lb_problem p = trial_problem("T4_B2_I3_H5/bf16");
    double small[SHORT * FEW * I], large[LONG * MANY * I];
    lb_draw_rows(&p, 1, LB_X, FEW, small);
    p.seq_len = LONG;
    lb_draw_rows(&p, 1, LB_X, MANY, large);
    for (size_t t = 0; t < SHORT; t++)
        for (size_t k = 0; k < FEW; k++)
            assert_memory_equal(small + (t * FEW + k) * I, large + (t * MANY + k) * I,
                                I * sizeof(double));
    assert_memory_not_equal(small, small + I, I * sizeof(double)); /* rows differ */
}

TEST(data_is_exact_in_its_dtype)
{
    double values[4 * 5 * 5];
    for (int dtype = 0; dtype < LB_DTYPE_COUNT; dtype++) {
        struct lb_problem p = trial_problem("T1_B1_I5_H5");
        p.dtype = (enum lb_dtype)dtype;
        lb_draw_weights(&p, 1, LB_W_HH, 0, values);
        for (size_t i = 0; i < 4 * 5 * 5; i++)
            assert_true(values[i] == lb_round(p.dtype, values[i]));
    }
}

TEST(lengths_descend_from_the_whole_to_at_least_one_step)
{
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

/* The input sets of a problem: no batch row may be the same in two where lengths allow it, and
 * counts must differ where rows are dealt, so that weight gradients do. */
TEST(input_sets_differ_and_share_their_lengths)
{
    static const char *const texts[] = {
        "T5_B1_H8",
        "T5_B7_H8",
        "T5_B1_H8/ragged",
        "T5_B7_H8/ragged",
        "T1024_B5_H768",
        "T1024_B100_H768",
        "T1024_B1_H768",
        "T1024_B4_H768",
        "T1024_B9_H768/ragged",
        "T1024_B100_H768/ragged",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (uint64_t seed = 0; seed < 50; seed++) {
            struct lb_problem p = trial_problem(texts[i]);
            int32_t class_of[LB_INPUT_SETS][128], counts[LB_INPUT_SETS][128];
            int32_t left[128], again[128];
            size_t B = (size_t)p.batch, R = lb_row_count(&p);
            bool dealt = lb_class_count(&p) < B;
            for (int set = 0; set < LB_INPUT_SETS; set++) {
                lb_deal_set(&p, seed, set, class_of[set], counts[set]);
                memcpy(left, counts[set], sizeof(left));
                for (size_t b = 0; b < B; b++) {
                    assert_in_range(class_of[set][b], 0, R - 1);
                    left[class_of[set][b]]--;
                    assert_true(!p.ragged || b == 0 || class_of[set][b] >= class_of[set][b - 1]);
                }
                for (size_t r = 0; r < R; r++) {
                    assert_int_equal(left[r], 0);
                    assert_true(counts[set][r] > 0 || !dealt || (p.ragged && r < LB_INPUT_SETS));
                }
                lb_deal_set(&p, seed, set, again, left);
                assert_memory_equal(again, class_of[set], B * sizeof(int32_t));
            }
            for (int pair = 0; pair < LB_INPUT_SETS; pair++) {
                int one = pair, other = (pair + 1) % LB_INPUT_SETS;
                size_t same = 0;
                for (size_t b = 0; b < B; b++)
                    same += class_of[one][b] == class_of[other][b];
                assert_true(dealt || p.ragged ? same < B : same == 0);
                assert_memory_not_equal(counts[one], counts[other], R * sizeof(int32_t));
                for (size_t b = 0; p.ragged && b < B; b++) /* the first rows have one length */
                    assert_true(class_of[one][b] == class_of[other][b] ||
                                (class_of[one][b] == one && class_of[other][b] == other));
            }
        }
}

TEST(small_problems_have_distinct_rows_and_big_ones_a_few)
{
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
