/* Rows to JSON and back: nothing is lost or added, and invalid rows are refused by key. */
#include "record/record.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/synthetic_run.h"
#include "tests/helpers/test.h"

static const char text[] = "cudnn:persist_static/T16_B8_I100_H128_L2_D2/f32/train/tf32/ragged/"
                           "act-relu/graph/cold/th2";

static struct lb_row read_back(const struct lb_row *row)
{
    struct lb_row copy;
    struct lb_error err = {""};
    json_t *object = lb_row_to_json(row);
    char *line = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    assert_non_null(line);
    assert_memory_equal(line, "{\"kind\":\"row\",", 14);
    assert_null(strchr(line, '\n'));
    object = json_loads(line, JSON_REJECT_DUPLICATES, NULL); /* which refuses NaN and Infinity */
    assert_non_null(object);
    if (lb_row_from_json(object, &copy, &err) != LB_OK)
        fail_msg("%s", err.text);
    json_decref(object);
    free(line);
    return copy;
}

/* Whether two rows have the same JSON, in which numbers have all their bits. */
static void same_row(const struct lb_row *a, const struct lb_row *b)
{
    json_t *x = lb_row_to_json(a), *y = lb_row_to_json(b);
    if (!json_equal(x, y))
        fail_msg("%s\n%s", json_dumps(x, 0), json_dumps(y, 0));
    json_decref(x);
    json_decref(y);
}

/* Asserts that the row is the same when it is read back, and frees it. */
static void assert_survives(struct lb_row *row)
{
    struct lb_row copy = read_back(row);
    same_row(row, &copy);
    lb_row_free(&copy);
    lb_row_free(row);
}

TEST(row_reads_back_bit_by_bit)
{
    struct lb_row row = synthetic_row(text, LB_VERDICT_OK, 12345, 3, 7);
    row.samples_ns[2] = 1.0 / 3;
    row.samples_ns[3] = 0x1.fffffffffffffp+60;
    row.err_norm = 5e-324;
    row.gradient_err_norm = 1e-3, row.loss_scale = 32768, row.overflow_share = 6e-4;
    row.overflow_check_ns = 1234.5;
    row.flops = 1.5e19;
    row.hash = UINT64_MAX;
    lb_row_print(&row.warning, "drifts: \"2 %%\" and µ");
    lb_row_summarize(&row);
    assert_survives(&row);
}

TEST(kernels_read_back_with_their_row)
{
    struct lb_row row = synthetic_row(text, LB_VERDICT_OK, 1000, 1, 6);
    const struct lb_launch_record launches[] = {
        {.name = "RNN_blockPersist_fp_LSTM_HMMA", .start_ns = 5, .end_ns = 10},
        {.name = "nvjet_hsh", .start_ns = 0, .end_ns = 1.5}};
    lb_kernels_collect(launches, 2, &row.kernels);
    json_t *object = lb_row_to_json(&row);
    assert_string_equal(json_string_value(json_object_get(object, "tensor_cores")), "yes");
    assert_true(json_number_value(json_object_get(object, "kernel_gap_ns")) == 3.5);
    json_decref(object);
    assert_survives(&row);
}

TEST(every_verdict_reads_back)
{
    int failures = 0;
    for (int v = 0; v < LB_VERDICT_COUNT; v++) {
        struct lb_row row = synthetic_row(text, (enum lb_verdict)v, 1000, 1, 6);
        failures += lb_verdict_is_failure(row.verdict);
        assert_int_equal(lb_row_is_timed(&row), v == LB_VERDICT_OK);
        assert_survives(&row);
    }
    assert_int_equal(failures, 4);
}

TEST(unknown_numbers_are_null)
{
    struct lb_row row = synthetic_row(text, LB_VERDICT_UNSUPPORTED, 0, 0, 0);
    row.flops = INFINITY;
    json_t *object = lb_row_to_json(&row);
    assert_true(json_is_null(json_object_get(object, "median_ns")));
    assert_true(json_is_null(json_object_get(object, "flops")));
    assert_true(json_is_null(json_object_get(object, "hash")));
    assert_int_equal(json_array_size(json_object_get(object, "samples_ns")), 0);
    json_decref(object);
    lb_row_free(&row);
}

