/* A run as JUnit XML and as Markdown. */
#include <math.h>
#include <string.h>

#include "base/xml.h"
#include "record/run_devices.h"
#include "report/compare_report.h"
#include "report/export.h"

#define LONGEST_S 1e12 /* of a case that is believed: a sum of such times has an end */

static const char *junit_element(enum lb_verdict verdict)
{
    if (verdict == LB_VERDICT_OK)
        return NULL;
    if (verdict == LB_VERDICT_WRONG)
        return "failure";
    return lb_verdict_is_failure(verdict) ? "error" : "skipped";
}

static double seconds_of(const struct lb_row *row)
{
    double seconds = row->elapsed_ns / 1e9;
    return seconds < LONGEST_S ? seconds : 0;
}

static void write_testcase(const struct lb_row *row, FILE *out)
{
    const char *element = junit_element(row->verdict);
    char id[LB_ROW_ID_SIZE];
    lb_row_print_id(row, id);
    fputs("    <testcase classname=\"bench-lstm.", out);
    lb_xml_text(row->c.impl, out);
    fputs("\" name=\"", out);
    lb_xml_text(id, out);
    fprintf(out, "\" time=\"%.6f\"", seconds_of(row));
    if (element) {
        fprintf(out, "><%s message=\"%s: ", element, lb_verdict_name(row->verdict));
        lb_xml_text(row->reason, out);
        fputs("\"/></testcase>\n", out);
    } else {
        fputs("/>\n", out);
    }
}

enum lb_status lb_export_junit(const struct lb_run *run, FILE *out, struct lb_error *err)
{
    (void)err;
    struct lb_junit_counts counts = {0};
    double seconds = 0;
    for (size_t i = 0; i < run->count; i++) {
        lb_junit_count(&counts, junit_element(run->rows[i].verdict), 1);
        seconds += seconds_of(&run->rows[i]);
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
          "  <testsuite name=\"bench-lstm\"",
          out);
    lb_junit_attributes(&counts, out);
    fprintf(out, " time=\"%.6f\">\n", seconds);
    for (size_t i = 0; i < run->count; i++)
        write_testcase(&run->rows[i], out);
    fputs("  </testsuite>\n</testsuites>\n", out);
    return LB_OK;
}

/* Writes text into a cell of a table, with blanks for characters that are markup. Returns its
 * length. */
static size_t write_cell(const char *text, FILE *out)
{
    size_t length = 0;
    for (; *text; text++, length++)
        fputc(strchr("|<>`\r\n", *text) ? ' ' : *text, out);
    return length;
}

static size_t write_line(const struct lb_row *row, FILE *out)
{
    char id[LB_ROW_ID_SIZE];
    lb_row_print_id(row, id);
    int length = fprintf(out, "| `%s` | ", id);
    if (lb_row_is_timed(row) && isfinite(row->median_lo_ns))
        length += fprintf(out, "%.4g | %.4g to %.4g | ok |", row->median_ns / 1e3,
                          row->median_lo_ns / 1e3, row->median_hi_ns / 1e3);
    else if (lb_row_is_timed(row))
        length += fprintf(out, "%.4g | | ok |", row->median_ns / 1e3);
    else
        length += fprintf(out, "| | %s: ", lb_verdict_name(row->verdict));
    size_t reason = lb_row_is_timed(row) ? 0 : write_cell(row->reason, out) + 2;
    fputs(lb_row_is_timed(row) ? "\n" : " |\n", out);
    return (size_t)(length > 0 ? length : 0) + reason + 1;
}

enum lb_status lb_export_markdown(const struct lb_run *run, FILE *out, struct lb_error *err)
{
    (void)err;
    const size_t longest = LB_ROW_TEXT_SIZE + LB_ROW_ID_SIZE + 128;
    char machine[1024];
    size_t written = sizeof(machine);
    lb_run_machine_line(run, machine, sizeof(machine));
    fputs("### LSTM times: ", out);
    write_cell(machine, out);
    fputs("\n\n| case | median us | 95 % interval us | verdict |\n|---|---:|---:|---|\n", out);
    for (size_t i = 0; i < run->count; i++) {
        if (written + longest > LB_MARKDOWN_LIMIT) {
            fprintf(out, "\n%zu more cases are in run.jsonl.\n", run->count - i);
            break;
        }
        written += write_line(&run->rows[i], out);
    }
    return LB_OK;
}
