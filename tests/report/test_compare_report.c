/* Tests of the reports on a comparison: their size, their counts, and how long they take to come
 * by. */
#include <time.h>

#include "report/compare.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/synthetic_run.h"
#include "tests/helpers/test.h"

/* How many times as long as the JSON library alone a comparison may take. A sanitizer slows down
 * this project's code but not the library's. */
#ifdef __SANITIZE_ADDRESS__
static const double most_parsings = 12;
#else
static const double most_parsings = 2.5;
#endif

#define CASE(n) "cpu_ref/T" #n "_B1_I64_H64/f32/infer"

/* Runs of many cases, of which one in `every` is slower by a tenth. */
static void make_large(size_t count, size_t every, struct lb_run *base, struct lb_run *now)
{
    *base = synthetic_empty();
    *now = synthetic_empty();
    for (size_t i = 0; i < count; i++) {
        char text[LB_CASE_ID_SIZE];
        snprintf(text, sizeof(text), "cpu_ref/T%zu_B8_H%zu/f32/infer", i + 1, i % 97 + 1);
        synthetic_add_processes(base, text, 1e6, 10, 2 * i + 1);
        synthetic_add_processes(now, text, i % every == 0 ? 1.1e6 : 1e6, 10, 2 * i + 2);
    }
}

static size_t occurrences(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        count++;
    return count;
}

/* The comparison in Markdown, which is under its limit; the caller frees it. */
static char *markdown_of(const struct lb_run_comparison *comparison)
{
    const struct lb_report_names names = {"base", "new"};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    lb_report_markdown(comparison, &names, out);
    fclose(out);
    assert_true(size < LB_MARKDOWN_LIMIT);
    return text;
}

TEST(markdown_stays_under_its_limit_and_keeps_the_worst)
{
    struct lb_run base, now;
    make_large(2000, 50, &base, &now);
    struct lb_run_comparison comparison = synthetic_compare(&base, &now);
    assert_int_equal(comparison.counts[LB_CHANGE_SLOWER], 40);
    char *text = markdown_of(&comparison);
    assert_memory_equal(text, "### REGRESSION: 2000 cases: 40 slower", 37);
    assert_int_equal(occurrences(text, "| slower |"), 40);
    assert_non_null(strstr(text, "are left out here"));
    assert_non_null(strstr(text, "</details>"));
    free(text);
    lb_run_comparison_free(&comparison);
    lb_run_free(&now);
    lb_run_free(&base);
}

/* With more regressions than fit, the Markdown is still complete and says how many it left out. */
TEST(markdown_of_regressions_alone_stays_whole)
{
    static const size_t counts[] = {400, 430, 460, 490, 520, 600, 1500};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct lb_run base, now;
        make_large(counts[i], 1, &base, &now);
        synthetic_add_processes(&now, CASE(99999), 1000, 10, 1);
        struct lb_run_comparison comparison = synthetic_compare(&base, &now);
        assert_int_equal(comparison.counts[LB_CHANGE_SLOWER], counts[i]);
        char *text = markdown_of(&comparison);
        assert_int_equal(occurrences(text, "<details>"), occurrences(text, "</details>"));
        const char *cut = strstr(text, " cases, the least severe ones, are left out");
        while (cut && cut > text && cut[-1] != '\n')
            cut--;
        size_t left_out = cut ? strtoul(cut, NULL, 10) : 0;
        assert_int_equal(occurrences(text, "\n| slower |") + occurrences(text, "\n| new |") +
                             left_out,
                         counts[i] + 1);
        free(text);
        lb_run_comparison_free(&comparison);
        lb_run_free(&now);
        lb_run_free(&base);
    }
}

