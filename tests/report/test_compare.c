/* Tests of comparing two runs: verdicts, units, and what a reader must know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "report/compare.h"
#include "stats/anomalies.h"
#include "stats/student.h"
#include "tests/helpers/synthetic_run.h"

static const struct lb_pair *find(const struct lb_run_comparison *comparison, const char *id)
{
    for (size_t i = 0; i < comparison->count; i++)
        if (strcmp(comparison->pairs[i].id, id) == 0)
            return &comparison->pairs[i];
    fail_msg("%s is not there", id);
    return NULL;
}

#define CASE(n) "cpu_ref/T" #n "_B1_I64_H64/f32/infer"

/* Every kind of change, the worst first. */
static void every_change_has_its_name(void **state)
{
    (void)state;
    struct lb_run base = synthetic_empty(), now = synthetic_empty();
    synthetic_add_processes(&base, CASE(1), 1000, 10, 1),
        synthetic_add_processes(&now, CASE(1), 1050, 10, 2);
    synthetic_add_processes(&base, CASE(2), 1000, 10, 3),
        synthetic_add_processes(&now, CASE(2), 950, 10, 4);
    synthetic_add_processes(&base, CASE(3), 1000, 10, 5),
        synthetic_add_processes(&now, CASE(3), 1001, 10, 6);
    synthetic_add_processes(&base, CASE(4), 1000, 10, 7),
        synthetic_add_processes(&now, CASE(4), 1020, 10, 8);
    synthetic_add_processes(&base, CASE(5), 1000, 10, 9);
    synthetic_add(&now, synthetic_row(CASE(5), LB_VERDICT_CRASH, 0, 0, 0));
    synthetic_add_processes(&base, CASE(6), 1000, 10, 10);
    synthetic_add_processes(&now, CASE(7), 1000, 10, 11);
    synthetic_add(&base, synthetic_row(CASE(8), LB_VERDICT_WRONG, 0, 0, 0));
    synthetic_add_processes(&now, CASE(8), 1000, 10, 12);
    synthetic_add(&base, synthetic_row(CASE(9), LB_VERDICT_WRONG, 0, 0, 0));
    synthetic_add(&now, synthetic_row(CASE(9), LB_VERDICT_WRONG, 0, 0, 0));
    synthetic_add(&base, synthetic_row(CASE(10), LB_VERDICT_UNSUPPORTED, 0, 0, 0));
    synthetic_add(&now, synthetic_row(CASE(10), LB_VERDICT_UNSUPPORTED, 0, 0, 0));
    synthetic_add(&now, synthetic_row(CASE(11), LB_VERDICT_TIMEOUT, 0, 0, 0));

    static const enum lb_change expected[] = {
        LB_CHANGE_SLOWER,        LB_CHANGE_FASTER,  LB_CHANGE_SAME,  LB_CHANGE_INCONCLUSIVE,
        LB_CHANGE_BROKEN,        LB_CHANGE_GONE,    LB_CHANGE_NEW,   LB_CHANGE_MENDED,
        LB_CHANGE_STILL_FAILING, LB_CHANGE_NOT_RUN, LB_CHANGE_BROKEN};
    struct lb_run_comparison comparison = synthetic_compare(&base, &now);
    assert_int_equal(comparison.count, 11);
    for (int i = 0; i < 11; i++) {
        char id[LB_CASE_ID_SIZE];
        snprintf(id, sizeof(id), "cpu_ref/T%d_B1_I64_H64/f32/infer", i + 1);
        assert_int_equal(find(&comparison, id)->change, expected[i]);
    }
    for (size_t i = 1; i < comparison.count; i++)
        assert_true(comparison.pairs[i - 1].change <= comparison.pairs[i].change);
    const struct lb_pair *slower = find(&comparison, CASE(1));
    assert_true(fabs(slower->shift.estimate - log(1.05)) < 0.005);
    assert_true(slower->shift.lo95 < log(1.05) && log(1.05) < slower->shift.hi95);
    assert_string_equal(comparison.notes, "");
    lb_run_comparison_free(&comparison);
    lb_run_free(&now);
    lb_run_free(&base);
}

/* The broken twin of processes as units: samples of one process, pooled, would tell runs apart that
 * differ by what a process drew. One block against one says nothing, however many samples. */
static void one_block_each_is_too_few_to_tell(void **state)
{
    (void)state;
    struct lb_run base = synthetic_empty(), now = synthetic_empty();
    synthetic_add(&base, synthetic_row(CASE(1), LB_VERDICT_OK, 1000, 1, 200));
    synthetic_add(&now, synthetic_row(CASE(1), LB_VERDICT_OK, 1300, 1, 200));
    struct lb_run_comparison comparison = synthetic_compare(&base, &now);
    assert_int_equal(comparison.pairs[0].change, LB_CHANGE_INCONCLUSIVE);
    assert_false(comparison.pairs[0].compared);
    assert_non_null(strstr(comparison.pairs[0].note, "too few to tell"));
    lb_run_comparison_free(&comparison);
    lb_run_free(&now);
    lb_run_free(&base);
}

