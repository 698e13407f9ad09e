/* The table of a sweep: which row it marks as fastest, and that it fits a terminal. */
#include "plot/grouped_run.h"
#include "tests/helpers/synthetic_run.h"
#include "tests/helpers/test.h"

/* The table of a run, which this frees; the caller frees the text. */
static char *print_and_free(struct lb_run *run, const char *baseline)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    struct lb_grouped_run grouped;
    lb_group_run(run, baseline, &grouped);
    lb_table_print(out, &grouped);
    lb_grouped_run_free(&grouped);
    fclose(out);
    lb_run_free(run);
    return text;
}

/* Asserts the words behind the speed-up in the line of an implementation. */
static void assert_rank(const char *table, const char *impl, const char *rank)
{
    char start[64];
    snprintf(start, sizeof(start), "\n  %s ", impl);
    const char *line = strstr(table, start);
    assert_non_null(line);
    const char *found = strstr(line + 1, rank);
    if (!found || found > line + 1 + strcspn(line + 1, "\n"))
        fail_msg("%s is not '%s' in:%s", impl, rank, table);
}

/* A row with one sample, six times slower, was once called tied with the fastest. */
TEST(ranks_follow_the_intervals_of_the_times)
{
    static const char *const impls[] = {"cpu_ref", "cpu_simd", "onednn"};
    static const struct {
        const char *property;
        double ns[3];
        size_t samples[3];
        const char *ranks[3], *lacks;
    } trials[] = {
        {"a clear winner is the fastest",
         {3e6, 1e6, 2e6},
         {40, 40, 40},
         {"1.00x  ok", "x  * fastest", "x  ok"},
         "tied"},
        {"all that overlap the fastest are tied",
         {3e6, 1e6, 1.001e6},
         {40, 40, 40},
         {"1.00x  ok", "x  = fastest, tied", "x  = fastest, tied"},
         "* fastest"},
        {"few samples, whose range overlaps the fastest, are not tied",
         {6e6, 1e6, 1e6},
         {1, 40, 5},
         {"1.00x  too few samples", "x  ok", "x  too few samples"},
         "tied"},
        {"few samples with the smallest median are not the fastest",
         {6e6, 2e6, 1e6},
         {40, 40, 5},
         {"1.00x  ok", "x  ok", "x  too few samples"},
         "tied"},
    };
    for (size_t t = 0; t < sizeof(trials) / sizeof(trials[0]); t++) {
        struct lb_run run = synthetic_empty();
        char id[LB_CASE_ID_SIZE];
        print_message("%s\n", trials[t].property);
        for (size_t i = 0; i < 3; i++) {
            snprintf(id, sizeof(id), "%s/T16_B1_H64/f32/infer", impls[i]);
            synthetic_add(
                &run, synthetic_row(id, LB_VERDICT_OK, trials[t].ns[i], 1, trials[t].samples[i]));
        }
        char *table = print_and_free(&run, "cpu_ref");
        for (size_t i = 0; i < 3; i++)
            assert_rank(table, impls[i], trials[t].ranks[i]);
        assert_null(strstr(table, trials[t].lacks));
        assert_int_equal(strstr(table, "= tied with the fastest") != NULL, t == 1);
        for (const char *line = table; *line; line += strcspn(line, "\n"), line += *line == '\n')
            assert_true(strcspn(line, "\n") <= 80);
        free(table);
    }
}

/* On a busy machine an interval may be wider than its median. */
TEST(wide_intervals_fit_a_line)
{
    static const char *const ids[] = {"cpu_ref/T16_B1_H64/f32/infer",
                                      "cpu_simd/T16_B1_H64/f32/infer"};
    struct lb_run run = synthetic_empty();
    for (size_t i = 0; i < 2; i++) {
        struct lb_row row = synthetic_row(ids[i], LB_VERDICT_OK, 1e6, 1, 40);
        row.median_lo_ns = 1, row.median_hi_ns = 4.586e6;
        synthetic_add(&run, row);
    }
    char *table = print_and_free(&run, "cpu_ref");
    assert_rank(table, "cpu_simd", " +-  229 %");
    for (const char *line = table; *line; line += strcspn(line, "\n"), line += *line == '\n')
        assert_true(strcspn(line, "\n") <= 80);
    free(table);
}