/* Derived numbers in a file that contradict its samples, and unknown keys. */
TEST(derived_numbers_are_computed_anew_and_other_keys_read_over)
{
    struct lb_row row = synthetic_row(text, LB_VERDICT_OK, 1000, 1, 6), copy;
    row.floor_ns = 400;
    lb_row_summarize(&row);
    json_t *object = lb_row_to_json(&row);
    json_object_set_new(object, "median_ns", json_real(1));
    json_object_set_new(object, "floor_multiple", json_real(1));
    json_object_set_new(object, "clock_mhz", json_integer(1980));
    json_object_del(object, "p95_ns");
    assert_int_equal(lb_row_from_json(object, &copy, NULL), LB_OK);
    same_row(&row, &copy);
    lb_row_free(&copy);
    lb_row_free(&row);
    json_decref(object);
}

/* A wrong result may be fast, because work was left out. */
TEST(a_bound_that_a_right_result_beats_is_dropped_with_a_warning)
{
    static const struct {
        double floor_ns;
        enum lb_verdict verdict;
        bool dropped;
    } cases[] = {
        {900, LB_VERDICT_OK, false}, {2000, LB_VERDICT_OK, true}, {2000, LB_VERDICT_WRONG, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_row row = synthetic_row(text, LB_VERDICT_OK, 1000, 1, 6);
        row.verdict = cases[i].verdict;
        row.floor_ns = cases[i].floor_ns;
        row.chain_ns = cases[i].floor_ns / 2;
        lb_row_summarize(&row);
        assert_int_equal(isnan(row.floor_ns) && isnan(row.chain_ns), cases[i].dropped);
        assert_int_equal(isnan(row.floor_multiple), cases[i].dropped);
        assert_int_equal(strstr(row.warning, "less time than its lower bound") != NULL,
                         cases[i].dropped);
        lb_row_free(&row);
    }
}

TEST(broken_rows_are_refused_by_key)
{
    static const struct {
        const char *key, *value; /* NULL: the key is taken away */
    } breaks[] = {
        {"case", NULL},
        {"case", "\"cudnn/T16_B8/f32\""},
        {"case", "\"T16_B8_H128/f32/infer\""},
        {"verdict", NULL},
        {"verdict", "\"fine\""},
        {"stop_reason", "3"},
        {"err_norm", "\"small\""},
        {"prepare_ns", "-1"},
        {"samples_ns", "1"},
        {"samples_ns", "[1,2,-3,4,5,6]"},
        {"samples_ns", "[1,2,0,4,5,6]"},
        {"blocks", "[5]"},
        {"blocks", "[-1]"},
        {"kernels", "1"},
        {"processes", "[2]"},
        {"processes", "[1,-1]"},
    };
    struct lb_row row = synthetic_row(text, LB_VERDICT_OK, 1000, 1, 6);
    for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
        struct lb_row copy;
        struct lb_error err = {""};
        json_t *object = lb_row_to_json(&row);
        if (breaks[i].value)
            json_object_set_new(object, breaks[i].key,
                                json_loads(breaks[i].value, JSON_DECODE_ANY, NULL));
        else
            json_object_del(object, breaks[i].key);
        if (lb_row_from_json(object, &copy, &err) != LB_INVALID)
            fail_msg("%s = %s was taken", breaks[i].key, breaks[i].value);
        if (!strstr(err.text, breaks[i].key))
            fail_msg("'%s' does not name %s", err.text, breaks[i].key);
        assert_null(copy.samples_ns);
        json_decref(object);
    }
    lb_row_free(&row);
}

/* Seven processes of two blocks: their medians are 10, 20, ... 70 in some order. */
TEST(processes_are_units_and_give_the_median)
{
    struct lb_row row = synthetic_row(text, LB_VERDICT_OK, 0, 0, 0);
    static const double level[] = {30, 10, 70, 20, 60, 50, 40};
    for (int i = 0; i < 7; i++) {
        const double a[] = {level[i] - 1, level[i] + 1, level[i]}, b[] = {level[i], level[i] + 9};
        if (i > 0)
            lb_row_add_process(&row);
        lb_row_add_block(&row, a, 3);
        lb_row_add_block(&row, b, i < 6 ? 2 : 0);
    }
    lb_row_summarize(&row);
    struct lb_row copy = read_back(&row);
    double medians[7];
    assert_int_equal(lb_row_units(&copy), 7);
    lb_row_unit_times(&copy, 0.5, medians);
    for (int i = 0; i < 7; i++)
        assert_true(medians[i] == level[i]);
    assert_true(copy.median_ns == 40 && copy.median_lo_ns == 10 && copy.median_hi_ns == 70);
    assert_true(fabs(copy.spread_between - 1.4826 * 20 / 40) < 1e-12);
    same_row(&row, &copy);
    lb_row_free(&copy);
    lb_row_free(&row);
}