/* Ten processes against one process of ten blocks: the latter is one unit, not ten. */
static void a_process_is_never_compared_with_a_block(void **state)
{
    (void)state;
    struct lb_run base = synthetic_empty(), now = synthetic_empty();
    synthetic_add_processes(&base, CASE(1), 1000, 10, 1);
    synthetic_add(&now, synthetic_row(CASE(1), LB_VERDICT_OK, 1300, 10, 20));
    for (int turn = 0; turn < 2; turn++) {
        struct lb_run_comparison comparison =
            turn == 0 ? synthetic_compare(&base, &now) : synthetic_compare(&now, &base);
        assert_false(comparison.pairs[0].compared);
        assert_non_null(strstr(comparison.pairs[0].note,
                               turn == 0 ? "10 processes against 1" : "1 process against 10"));
        lb_run_comparison_free(&comparison);
    }
    lb_run_free(&now);
    lb_run_free(&base);
}

/* n processes per side whose logarithms are evenly spaced; now's are above base's by the shift. */
static enum lb_change verdict_of(size_t n, double spread, double shift, double margin,
                                 const char *words)
{
    struct lb_run runs[2] = {synthetic_empty(), synthetic_empty()};
    const struct lb_compare_options options = {.margin = margin, .level = 0.01};
    struct lb_run_comparison comparison;
    for (int s = 0; s < 2; s++) {
        struct lb_row row = synthetic_row(CASE(1), LB_VERDICT_OK, 0, 0, 0);
        for (size_t p = 0; p < n; p++) {
            double position = (double)p / (double)(n - 1) - 0.5 + 1e-3 * s; /* nothing ties */
            const double sample = 1e6 * exp(spread * position + shift * s);
            if (p > 0)
                assert_int_equal(lb_row_add_process(&row, NULL), LB_OK);
            assert_int_equal(lb_row_add_block(&row, &sample, 1, NULL), LB_OK);
        }
        assert_int_equal(lb_row_summarize(&row, NULL), LB_OK);
        row.flags = 0; /* it drifts */
        synthetic_add(&runs[s], row);
    }
    assert_int_equal(lb_compare_runs(&runs[0], &runs[1], &options, &comparison, NULL), LB_OK);
    enum lb_change change = comparison.pairs[0].change;
    assert_string_equal(comparison.pairs[0].note, words);
    lb_run_comparison_free(&comparison);
    lb_run_free(&runs[0]);
    lb_run_free(&runs[1]);
    return change;
}

/* A significant but small shift, and a large but uncertain one, are not enough for a verdict. */
static void verdict_needs_both_certainty_and_size(void **state)
{
    (void)state;
    static const char chance[] = "the estimate is beyond the margin, but chance can't be ruled out",
                      perhaps[] = "the times differ, but perhaps by less than the margin",
                      wide[] = "the interval reaches beyond the margin";
    assert_int_equal(verdict_of(15, 0.001, 0.019, 0.02, ""), LB_CHANGE_SAME);
    assert_int_equal(verdict_of(15, 0.010, 0.030, 0.02, ""), LB_CHANGE_SLOWER);
    assert_int_equal(verdict_of(15, 0.010, -0.030, 0.02, ""), LB_CHANGE_FASTER);
    assert_int_equal(verdict_of(15, 0.010, 0.019, 0.02, perhaps), LB_CHANGE_INCONCLUSIVE);
    assert_int_equal(verdict_of(15, 0.200, 0.030, 0.02, chance), LB_CHANGE_INCONCLUSIVE);
    assert_int_equal(verdict_of(15, 0.200, 0.000, 0.02, wide), LB_CHANGE_INCONCLUSIVE);
    assert_int_equal(verdict_of(15, 0.200, 0.000, 0.20, ""), LB_CHANGE_SAME);
    /* Two one-sided tests at 5 % are a 90 % interval: here it ends at 1.7 %, that of 95 % at 2.3 %.
     */
    assert_int_equal(verdict_of(15, 0.080, 0.000, 0.02, ""), LB_CHANGE_SAME);
    /* 4 against 4 can't reach 1 %, however far apart. */
    assert_int_equal(verdict_of(4, 0.010, 0.500, 0.02, chance), LB_CHANGE_INCONCLUSIVE);
}