/* The counts in the head of the suite are those of its elements, strict or not. */
TEST(junit_counts_its_own_elements)
{
    struct lb_run base = synthetic_empty(), now = synthetic_empty();
    const struct lb_report_names names = {"a & \"b\"", "<new>"};
    synthetic_add_processes(&base, CASE(1), 1000, 10, 1),
        synthetic_add_processes(&now, CASE(1), 1050, 10, 2);
    synthetic_add_processes(&base, CASE(2), 1000, 10, 7),
        synthetic_add_processes(&now, CASE(2), 1020, 10, 8);
    synthetic_add_processes(&base, CASE(3), 1000, 10, 5);
    synthetic_add_processes(&now, CASE(4), 1000, 10, 6);
    struct lb_run_comparison comparison = synthetic_compare(&base, &now);
    assert_int_equal(comparison.counts[LB_CHANGE_INCONCLUSIVE], 1);
    for (int strict = 0; strict < 2; strict++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        lb_report_junit(&comparison, &names, strict, out);
        fclose(out);
        const char *counts = strict ? "tests=\"4\" failures=\"3\" errors=\"0\" skipped=\"0\""
                                    : "tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\"";
        assert_non_null(strstr(text, counts));
        assert_non_null(strstr(text, "name=\"a &amp; &quot;b&quot; to &lt;new&gt;\""));
        assert_int_equal(occurrences(text, "<failure "), strict ? 3 : 1);
        assert_int_equal(occurrences(text, "<skipped "), strict ? 0 : 1);
        free(text);
    }
    lb_run_comparison_free(&comparison);
    lb_run_free(&now);
    lb_run_free(&base);
}

/* The processor's time of this process in s: other tests may run beside this one. */
static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* The time in which the JSON library alone parses the lines of a run. */
static double parsing_seconds(const char *folder)
{
    const size_t flags = JSON_DISABLE_EOF_CHECK;
    char path[4096];
    json_t *line;
    snprintf(path, sizeof(path), "%s/run.jsonl", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    double start = cpu_seconds();
    while ((line = json_loadf(file, flags, NULL)))
        json_decref(line);
    double seconds = cpu_seconds() - start;
    fclose(file);
    return seconds;
}

/* Through the files, as --compare does it: 10,000 rows of 100 samples each. The yardstick is
 * another library's work in the same minute, so that the test holds on any machine under any load.
 */
TEST_WITH(ten_thousand_rows_take_little_more_than_their_parsing, scratch_setup, scratch_teardown)
{
    struct lb_run runs[2], read[2];
    const char *const folders[2] = {scratch_path("base"), scratch_path("new")};
    make_large(10000, 50, &runs[0], &runs[1]);
    for (int s = 0; s < 2; s++) {
        struct lb_run_file file = {0};
        json_t *details = json_pack("{s:{}, s:[s], s:i}", "environment", "command", "x", "seed", 1);
        assert_int_equal(lb_run_create(folders[s], details, &file, NULL), LB_OK);
        for (size_t i = 0; i < runs[s].count; i++)
            assert_int_equal(lb_run_append(&file, &runs[s].rows[i], NULL), LB_OK);
        assert_int_equal(lb_run_finish(&file, false, NULL), LB_OK);
        lb_run_close(&file);
        lb_run_free(&runs[s]);
        json_decref(details);
    }
    double parsing = 0;
    for (int s = 0; s < 2; s++)
        parsing += parsing_seconds(folders[s]);
    double start = cpu_seconds();
    for (int s = 0; s < 2; s++)
        assert_int_equal(lb_run_read(folders[s], &read[s], NULL), LB_OK);
    struct lb_run_comparison comparison = synthetic_compare(&read[0], &read[1]);
    double seconds = cpu_seconds() - start;
    print_message("10,000 rows of 100 samples: %.2f s, parsing %.2f s\n", seconds, parsing);
    assert_int_equal(comparison.counts[LB_CHANGE_SLOWER], 200);
    assert_true(seconds < most_parsings * parsing);
    lb_run_comparison_free(&comparison);
    for (int s = 0; s < 2; s++)
        lb_run_free(&read[s]);
}