/* The rows of two blocks of a case; the second has larger errors and a warning. */
TEST(later_blocks_add_what_they_found)
{
    struct lb_row row = {0}, first = synthetic_row(text, LB_VERDICT_OK, 1000, 1, 10);
    struct lb_row second = synthetic_row(text, LB_VERDICT_OK, 1000, 1, 30);
    struct lb_row third = synthetic_row(text, LB_VERDICT_OK, 1000, 1, 10);
    lb_row_print(&second.warning, "clocks were held down: hot");
    lb_row_print(&third.warning, "clocks were held down: hot");
    first.calls_per_sample = 100, second.calls_per_sample = 60, third.calls_per_sample = 120;
    first.err_max_abs = 1, second.err_max_abs = 3, third.err_max_abs = 2;
    first.err_max_rel = first.err_norm = 0.1, second.err_max_rel = second.err_norm = 0.3;
    first.tolerance_used = 0.2, second.tolerance_used = 0.9, third.tolerance_used = 0.1;
    first.gradient_err_norm = 0.1, second.gradient_err_norm = 0.2; /* the third has none */
    first.loss_scale = 1024, second.loss_scale = 512, third.loss_scale = 1024;
    first.overflow_share = 0.1, second.overflow_share = 0.3;
    first.overflow_check_ns = 30, second.overflow_check_ns = 20, third.overflow_check_ns = 40;
    first.peak_bytes = 1000, second.peak_bytes = 3000, third.peak_bytes = 2000;
    first.checked_calls = 20, second.checked_calls = 30, third.checked_calls = 50;
    first.sm_mhz = 1980, second.sm_mhz = 1200, third.sm_mhz = NAN;
    lb_row_merge(&row, &first, true, false);
    lb_row_merge(&row, &second, false, false);
    lb_row_merge(&row, &third, false, true);
    assert_string_equal(row.warning, "clocks were held down: hot");
    assert_true(row.err_max_abs == 3 && row.err_max_rel == 0.3 && row.err_norm == 0.3);
    assert_true(row.tolerance_used == 0.9 && row.gradient_err_norm == 0.2);
    assert_true(row.loss_scale == 512 && row.overflow_share == 0.3);
    assert_true(row.overflow_check_ns == 20);
    assert_true(row.peak_bytes == 3000 && row.sm_mhz == 1200 && row.checked_calls == 100);
    /* 10, 30 and 10 samples of 100, 60 and 120 calls */
    assert_true(row.samples == 50 && fabs(row.calls_per_sample * 50 - 4000) < 1e-9);
    lb_row_print(&second.warning, "a second thing");
    lb_row_merge(&row, &second, false, false);
    assert_string_equal(row.warning, "clocks were held down: hot; a second thing");
    lb_row_print(&second.warning, "a third one; clocks were held down: hot");
    lb_row_merge(&row, &second, false, false);
    assert_string_equal(row.warning, "clocks were held down: hot; a second thing; a third one");
    lb_row_free(&row);
    lb_row_free(&second);
    lb_row_free(&third);
}

TEST(other_bits_of_a_deterministic_implementation_are_wrong)
{
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        struct lb_row row = {0}, first = synthetic_row(text, LB_VERDICT_OK, 1000, 1, 10);
        struct lb_row same = synthetic_row(text, LB_VERDICT_OK, 1000, 1, 10);
        struct lb_row other = synthetic_row(text, LB_VERDICT_OK, 1000, 1, 10);
        first.deterministic = same.deterministic = other.deterministic = deterministic;
        other.hash = first.hash ^ 1;
        lb_row_merge(&row, &first, true, false);
        lb_row_merge(&row, &same, false, true);
        assert_int_equal(row.verdict, LB_VERDICT_OK);
        lb_row_merge(&row, &other, false, true);
        assert_int_equal(row.verdict, deterministic ? LB_VERDICT_WRONG : LB_VERDICT_OK);
        assert_int_equal(row.samples, deterministic ? 0 : 30);
        assert_int_equal(strncmp(row.reason, "says it is deterministic", 24) == 0, deterministic);
        lb_row_free(&row);
        lb_row_free(&same);
        lb_row_free(&other);
    }
}