/* One slowdown of 5 against 5, whose p-value is 0.8 %, alone and among seven cases. */
static void correction_counts_all_cases(void **state)
{
    (void)state;
    for (int cases = 1; cases <= 7; cases += 6) {
        struct lb_run base = synthetic_empty(), now = synthetic_empty();
        for (int i = 1; i <= cases; i++) {
            char id[LB_CASE_ID_SIZE];
            snprintf(id, sizeof(id), "cpu_ref/T%d_B1_I64_H64/f32/infer", i);
            synthetic_add_processes(&base, id, 1000, 5, 1);
            synthetic_add_processes(&now, id, i == 1 ? 1100 : 1000.5, 5, 2);
        }
        struct lb_run_comparison comparison = synthetic_compare(&base, &now);
        const struct lb_pair *pair = find(&comparison, CASE(1));
        assert_true(fabs(pair->shift.p - 2.0 / 252) < 1e-12);
        assert_true(fabs(pair->adjusted_p - cases * 2.0 / 252) < 1e-12);
        assert_int_equal(pair->change, cases == 1 ? LB_CHANGE_SLOWER : LB_CHANGE_INCONCLUSIVE);
        lb_run_comparison_free(&comparison);
        lb_run_free(&now);
        lb_run_free(&base);
    }
}

static void second_sweep_must_show_a_slowdown_too(void **state)
{
    (void)state;
    struct lb_run base = synthetic_empty(), now = synthetic_empty(), again = synthetic_empty();
    synthetic_add_processes(&base, CASE(1), 1000, 10, 1),
        synthetic_add_processes(&now, CASE(1), 1050, 10, 2);
    synthetic_add_processes(&base, CASE(2), 1000, 10, 3),
        synthetic_add_processes(&now, CASE(2), 1050, 10, 4);
    synthetic_add_processes(&base, CASE(3), 1000, 10, 5),
        synthetic_add_processes(&now, CASE(3), 1050, 10, 6);
    synthetic_add_processes(&base, CASE(4), 1000, 10, 7);
    synthetic_add(&now, synthetic_row(CASE(4), LB_VERDICT_CRASH, 0, 0, 0));
    synthetic_add_processes(&again, CASE(1), 1060, 10, 8);
    synthetic_add_processes(&again, CASE(2), 1000, 10, 9);
    synthetic_add_processes(&again, CASE(4), 1000, 10, 10);
    synthetic_add_processes(&base, CASE(5), 1000, 10, 11);
    synthetic_add_processes(&now, CASE(5), 1000, 10, 12);
    struct lb_run_comparison comparison = synthetic_compare(&base, &now),
                             second = synthetic_compare(&base, &again);
    lb_run_comparison_confirm(&comparison, &second);
    assert_int_equal(find(&comparison, CASE(1))->change, LB_CHANGE_SLOWER);
    assert_int_equal(find(&comparison, CASE(2))->change, LB_CHANGE_INCONCLUSIVE);
    assert_non_null(strstr(find(&comparison, CASE(2))->note, "in the other: same"));
    assert_int_equal(find(&comparison, CASE(3))->change, LB_CHANGE_INCONCLUSIVE);
    assert_int_equal(find(&comparison, CASE(4))->change, LB_CHANGE_BROKEN);
    assert_int_equal(find(&comparison, CASE(5))->change, LB_CHANGE_SAME);
    assert_int_equal(comparison.counts[LB_CHANGE_SLOWER], 1);
    assert_int_equal(comparison.counts[LB_CHANGE_INCONCLUSIVE], 2);
    assert_string_equal(comparison.pairs[0].id, CASE(4));
    assert_string_equal(comparison.pairs[1].id, CASE(1));
    lb_run_comparison_free(&second);
    lb_run_comparison_free(&comparison);
    lb_run_free(&again);
    lb_run_free(&now);
    lb_run_free(&base);
}

static void what_a_reader_must_know_is_said(void **state)
{
    (void)state;
    struct lb_run base = synthetic_empty(), now = synthetic_empty();
    synthetic_add_processes(&base, CASE(1), 1000, 5, 1);
    synthetic_add_processes(&base, CASE(2), 1000, 5, 1);
    synthetic_add_processes(&base, CASE(3), 1000, 5, 1);
    synthetic_add_processes(&base, CASE(4), 1000, 5, 1);
    synthetic_add_processes(&base, CASE(5), 1000, 5, 1);
    synthetic_add_processes(&base, CASE(6), 1000, 5, 1);
    synthetic_add_processes(&base, CASE(7), 1000, 5, 1);
    struct lb_run_comparison comparison = synthetic_compare(&base, &base);
    assert_non_null(strstr(comparison.notes, "--processes 7"));
    lb_run_comparison_free(&comparison);

    json_object_set_new(json_object_get(base.header, "environment"), "libraries",
                        json_pack("{s:s, s:s}", "OpenBLAS", "0.3.21", "oneDNN", "2.6"));
    json_object_set_new(json_object_get(now.header, "environment"), "libraries",
                        json_pack("{s:s, s:s}", "OpenBLAS", "0.3.26", "oneDNN", "2.6"));
    json_object_set_new(json_object_get(now.header, "environment"), "cpu", json_string("another"));
    now.finished = false;
    now.torn = true;
    comparison = synthetic_compare(&base, &now);
    assert_int_equal(comparison.common, 0);
    assert_non_null(strstr(comparison.notes, "DIFFERENT ENVIRONMENTS (cpu)"));
    assert_non_null(strstr(comparison.notes, "The new run was cut short in the middle of a line"));
    assert_non_null(strstr(comparison.notes, "nothing to compare"));
    assert_non_null(strstr(comparison.notes, "Libraries differ: OpenBLAS 0.3.21 to 0.3.26."));
    lb_run_comparison_free(&comparison);
    lb_run_free(&now);
    lb_run_free(&base);
}

