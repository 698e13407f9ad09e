/* A comparison of two runs as Markdown, JUnit XML and JSON. */
#include "report/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xml.h"

void lb_report_name(const char *name, char *copy, size_t size)
{
    snprintf(copy, size, "%s", name);
    lb_clean_text(copy);
}

void lb_format_change(const struct lb_pair *pair, char change[32], char interval[64])
{
    change[0] = interval[0] = '\0';
    if (isfinite(pair->shift.estimate))
        snprintf(change, 32, "%+.1f %%", 100 * expm1(pair->shift.estimate));
    if (pair->compared)
        snprintf(interval, 64, "%+.1f to %+.1f %%", 100 * expm1(pair->shift.lo95),
                 100 * expm1(pair->shift.hi95));
}

void lb_report_verdict(const struct lb_run_comparison *comparison, char *text, size_t size)
{
    const size_t *n = comparison->counts;
    const char *word = "No regression found", *comma = "";
    if (n[LB_CHANGE_SLOWER] + n[LB_CHANGE_BROKEN] > 0)
        word = "REGRESSION";
    else if (comparison->common == 0)
        word = "Nothing to compare";
    else if (n[LB_CHANGE_INCONCLUSIVE] > 0)
        word = "No regression shown, but not all is decided";
    snprintf(text, size, "%s: %zu case%s: ", word, comparison->count,
             comparison->count == 1 ? "" : "s");
    for (int c = 0; c < LB_CHANGE_COUNT; c++)
        if (n[c] > 0) {
            lb_append(text, size, "%s%zu %s", comma, n[c], lb_change_name((enum lb_change)c));
            comma = ", ";
        }
    lb_append(text, size, " (margin %.3g %%).", 100 * comparison->judgement.margin);
}

void lb_markdown_cell(char *text)
{
    for (; *text; text++)
        if (strchr("|<>`\n\r", *text))
            *text = ' ';
}

/* Markdown that is being written: bytes so far, and cases that were left out. */
struct markdown {
    FILE *out;
    size_t written, left_out;
};

/* Writes the text, unless too little room for the closing lines would be left below the limit. */
static bool __attribute__((format(printf, 2, 3))) put(struct markdown *md, const char *format, ...)
{
    const size_t room = 600;
    char text[2048];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (md->written + strlen(text) + room > LB_MARKDOWN_LIMIT)
        return false;
    fputs(text, md->out);
    md->written += strlen(text);
    return true;
}

/* Formats the time in us; "-" when there is none. */
static void format_time(const struct lb_row *row, int percentile, char text[32])
{
    snprintf(text, 32, "-");
    if (row && lb_row_is_timed(row))
        snprintf(text, 32, "%.4g", lb_row_time(row, percentile).ns / 1e3);
}

/* Writes one line of the table. Case texts need no escapes, but notes may contain anything. */
static bool put_line(struct markdown *md, const struct lb_pair *pair)
{
    char change[32], interval[64], note[sizeof(pair->note)], base[32], now[32];
    memcpy(note, pair->note, sizeof(note));
    lb_markdown_cell(note);
    format_time(pair->base, pair->percentile, base);
    format_time(pair->now, pair->percentile, now);
    lb_format_change(pair, change, interval);
    return put(md, "| %s | `%s` | %s | %s | %s | %s | %s |\n", lb_change_name(pair->change),
               pair->id, change, interval, base, now, note);
}

/* Writes the table of pairs [first, last). */
static void put_table(struct markdown *md, const struct lb_pair *pairs, size_t first, size_t last)
{
    bool fits = put(md, "| verdict | case | change | 95 %% interval | base us | new us | |\n"
                        "|---|---|---:|---:|---:|---:|---|\n");
    for (; first < last && fits; first += fits)
        fits = put_line(md, &pairs[first]);
    md->left_out += last - first;
}

void lb_report_markdown(const struct lb_run_comparison *comparison,
                        const struct lb_report_names *names, FILE *out)
{
    struct markdown md = {.out = out};
    char verdict[512];
    size_t worst = 0;
    lb_report_verdict(comparison, verdict, sizeof(verdict));
    put(&md, "### %s\n\nBase `%.400s`, new `%.400s`.%s\n\n", verdict, names->base, names->now,
        comparison->unit == LB_UNIT_BLOCK ? " The runs took turns in one process." : "");
    if (comparison->notes[0])
        put(&md, "> **Note.** %s\n\n", comparison->notes);
    if (comparison->basis[0])
        put(&md, "%s\n\n", comparison->basis);
    while (worst < comparison->count && lb_change_is_regression(comparison->pairs[worst].change))
        worst++;
    if (worst > 0)
        put_table(&md, comparison->pairs, 0, worst);
    if (worst < comparison->count) {
        if (put(&md, "\n<details><summary>The other %zu cases</summary>\n\n",
                comparison->count - worst)) {
            put_table(&md, comparison->pairs, worst, comparison->count);
            fputs("\n</details>\n", out);
        } else {
            md.left_out += comparison->count - worst;
        }
    }
    if (md.left_out > 0)
        fprintf(out,
                "\n%zu cases, the least severe ones, are left out here; the JSON report has all.\n",
                md.left_out);
    fprintf(
        out,
        "\nslower, faster: significant by Benjamini-Hochberg at %.3g %% over %zu compared cases, "
        "and beyond the margin; same: two one-sided tests place the change within the margin.\n",
        100 * comparison->judgement.level, comparison->compared);
}