TEST(throughput_is_that_of_all_instances)
{
    static const struct {
        const char *text;
        double calls_per_s;
    } known[] = {
        {"a/T1_B1_H1/f32/infer", NAN},
        {"a/T1_B1_H1/f32/infer/stream", (1000 + 4000) / 2.0}, /* two blocks of one instance */
        {"a/T1_B1_H1/f32/infer/stream/x2", 1000 + 4000},
        /* Calls are due each 10 ms: the last one after 20 ms, and took 1 ms or 0.25 ms. */
        {"a/T1_B1_H1/f32/infer/stream/rate100/x2", 3 / 0.021 + 3 / 0.02025},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct lb_case c = trial_case(known[i].text);
        struct lb_row row = lb_row_make(&c);
        lb_row_add_block(&row, (double[]){5e5, 1.5e6, 1e6}, 3);
        lb_row_add_block(&row, (double[]){2e5, 3e5, 2.5e5}, 3);
        const double found = lb_row_calls_per_s(&row), expected = known[i].calls_per_s;
        if (isnan(expected) ? !isnan(found) : !(fabs(found / expected - 1) < 1e-9))
            fail_msg("%s: %g, expected %g", known[i].text, found, expected);
        lb_row_free(&row);
    }
}

TEST(anomalous_samples_are_flagged)
{
    struct lb_row row = synthetic_row(text, LB_VERDICT_OK, 1000, 1, 40);
    assert_int_equal(row.flags, 0);
    for (size_t i = 0; i < 40; i++)
        row.samples_ns[i] = 1000 + (double)i + (i == 0 ? 900 : 0);
    lb_row_summarize(&row);
    json_t *object = lb_row_to_json(&row);
    assert_string_equal(json_string_value(json_object_get(object, "flags")),
                        "slow_first drift autocorrelation");
    assert_true(row.outliers_severe == 1 && row.outliers_mild == 0);
    json_decref(object);
    lb_row_free(&row);
}

enum { GROUP = LB_SLOWDOWN_ROWS };

/* Rows [3 * GROUP - 1]: two implementations on one environment and, one row short of a group, the
 * first of them on another; one row of each was measured while the machine was slow. */
static void fill_rows(struct lb_row *rows)
{
    static const double usual_ns[] = {5e5, 2e6, 9e6};
    for (size_t i = 0; i < 3 * GROUP - 1; i++) {
        struct lb_case c = lb_case_defaults();
        struct lb_row *row = &rows[i];
        strcpy(c.impl, i / GROUP == 1 ? "onednn" : "cpu_ref");
        *row = lb_row_make(&c);
        row->verdict = LB_VERDICT_OK;
        row->environment = i / GROUP == 2;
        lb_row_add_block(row, (double[]){1000}, 1);
        lb_row_summarize(row);
        lb_row_set_reference(row, usual_ns[i / GROUP] *
                                      (i % GROUP == 2 ? 1.5 : 1 + 0.01 * (double)(i % 3)));
    }
}

TEST(a_slow_machine_is_found_within_an_implementation_and_environment)
{
    struct lb_row rows[3 * GROUP - 1];
    fill_rows(rows);
    lb_rows_find_slowdowns(rows, 3 * GROUP - 1);
    for (size_t i = 0; i < 2 * GROUP; i++) {
        assert_true(i % GROUP == 2 ? fabs(rows[i].slowdown - 1.485) < 0.02
                                   : rows[i].slowdown < 1.03);
        assert_int_equal(strstr(rows[i].warning, "the machine was 4") != NULL, i % GROUP == 2);
    }
    for (size_t i = 2 * GROUP; i < 3 * GROUP - 1; i++) /* too few rows */
        assert_true(isnan(rows[i].slowdown) && rows[i].warning[0] == 0);
    for (size_t i = 0; i < 3 * GROUP - 1; i++)
        lb_row_free(&rows[i]);
}

TEST(a_row_without_a_reference_has_no_slowdown)
{
    struct lb_row rows[3 * GROUP - 1];
    fill_rows(rows);
    lb_row_set_reference(&rows[0], NAN);
    rows[GROUP].verdict = LB_VERDICT_WRONG;
    lb_rows_find_slowdowns(rows, 3 * GROUP - 1);
    for (size_t i = 0; i < 3 * GROUP - 1; i++) {
        assert_true(isnan(rows[i].slowdown)); /* each group is one row short */
        lb_row_free(&rows[i]);
    }
}