/* Blocks of one process against each other are inconclusive, with what to add; drift is named. */
static void doubts_about_the_units_are_said(void **state)
{
    (void)state;
    struct lb_run base = synthetic_empty(), now = synthetic_empty();
    synthetic_add(&base, synthetic_row(CASE(1), LB_VERDICT_OK, 1000, 10, 20));
    synthetic_add(&now, synthetic_row(CASE(1), LB_VERDICT_OK, 1300, 10, 20));
    synthetic_add_processes(&base, CASE(2), 1000, 10, 1);
    synthetic_add_processes(&now, CASE(2), 1000, 10, 2);
    base.rows[0].flags = now.rows[0].flags = now.rows[1].flags = LB_ANOMALY_DRIFT;
    struct lb_run_comparison comparison = synthetic_compare(&base, &now);
    assert_int_equal(find(&comparison, CASE(1))->change, LB_CHANGE_INCONCLUSIVE);
    assert_int_equal(comparison.single, 1);
    assert_non_null(strstr(comparison.notes, "1 case has one process per run"));
    assert_non_null(strstr(comparison.notes, "add --processes 15 to both sweeps"));
    assert_string_equal(find(&comparison, CASE(1))->note,
                        "one process per run can't tell; times drift in both runs");
    assert_string_equal(find(&comparison, CASE(2))->note, "times drift in the new run");
    lb_run_comparison_free(&comparison);
    lb_run_free(&now);
    lb_run_free(&base);
}

/* Drift that both sides of a pair share cancels where runs were interleaved, and only there. */
static void interleaved_runs_are_compared_pair_by_pair(void **state)
{
    (void)state;
    struct lb_run base = synthetic_empty(), now = synthetic_empty();
    struct lb_row rows[2] = {synthetic_row("cpu_ref/T1_B1_H64/f32/infer", LB_VERDICT_OK, 0, 0, 0),
                             synthetic_row("cpu_simd/T1_B1_H64/f32/infer", LB_VERDICT_OK, 0, 0, 0)};
    for (int block = 0; block < 20; block++) {
        double drift = 1000 * (1 + 0.2 * ((block * 7) % 20) / 20.0), noise = 1 + 1e-3 * (block % 3);
        const double a[] = {drift}, b[] = {drift * 1.03 * noise};
        assert_int_equal(lb_row_add_block(&rows[0], a, 1, NULL), LB_OK);
        assert_int_equal(lb_row_add_block(&rows[1], b, 1, NULL), LB_OK);
    }
    lb_row_summarize(&rows[0], NULL);
    lb_row_summarize(&rows[1], NULL);
    synthetic_add(&base, rows[0]);
    synthetic_add(&now, rows[1]);
    struct lb_run_comparison comparison = synthetic_compare(&base, &now);
    assert_int_equal(comparison.count, 2); /* two implementations: two cases */
    lb_run_comparison_free(&comparison);

    json_object_set_new(base.header, "interleaved", json_string("x"));
    json_object_set_new(now.header, "interleaved", json_string("x"));
    comparison = synthetic_compare(&base, &now);
    assert_int_equal(comparison.count, 1);
    assert_string_equal(comparison.pairs[0].id, "T1_B1_I64_H64/f32/infer");
    assert_int_equal(comparison.pairs[0].change, LB_CHANGE_SLOWER);
    assert_true(comparison.pairs[0].shift.hi95 - comparison.pairs[0].shift.lo95 < 0.003);
    lb_run_comparison_free(&comparison);
    lb_run_free(&now);
    lb_run_free(&base);
}

/* Two interleaved runs of one implementation, now 10 % slower in each pair: so many cases of so
 * many blocks, of which the new side has some more. */
static struct lb_run_comparison compare_in_turn(int cases, int blocks, int more,
                                                struct lb_run *base, struct lb_run *now)
{
    *base = synthetic_empty(), *now = synthetic_empty();
    json_object_set_new(base->header, "interleaved", json_string("x"));
    json_object_set_new(now->header, "interleaved", json_string("x"));
    for (int i = 1; i <= cases; i++) {
        char id[LB_CASE_ID_SIZE];
        snprintf(id, sizeof(id), "cpu_ref/T%d_B1_I64_H64/f32/infer", i);
        for (int s = 0; s < 2; s++) {
            struct lb_row row = synthetic_row(id, LB_VERDICT_OK, 0, 0, 0);
            for (int b = 0; b < blocks + s * more; b++) {
                const double ns[] = {(1000 + 10 * b) * (1 + s * (0.1 + 1e-3 * b))};
                assert_int_equal(lb_row_add_block(&row, ns, 1, NULL), LB_OK);
            }
            assert_int_equal(lb_row_summarize(&row, NULL), LB_OK);
            synthetic_add(s == 0 ? base : now, row);
        }
    }
    return synthetic_compare(base, now);
}