/* Notes stand in a line of their own below the row. */
TEST(a_near_miss_and_an_error_larger_than_the_dtype_gives_are_said)
{
    static const struct {
        double tolerance_used, error_ratio;
        const char *note; /* NULL: there is none */
    } trials[] = {{0.25, 1, NULL},
                  {0.93, 1, "      93 % of the tolerance used\n"},
                  {0, 1.9, NULL},
                  {0, 4, "      error 6.5e-08, 4 times what f32 gives\n"}};
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        struct lb_run run = synthetic_empty();
        struct lb_row row =
            synthetic_row("cpu_ref/T16_B1_H64/f32/infer", LB_VERDICT_OK, 1e6, 1, 40);
        row.tolerance_used = trials[i].tolerance_used;
        row.error_ratio = trials[i].error_ratio;
        synthetic_add(&run, row);
        char *text = print_and_free(&run, "cpu_ref");
        const char *below = strstr(text, "x  ok\n");
        assert_non_null(below);
        below += strlen("x  ok\n");
        if (trials[i].note)
            assert_memory_equal(below, trials[i].note, strlen(trials[i].note));
        else
            assert_int_equal(*below, '\n');
        free(text);
    }
}

TEST(a_stream_has_percentiles_and_the_share_of_late_calls)
{
    static const struct {
        const char *text;
        size_t samples;
        const char *line, *note;
    } trials[] = {
        {"cpu_simd/T1_B1_H64/f32/infer/stream", 5000, "longest\n  cpu_simd ", NULL},
        {"cpu_simd/T1_B1_H64/f32/infer/stream/rate2000", 5000, "too late\n  cpu_simd ", NULL},
        {"cpu_simd/T1_B1_H64/f32/infer/stream", 400, "longest\n  cpu_simd ",
         "400 calls are too few for p99.9 (3,688 calls)"},
        {"cpu_simd/T1_B1_H64/f32/infer/stream", 100, "longest\n  cpu_simd ",
         "100 calls are too few for p99 (368 calls) and p99.9 (3,688 calls)"},
    };
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        struct lb_run run = synthetic_empty();
        struct lb_row row =
            synthetic_row(trials[i].text, LB_VERDICT_OK, 4e5, trials[i].samples / 50, 50);
        for (size_t k = 0; k < row.samples; k += 50)
            row.samples_ns[k] = 6e5; /* later than the next call of 2,000 per second */
        lb_row_summarize(&row);
        synthetic_add(&run, row);
        char *text = print_and_free(&run, "cpu_simd");
        const char *heading = strstr(text, "latency of a call       median       p99     p99.9");
        assert_non_null(heading);
        assert_non_null(strstr(heading, trials[i].line));
        assert_int_equal(strstr(heading, " 2.00 %  ") != NULL, i == 1);
        assert_int_equal(strstr(text, "too few") != NULL, trials[i].note != NULL);
        if (trials[i].note)
            assert_non_null(strstr(text, trials[i].note));
        free(text);
    }
}

/* Two instances make more calls per second than one on two threads; four are a case of their own,
 * on four threads. With a deadline that only the one keeps, that is the best; likewise where the
 * two made too few calls for a p99, so that nobody knows whether they keep the deadline. */