/* Describes the pair in one line, for the message of a failure or the output of a passed test. */
static void describe(const struct lb_pair *pair, char *text, size_t size)
{
    char change[32], interval[64];
    lb_format_change(pair, change, interval);
    snprintf(text, size, "%s", lb_change_name(pair->change));
    if (pair->compared)
        lb_append(text, size, ": %s (%s), %.4g us before, %.4g us now, adjusted p %.2g", change,
                  interval, lb_row_time(pair->base, pair->percentile).ns / 1e3,
                  lb_row_time(pair->now, pair->percentile).ns / 1e3, pair->adjusted_p);
    if (pair->note[0])
        lb_append(text, size, "%s%s", pair->compared ? "; " : ": ", pair->note);
}

/* The JUnit element of a case; NULL: passed. With strict, cases that make --compare --strict exit
 * with code 4 are failures. */
static const char *junit_element(enum lb_change change, bool strict)
{
    bool open = change == LB_CHANGE_INCONCLUSIVE || change == LB_CHANGE_GONE;
    if (lb_change_is_regression(change) || (strict && open))
        return "failure";
    bool skipped = change == LB_CHANGE_GONE || change == LB_CHANGE_NOT_RUN ||
                   change == LB_CHANGE_STILL_FAILING;
    return skipped ? "skipped" : NULL;
}

static void write_testcase(const struct lb_pair *pair, bool strict, FILE *out)
{
    char text[1024];
    const char *element = junit_element(pair->change, strict);
    double ns =
        pair->now && lb_row_is_timed(pair->now) ? lb_row_time(pair->now, pair->percentile).ns : 0;
    describe(pair, text, sizeof(text));
    fputs("    <testcase classname=\"bench-lstm.compare\" name=\"", out);
    lb_xml_text(pair->id, out);
    fprintf(out, "\" time=\"%.9f\">", ns / 1e9);
    if (element) {
        fprintf(out, "<%s message=\"", element);
        lb_xml_text(text, out);
        fputs("\"/>", out);
    } else {
        fputs("<system-out>", out);
        lb_xml_text(text, out);
        fputs("</system-out>", out);
    }
    fputs("</testcase>\n", out);
}

void lb_report_junit(const struct lb_run_comparison *comparison,
                     const struct lb_report_names *names, bool strict, FILE *out)
{
    struct lb_junit_counts counts = {0};
    for (int c = 0; c < LB_CHANGE_COUNT; c++)
        lb_junit_count(&counts, junit_element((enum lb_change)c, strict), comparison->counts[c]);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"", out);
    lb_xml_text(names->base, out);
    fputs(" to ", out);
    lb_xml_text(names->now, out);
    fputc('"', out);
    lb_junit_attributes(&counts, out);
    fputs(" time=\"0\">\n", out);
    for (size_t i = 0; i < comparison->count; i++)
        write_testcase(&comparison->pairs[i], strict, out);
    if (comparison->notes[0]) {
        fputs("    <system-out>", out);
        lb_xml_text(comparison->notes, out);
        fputs("</system-out>\n", out);
    }
    fputs("  </testsuite>\n</testsuites>\n", out);
}

void lb_json_write(json_t *document, FILE *out)
{
    json_dumpf(document, out, JSON_INDENT(2));
    fputc('\n', out);
    json_decref(document);
}

static json_t *number_or_null(bool known, double value)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

static json_t *pair_json(const struct lb_pair *pair)
{
    const struct lb_shift *s = &pair->shift;
    bool c = pair->compared, timed = isfinite(s->estimate);
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:s}", "case", pair->id, "change",
        lb_change_name(pair->change), "ratio", number_or_null(timed, exp(s->estimate)), "ratio_lo",
        number_or_null(c, exp(s->lo95)), "ratio_hi", number_or_null(c, exp(s->hi95)), "p",
        number_or_null(c, s->p), "adjusted_p", number_or_null(c, pair->adjusted_p),
        "base_median_ns",
        number_or_null(pair->base, pair->base ? lb_row_time(pair->base, pair->percentile).ns : 0),
        "new_median_ns",
        number_or_null(pair->now, pair->now ? lb_row_time(pair->now, pair->percentile).ns : 0),
        "base_units", (json_int_t)pair->base_units, "new_units", (json_int_t)pair->now_units,
        "note", pair->note);
}

json_t *lb_report_json(const struct lb_run_comparison *comparison,
                       const struct lb_report_names *names)
{
    char verdict[512];
    json_t *cases = json_array(), *counts = json_object();
    for (size_t i = 0; i < comparison->count; i++)
        json_array_append_new(cases, pair_json(&comparison->pairs[i]));
    for (int c = 0; c < LB_CHANGE_COUNT; c++)
        json_object_set_new(counts, lb_change_name((enum lb_change)c),
                            json_integer((json_int_t)comparison->counts[c]));
    lb_report_verdict(comparison, verdict, sizeof(verdict));
    return json_pack("{s:s, s:s, s:s, s:f, s:f, s:b, s:s, s:s, s:s, s:f, s:o, s:o}", "verdict",
                     verdict, "base", names->base, "new", names->now, "margin",
                     comparison->judgement.margin, "level", comparison->judgement.level,
                     "interleaved", comparison->unit == LB_UNIT_BLOCK, "environments_differ_in",
                     comparison->environments, "notes", comparison->notes, "basis",
                     comparison->basis, "run_spread", comparison->spread.deviation, "counts",
                     counts, "cases", cases);
}