/* n pairs reach p = 2^(1-n) at best: 7 do not reach 1 %, 8 do, for three cases 10. */
static void too_few_pairs_are_said_to_be_too_few(void **state)
{
    (void)state;
    static const struct {
        int cases, blocks;
        enum lb_change change;
        const char *word, *advice; /* in the pair's note and in the comparison's */
    } known[] = {
        {1, 5, LB_CHANGE_INCONCLUSIVE, "too few to tell: 5 pairs of blocks, at least 6 are", ""},
        {1, 6, LB_CHANGE_INCONCLUSIVE, "chance", "6 pairs, a slowdown can't be told from chance"},
        {1, 7, LB_CHANGE_INCONCLUSIVE, "chance", "--benchmark_repetitions=8 would do"},
        {1, 8, LB_CHANGE_SLOWER, "", ""},
        {3, 9, LB_CHANGE_SLOWER, "", "--benchmark_repetitions=10 would do"},
        {3, 10, LB_CHANGE_SLOWER, "", ""},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct lb_run base, now;
        struct lb_run_comparison comparison =
            compare_in_turn(known[i].cases, known[i].blocks, 0, &base, &now);
        assert_int_equal(comparison.pairs[0].change, known[i].change);
        assert_non_null(strstr(comparison.pairs[0].note, known[i].word));
        assert_non_null(strstr(comparison.notes, known[i].advice));
        assert_int_equal(comparison.notes[0] == '\0', known[i].advice[0] == '\0');
        lb_run_comparison_free(&comparison);
        lb_run_free(&now);
        lb_run_free(&base);
    }
}

/* Four units per side are enough for two sets, but interleaved blocks must form pairs. */
static void unequal_blocks_in_turn_are_not_compared(void **state)
{
    (void)state;
    struct lb_run base, now;
    struct lb_run_comparison comparison = compare_in_turn(1, 20, 1, &base, &now);
    assert_int_equal(comparison.pairs[0].change, LB_CHANGE_INCONCLUSIVE);
    assert_false(comparison.pairs[0].compared);
    assert_non_null(strstr(comparison.pairs[0].note, "20 blocks against 21"));
    lb_run_comparison_free(&comparison);
    lb_run_free(&now);
    lb_run_free(&base);
}

/* A run of one case in ten processes. Each process ran at a speed of its own, by which its time and
 * that of the fixed loop are multiplied; without known, the loop was not timed. */
static struct lb_run run_at_speed(double level, double speed, double loop_noise, bool known)
{
    struct lb_run run = synthetic_empty();
    struct lb_row row = synthetic_row(CASE(1), LB_VERDICT_OK, 0, 0, 0);
    for (int p = 0; p < 10; p++) {
        double own = speed * (1 + 0.03 * ((p * 7) % 10)), ns = level * own * (1 + 1e-4 * p);
        if (p > 0)
            assert_int_equal(lb_row_add_process(&row, NULL), LB_OK);
        assert_int_equal(lb_row_add_block(&row, &ns, 1, NULL), LB_OK);
        if (known)
            lb_row_set_reference(&row, 500 * own * (1 + loop_noise * ((p * 3) % 10)));
    }
    assert_int_equal(lb_row_summarize(&row, NULL), LB_OK);
    synthetic_add(&run, row);
    return run;
}

/* A machine that ran 8 % slower in the second run: as measured that is a slowdown, over the fixed
 * loop it is none, and a real one of 5 % is found under it. A loop that scatters by itself, or that
 * was not timed, is not used. */