TEST(the_best_split_of_the_threads_is_named)
{
    static const struct {
        const char *text;
        double ns;
    } rows[] = {
        {"cpu_simd/T1_B1_H64/f32/infer/stream/th2", 1e5},
        {"cpu_simd/T1_B1_H64/f32/infer/stream/x2/th2", 1.5e5},
        {"cpu_ref/T1_B1_H64/f32/infer/stream/x2/th2", 1e4},
        {"cpu_simd/T1_B1_H64/f32/infer/stream/x4/th4", 1e4},
    };
    for (int i = 0; i < 3; i++) {
        struct lb_run run = synthetic_empty();
        if (i > 0)
            json_object_set_new(run.header, "deadline_s", json_real(i == 1 ? 1.2e-4 : 1));
        for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
            synthetic_add(&run, synthetic_row(rows[k].text, LB_VERDICT_OK, rows[k].ns,
                                              i == 2 && k == 1 ? 6 : 20, 50));
        char *text = print_and_free(&run, "cpu_simd");
        const char *splits = strstr(text, "\ncpu_simd/T1_B1_I64_H64/f32/infer/stream/th2 by inst");
        assert_non_null(splits);
        assert_null(strstr(strchr(splits + 1, '\n'), " by inst"));
        const char *one = strstr(splits, "\n          1        2 ");
        const char *two = strstr(splits, "\n          2        1 ");
        const char *best = strstr(splits, "* best split\n");
        assert_true(one && two && one < two);
        assert_true(best && (best > two) == (i == 0));
        assert_null(strstr(best + 1, "* best split"));
        free(text);
    }
}

/* The variants of an implementation count once per reason. The ninth reason once had no line. */
TEST(every_reason_of_an_absence_is_said)
{
    struct lb_run run = synthetic_empty();
    char id[LB_CASE_ID_SIZE], line[64];
    for (int i = 0; i < 27; i++) {
        static const char *const impls[] = {"cudnn", "cudnn:standard", "fused"};
        snprintf(id, sizeof(id), "%s/T%d_B1_H64/f32/infer", impls[i % 3], i / 3 + 1);
        struct lb_row row = synthetic_row(id, LB_VERDICT_ABSENT, 1e6, 0, 0);
        lb_row_print(&row.reason, "reason %d", i / 3 + 1);
        synthetic_add(&run, row);
    }
    char *text = print_and_free(&run, NULL);
    for (int i = 1; i <= 9; i++) {
        snprintf(line, sizeof(line), "\nabsent: cudnn (2 variants), fused: reason %d\n", i);
        assert_non_null(strstr(text, line));
    }
    free(text);
}

/* A suspect row that was the fastest has no speed-up and no star, and is no baseline. */
TEST(a_suspect_row_has_a_time_and_no_rank)
{
    struct lb_run run = synthetic_empty();
    synthetic_add(&run,
                  synthetic_row("cpu_simd/T16_B1_H64/f32/infer", LB_VERDICT_SUSPECT, 1e6, 1, 40));
    synthetic_add(&run, synthetic_row("cpu_ref/T16_B1_H64/f32/infer", LB_VERDICT_OK, 3e6, 1, 40));
    synthetic_add(&run, synthetic_row("onednn/T16_B1_H64/f32/infer", LB_VERDICT_OK, 2e6, 1, 40));
    char *text = print_and_free(&run, "cpu_simd");
    assert_rank(text, "cpu_simd", "ms  ? suspect: made up");
    assert_rank(text, "onednn", "-  * fastest");
    assert_rank(text, "cpu_ref", "-  ok");
    assert_non_null(strstr(text, "3 cases: 2 ok, 1 suspect\n"));
    free(text);
}

TEST(the_baseline_is_the_first_usual_implementation_with_an_ok_row)
{
    static const char *const impls[] = {"fused", "cpu_ref", "onednn", "cudnn"};
    static const struct {
        int ok; /* so many of the implementations have an ok row */
        const char *baseline;
    } trials[] = {{1, " over fused."}, {2, " over cpu_ref."}, {3, " over onednn."}};
    for (size_t t = 0; t < sizeof(trials) / sizeof(trials[0]); t++) {
        struct lb_run run = synthetic_empty();
        char id[LB_CASE_ID_SIZE];
        for (int i = 0; i < 4; i++) {
            snprintf(id, sizeof(id), "%s/T16_B1_H64/f32/infer", impls[i]);
            enum lb_verdict verdict = i < trials[t].ok ? LB_VERDICT_OK : LB_VERDICT_WRONG;
            synthetic_add(&run, synthetic_row(id, verdict, 1e6, 1, 40));
        }
        char *text = print_and_free(&run, NULL);
        assert_non_null(strstr(text, trials[t].baseline));
        free(text);
    }
}

