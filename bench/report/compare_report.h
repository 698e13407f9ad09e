/* Writes a comparison of two runs: Markdown for people, JUnit and JSON for CI. */
#ifndef LB_COMPARE_REPORT_H
#define LB_COMPARE_REPORT_H

#include <stdio.h>

#include "report/compare.h"

/* The names of the runs in a report, such as their folders. */
struct lb_report_names {
    const char *base, *now;
};

/* Writes the outcome into text [size] in one line, such as
 * "REGRESSION: 48 cases: 1 broken, 2 slower, 45 same (margin 2 %).". */
void lb_report_verdict(const struct lb_run_comparison *comparison, char *text, size_t size);

/* Formats the relative change of a pair's time, "+3.1 %", and its 95 % interval, "+2.0 to +4.2 %";
 * each is "" where it is not known. */
void lb_format_change(const struct lb_pair *pair, char change[32], char interval[64]);

/* Makes text fit for a cell of a Markdown table: blanks replace what is markup. */
void lb_markdown_cell(char *text);

#define LB_MARKDOWN_LIMIT 60000 /* bytes; GitHub takes comments of 65,536 characters */

/* Each of these writes to out, which the caller checks for errors and closes.
 * - Markdown has the outcome, then the regressions, then all other cases in a folded section. Where
 *   it would exceed LB_MARKDOWN_LIMIT, it leaves out the least severe cases and says how many.
 * - JUnit has one test per case; regressions are failures. With strict, inconclusive and gone cases
 *   are failures too. Without strict, an inconclusive case passes, with the reason as its output,
 *   and a gone case is skipped.
 * - JSON has everything; lb_report_json returns a new object. */
void lb_report_markdown(const struct lb_run_comparison *comparison,
                        const struct lb_report_names *names, FILE *out);
void lb_report_junit(const struct lb_run_comparison *comparison,
                     const struct lb_report_names *names, bool strict, FILE *out);
json_t *lb_report_json(const struct lb_run_comparison *comparison,
                       const struct lb_report_names *names);

/* Writes a JSON document, indented and with a newline at the end, and drops the reference to it. */
void lb_json_write(json_t *document, FILE *out);

#endif