static void the_speed_of_the_machine_is_taken_out(void **state)
{
    (void)state;
    static const struct {
        double level, loop_noise;
        bool known, corrected;
        enum lb_change change;
    } cases[] = {
        {1000, 0, true, true, LB_CHANGE_SAME},
        {1050, 0, true, true, LB_CHANGE_SLOWER},
        {1000, 0.2, true, false, LB_CHANGE_INCONCLUSIVE},
        {1000, 0, false, false, LB_CHANGE_INCONCLUSIVE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_run base = run_at_speed(1000, 1, cases[i].loop_noise, cases[i].known);
        struct lb_run now = run_at_speed(cases[i].level, 1.08, cases[i].loop_noise, cases[i].known);
        struct lb_run_comparison comparison = synthetic_compare(&base, &now);
        assert_int_equal(comparison.times.corrected, cases[i].corrected);
        assert_int_equal(comparison.pairs[0].change, cases[i].change);
        assert_non_null(
            strstr(comparison.basis, cases[i].corrected ? "divided by" : "as measured"));
        if (!cases[i].corrected)
            assert_true(comparison.pairs[0].shift.estimate > log(1.07));
        lb_run_comparison_free(&comparison);
        lb_run_free(&now);
        lb_run_free(&base);
    }
}

/* A run of one case in twelve processes of `count` samples. Other programs slowed `share` of all
 * samples down by 80 %, more of them in some processes than in others. */
static struct lb_run run_disturbed(double level, size_t count, double share, uint64_t seed)
{
    struct lb_run run = synthetic_empty();
    struct lb_row row = synthetic_row(CASE(1), LB_VERDICT_OK, 0, 0, 0);
    double samples[64];
    for (size_t p = 0; p < 12; p++) {
        double own = share * (0.4 + 0.1 * (double)((p * 5 + seed) % 12));
        for (size_t i = 0; i < count; i++) {
            bool slow = (double)((i * 7) % count) < own * (double)count;
            samples[i] =
                level * (1 + 1e-3 * (double)((i * 13 + p * 3 + seed) % 10)) * (slow ? 1.8 : 1);
        }
        if (p > 0)
            assert_int_equal(lb_row_add_process(&row, NULL), LB_OK);
        assert_int_equal(lb_row_add_block(&row, samples, count, NULL), LB_OK);
    }
    assert_int_equal(lb_row_summarize(&row, NULL), LB_OK);
    synthetic_add(&run, row);
    return run;
}

/* A slowdown of 4 % on a machine where half of the samples are disturbed: medians can't show it,
 * 10 % quantiles can, if each process has enough samples. Where nothing disturbs, medians are
 * compared, unless they are known to differ more between runs. The spread that is allowed for is
 * that of what is compared. */
static void disturbed_runs_are_compared_by_what_is_left_undisturbed(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        double level, share;
        struct lb_run_spread learnt;
        bool low;
        enum lb_change change;
    } cases[] = {
        {40, 1040, 0.5, {.df = 0}, true, LB_CHANGE_SLOWER},
        {40, 1000, 0.5, {.df = 0}, true, LB_CHANGE_SAME},
        {19, 1040, 0.5, {.df = 0}, false, LB_CHANGE_INCONCLUSIVE},
        {40, 1040, 0.0, {.df = 0}, false, LB_CHANGE_SLOWER},
        {40, 1040, 0.5, {.raw = 0.001, .low_raw = 0.04, .df = 20}, true, LB_CHANGE_INCONCLUSIVE},
        {40, 1040, 0.5, {.raw = 0.04, .low_raw = 0.001, .df = 20}, true, LB_CHANGE_SLOWER},
        {40, 1040, 0.0, {.raw = 0.04, .low_raw = 0.001, .df = 20}, true, LB_CHANGE_SLOWER},
        {40, 1040, 0.0, {.raw = 0.04, .low_raw = 0.001, .df = 3}, false, LB_CHANGE_INCONCLUSIVE},
        /* Kept by an older --self-test: quantiles, for which nothing could be allowed, stay out. */
        {40, 1040, 0.5, {.raw = 0.04, .df = 20}, false, LB_CHANGE_INCONCLUSIVE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_run base = run_disturbed(1000, cases[i].count, cases[i].share, 0);
        struct lb_run now = run_disturbed(cases[i].level, cases[i].count, cases[i].share, 5);
        struct lb_compare_options options = lb_compare_defaults();
        struct lb_run_comparison comparison;
        options.learnt = cases[i].learnt;
        assert_int_equal(lb_compare_runs(&base, &now, &options, &comparison, NULL), LB_OK);
        assert_int_equal(comparison.times.low, cases[i].low);
        assert_int_equal(comparison.pairs[0].change, cases[i].change);
        assert_int_equal(strstr(comparison.basis, "10 % quantiles") != NULL, cases[i].low);
        lb_run_comparison_free(&comparison);
        lb_run_free(&now);
        lb_run_free(&base);
    }
}

/* Further runs of the base that differ by 5 % make a difference of 5 % none; those that agree leave
 * it a slowdown. A spread that was kept does the same. */
static void runs_are_held_against_the_spread_between_runs(void **state)
{
    (void)state;
    struct lb_compare_options options = lb_compare_defaults();
    struct lb_run_comparison comparison;
    struct lb_run base = synthetic_empty(), now = synthetic_empty();
    struct lb_run wide[4], narrow[4];
    synthetic_add_processes(&base, CASE(1), 1000, 12, 1);
    synthetic_add_processes(&now, CASE(1), 1050, 12, 2);
    for (size_t i = 0; i < 4; i++) {
        wide[i] = synthetic_empty();
        narrow[i] = synthetic_empty();
        synthetic_add_processes(&wide[i], CASE(1), i % 2 == 0 ? 1050 : 950, 12, 3 + i);
        synthetic_add_processes(&narrow[i], CASE(1), 1000, 12, 3 + i);
    }
    const struct {
        const struct lb_run *bases;
        struct lb_run_spread learnt;
        enum lb_change change;
        const char *said;
    } cases[] = {
        {NULL, {.df = 0}, LB_CHANGE_SLOWER, "which is not allowed for"},
        {wide, {.df = 0}, LB_CHANGE_INCONCLUSIVE, "from 5 runs of the base"},
        {narrow, {.df = 0}, LB_CHANGE_SLOWER, "from 5 runs of the base"},
        {NULL, {.raw = 0.04, .df = 20}, LB_CHANGE_INCONCLUSIVE, "kept by --self-test"},
        {NULL, {.raw = 0.004, .df = 20}, LB_CHANGE_SLOWER, "kept by --self-test"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        options.bases = cases[i].bases;
        options.base_count = cases[i].bases ? 4 : 0;
        options.learnt = cases[i].learnt;
        assert_int_equal(lb_compare_runs(&base, &now, &options, &comparison, NULL), LB_OK);
        assert_int_equal(comparison.pairs[0].change, cases[i].change);
        assert_non_null(strstr(comparison.basis, cases[i].said));
        lb_run_comparison_free(&comparison);
    }
    for (size_t i = 0; i < 4; i++) {
        lb_run_free(&wide[i]);
        lb_run_free(&narrow[i]);
    }
    lb_run_free(&now);
    lb_run_free(&base);
}

/* Runs of one process get a verdict by runs of the base that have one process too. The spread that
 * --self-test kept is that of the median of several processes, which differs less: by it a process
 * that is unusual by chance would be a slowdown. Nor is one process held against runs of several.
 */
static void single_processes_are_judged_by_runs_like_them(void **state)
{
    (void)state;
    struct lb_compare_options options = lb_compare_defaults();
    struct lb_run_comparison comparison;
    struct lb_run one = synthetic_empty(), other = synthetic_empty(), many = synthetic_empty();
    struct lb_run bases[6], bases_of_many[6];
    synthetic_add(&one, synthetic_row(CASE(1), LB_VERDICT_OK, 1000, 5, 50));
    synthetic_add(&other, synthetic_row(CASE(1), LB_VERDICT_OK, 1100, 5, 50));
    synthetic_add_processes(&many, CASE(1), 1000, 12, 1);
    for (size_t i = 0; i < 6; i++) {
        double level = i % 2 == 0 ? 1002 : 998;
        bases[i] = synthetic_empty();
        bases_of_many[i] = synthetic_empty();
        synthetic_add(&bases[i], synthetic_row(CASE(1), LB_VERDICT_OK, level, 5, 50));
        synthetic_add_processes(&bases_of_many[i], CASE(1), level, 12, 2 + i);
    }
    const struct {
        const struct lb_run *base, *bases;
        struct lb_run_spread learnt;
        enum lb_change change;
        size_t single;
    } cases[] = {
        {&one, bases, {.df = 0}, LB_CHANGE_SLOWER, 0},
        {&one, NULL, {.df = 0}, LB_CHANGE_INCONCLUSIVE, 1},
        {&one, NULL, {.raw = 0.004, .df = 20}, LB_CHANGE_INCONCLUSIVE, 1},
        {&many, bases_of_many, {.df = 0}, LB_CHANGE_INCONCLUSIVE, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        options.bases = cases[i].bases;
        options.base_count = cases[i].bases ? 6 : 0;
        options.learnt = cases[i].learnt;
        assert_int_equal(lb_compare_runs(cases[i].base, &other, &options, &comparison, NULL),
                         LB_OK);
        assert_int_equal(comparison.pairs[0].change, cases[i].change);
        assert_int_equal(comparison.single, cases[i].single);
        lb_run_comparison_free(&comparison);
    }
    for (size_t i = 0; i < 6; i++) {
        lb_run_free(&bases[i]);
        lb_run_free(&bases_of_many[i]);
    }
    lb_run_free(&many);
    lb_run_free(&other);
    lb_run_free(&one);
}

/* A case that only one run of the base has does not keep the others from telling how runs differ,
 * and is held against that as well. */
static void a_new_case_of_the_base_leaves_the_spread_known(void **state)
{
    (void)state;
    struct lb_compare_options options = lb_compare_defaults();
    struct lb_run_comparison comparison;
    struct lb_run base = synthetic_empty(), now = synthetic_empty(), wide[4];
    synthetic_add_processes(&base, CASE(1), 1000, 12, 1);
    synthetic_add_processes(&base, CASE(2), 1000, 12, 2);
    synthetic_add_processes(&now, CASE(1), 1050, 12, 3);
    synthetic_add_processes(&now, CASE(2), 1050, 12, 4);
    for (size_t i = 0; i < 4; i++) {
        wide[i] = synthetic_empty();
        synthetic_add_processes(&wide[i], CASE(1), i % 2 == 0 ? 1050 : 950, 12, 5 + i);
    }
    options.bases = wide;
    options.base_count = 4;
    assert_int_equal(lb_compare_runs(&base, &now, &options, &comparison, NULL), LB_OK);
    assert_int_equal(comparison.run_count, 5);
    assert_int_equal(comparison.run_df, 4);
    assert_int_equal(comparison.counts[LB_CHANGE_INCONCLUSIVE], 2);
    lb_run_comparison_free(&comparison);
    for (size_t i = 0; i < 4; i++)
        lb_run_free(&wide[i]);
    lb_run_free(&now);
    lb_run_free(&base);
}

/* Thirty cases of single processes differ by what each process drew. They get no verdict, and do
 * not make the p-value of the one case of 5 against 5 processes count as one of many that are low.
 */
static void single_processes_leave_the_correction_of_others_alone(void **state)
{
    (void)state;
    double adjusted[2];
    for (int turn = 0; turn < 2; turn++) {
        struct lb_run base = synthetic_empty(), now = synthetic_empty();
        synthetic_add_processes(&base, CASE(1), 1000, 5, 1);
        synthetic_add_processes(&now, CASE(1), 1100, 5, 2);
        synthetic_add_processes(&base, CASE(2), 1000, 5, 3);
        synthetic_add_processes(&now, CASE(2), 1000, 5, 4);
        for (int n = 10; turn == 1 && n < 40; n++) {
            char id[LB_CASE_ID_SIZE];
            snprintf(id, sizeof(id), "cpu_ref/T%d_B1_I64_H64/f32/infer", n);
            synthetic_add(&base, synthetic_row(id, LB_VERDICT_OK, 1000, 10, 20));
            synthetic_add(&now, synthetic_row(id, LB_VERDICT_OK, 1300, 10, 20));
        }
        struct lb_run_comparison comparison = synthetic_compare(&base, &now);
        assert_int_equal(comparison.single, turn == 0 ? 0 : 30);
        assert_int_equal(comparison.compared, turn == 0 ? 2 : 32);
        adjusted[turn] = find(&comparison, CASE(1))->adjusted_p;
        assert_int_equal(find(&comparison, CASE(1))->change, LB_CHANGE_INCONCLUSIVE);
        lb_run_comparison_free(&comparison);
        lb_run_free(&now);
        lb_run_free(&base);
    }
    assert_true(adjusted[0] > 0.015); /* twice 0.8 % */
    assert_true(adjusted[0] == adjusted[1]);
}

/* Values of tables: Abramowitz & Stegun, 26.10. */
static void students_distribution_is_that_of_the_tables(void **state)
{
    static const struct {
        double p, t;
        size_t df;
    } table[] = {{0.05, 12.706, 1}, {0.05, 4.303, 2},  {0.1, 2.353, 3},
                 {0.01, 4.032, 5},  {0.05, 2.228, 10}, {0.05, 2.021, 40}};
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        assert_true(fabs(lb_student_quantile(table[i].p, table[i].df) - table[i].t) < 6e-4);
        assert_true(fabs(lb_student_p(-table[i].t, table[i].df) - table[i].p) < 1e-4);
    }
}

static void margin_and_level_have_ranges(void **state)
{
    (void)state;
    struct lb_run run = synthetic_empty();
    struct lb_run_comparison comparison;
    static const double bad[][2] = {{0, 0.05}, {-1, 0.05},  {NAN, 0.05},
                                    {0.02, 0}, {0.02, 0.5}, {0.02, NAN}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct lb_compare_options options = {.margin = bad[i][0], .level = bad[i][1]};
        assert_int_equal(lb_compare_runs(&run, &run, &options, &comparison, NULL), LB_INVALID);
    }
    lb_run_free(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_has_its_name),
        cmocka_unit_test(one_block_each_is_too_few_to_tell),
        cmocka_unit_test(the_speed_of_the_machine_is_taken_out),
        cmocka_unit_test(disturbed_runs_are_compared_by_what_is_left_undisturbed),
        cmocka_unit_test(runs_are_held_against_the_spread_between_runs),
        cmocka_unit_test(single_processes_are_judged_by_runs_like_them),
        cmocka_unit_test(a_new_case_of_the_base_leaves_the_spread_known),
        cmocka_unit_test(single_processes_leave_the_correction_of_others_alone),
        cmocka_unit_test(students_distribution_is_that_of_the_tables),
        cmocka_unit_test(a_process_is_never_compared_with_a_block),
        cmocka_unit_test(verdict_needs_both_certainty_and_size),
        cmocka_unit_test(correction_counts_all_cases),
        cmocka_unit_test(second_sweep_must_show_a_slowdown_too),
        cmocka_unit_test(what_a_reader_must_know_is_said),
        cmocka_unit_test(doubts_about_the_units_are_said),
        cmocka_unit_test(interleaved_runs_are_compared_pair_by_pair),
        cmocka_unit_test(too_few_pairs_are_said_to_be_too_few),
        cmocka_unit_test(unequal_blocks_in_turn_are_not_compared),
        cmocka_unit_test(margin_and_level_have_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