/* Rows of 3 processes with many samples were once called tied although none had an interval. */
TEST(rows_with_too_few_processes_are_neither_fastest_nor_tied)
{
    struct lb_run run = synthetic_empty();
    synthetic_add_processes(&run, "cpu_ref/T16_B1_H64/f32/infer", 6e6, 3, 1);
    synthetic_add_processes(&run, "cpu_simd/T16_B1_H64/f32/infer", 1e6, 3, 2);
    char *text = print_and_free(&run, "cpu_ref");
    assert_rank(text, "cpu_ref", "1.00x  < 6 processes");
    assert_rank(text, "cpu_simd", "x  < 6 processes");
    assert_null(strstr(text, "tied"));
    assert_non_null(strstr(text, "--processes 15 gives enough"));
    assert_non_null(strstr(text, "\n2 cases: 2 ok\n"));
    free(text);
}

/* The time of an update stands in a column of its own, and every line still fits 80 columns. */
TEST(updates_have_a_column_where_a_row_has_one)
{
    static const char *const ids[] = {"cudnn:persist_static/T16_B1_H64/f32/train",
                                      "fused/T16_B1_H64/f32/train", "fused/T16_B1_H64/f32/infer"};
    struct lb_run run = synthetic_empty();
    for (size_t i = 0; i < 3; i++) {
        struct lb_row row = synthetic_row(ids[i], LB_VERDICT_OK, 2e6, 1, 40);
        row.update_ns = i == 1 ? 12345 : (double)NAN;
        synthetic_add(&run, row);
    }
    char *text = print_and_free(&run, "cudnn:persist_static");
    assert_rank(text, "cudnn:persist_static", "-  = fastest, tied");
    assert_rank(text, "fused", "12.3 us  = fastest, tied");
    assert_non_null(strstr(text, "one update of the weights"));
    assert_non_null(strstr(text, "-  ok\n")); /* inference has no updates, and no column */
    assert_null(strstr(strstr(text, "/infer"), "12.3"));
    for (const char *line = strstr(text, "\n\n"); *line;
         line += strcspn(line, "\n"), line += *line == '\n')
        assert_true(strcspn(line, "\n") <= 80);
    free(text);
}

/* A case with two threads is not compared with a baseline with one, nor a graph with a stream. */
TEST(speed_ups_are_over_the_baseline_in_the_same_state)
{
    static const char *const tails[] = {"infer", "infer/th2", "infer/graph", "infer/cold",
                                        "infer/batched"};
    enum { TAILS = sizeof(tails) / sizeof(tails[0]) };
    struct lb_run run = synthetic_empty();
    char id[LB_CASE_ID_SIZE], expected[32];
    for (int i = 0; i < 2 * TAILS; i++) {
        snprintf(id, sizeof(id), "%s/T16_B1_H64/f32/%s", i % 2 ? "cpu_simd" : "cpu_ref",
                 tails[i / 2]);
        struct lb_row row = synthetic_row(id, LB_VERDICT_OK, 1e6, 1, 20);
        row.median_ns = i % 2 ? 1e6 : (2 + i / 2) * 1e6;
        synthetic_add(&run, row);
    }
    char *text = print_and_free(&run, "cpu_ref");
    for (int i = 0; i < TAILS; i++) {
        snprintf(id, sizeof(id), "\nT16_B1_I64_H64/f32/%s\n", tails[i]);
        snprintf(expected, sizeof(expected), " %d.00x ", 2 + i);
        const char *problem = strstr(text, id);
        assert_non_null(problem);
        assert_rank(problem, "cpu_simd", expected);
        assert_rank(problem, "cpu_ref", " 1.00x ");
    }
    free(text);
}
