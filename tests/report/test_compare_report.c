/* Tests of the reports on a comparison: their size and their counts. */
#include "base/text.h"
#include "report/compare.h"
#include "tests/helpers/synthetic_run.h"
#include "tests/helpers/test.h"

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
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    lb_report_markdown(comparison, out);
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
    strcpy(comparison.base_name, "a");
    for (int i = 0; i < 300; i++) /* a long name is cut between characters */
        strcat(comparison.base_name, "é");
    char *text = markdown_of(&comparison);
    assert_true(lb_is_utf8(text));
    assert_memory_equal(text, "### REGRESSION: 2000 cases: 40 slower", 37);
    assert_int_equal(occurrences(text, "| slower |"), 40);
    assert_non_null(strstr(text, "are left out here"));
    assert_non_null(strstr(text, "</details>"));
    assert_non_null(strstr(text, "The other 1960 cases<"));
    free(text);
    synthetic_free(&comparison, &base, &now);
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
        if (!cut)
            assert_non_null(strstr(text, "The other 1 case<"));
        free(text);
        synthetic_free(&comparison, &base, &now);
    }
}

/* The counts in the head of the suite are those of its elements, strict or not. */
TEST(junit_counts_its_own_elements)
{
    struct lb_run base = synthetic_empty(), now = synthetic_empty();
    synthetic_add_processes(&base, CASE(1), 1000, 10, 1),
        synthetic_add_processes(&now, CASE(1), 1050, 10, 2);
    synthetic_add_processes(&base, CASE(2), 1000, 10, 7),
        synthetic_add_processes(&now, CASE(2), 1020, 10, 8);
    synthetic_add_processes(&base, CASE(3), 1000, 10, 5);
    synthetic_add_processes(&now, CASE(4), 1000, 10, 6);
    struct lb_run_comparison comparison = synthetic_compare(&base, &now);
    assert_int_equal(comparison.counts[LB_CHANGE_INCONCLUSIVE], 1);
    strcpy(comparison.base_name, "a & \"b\"");
    strcpy(comparison.now_name, "<new>");
    for (int strict = 0; strict < 2; strict++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        lb_report_junit(&comparison, strict, out);
        fclose(out);
        const char *counts = strict ? "tests=\"4\" failures=\"3\" errors=\"0\" skipped=\"0\""
                                    : "tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\"";
        assert_non_null(strstr(text, counts));
        assert_non_null(strstr(text, "name=\"a &amp; &quot;b&quot; to &lt;new&gt;\""));
        assert_int_equal(occurrences(text, "<failure "), strict ? 3 : 1);
        assert_int_equal(occurrences(text, "<skipped "), strict ? 0 : 1);
        free(text);
    }
    synthetic_free(&comparison, &base, &now);
}
