/* A comparison of two runs as files: Markdown for people, JUnit and JSON for CI. */
#ifndef LB_COMPARE_REPORT_H
#define LB_COMPARE_REPORT_H

#include <stdio.h>

#include "report/compare.h"

/* What the runs are called in a report, such as their folders. */
struct lb_report_names {
    const char *base, *now;
};

/* One sentence that holds the outcome: "REGRESSION: 2 of 48 cases are slower, 1 is broken; ...". */
void lb_report_verdict(const struct lb_run_comparison *comparison, char *text, size_t size);

#define LB_MARKDOWN_LIMIT 60000 /* bytes; GitHub takes comments of 65,536 characters */

/* Each writes to out, which the caller checks for errors and closes; LB_OOM.
 * Markdown: the verdict, then regressions, then the rest folded; the least severe are cut so that
 * it stays under LB_MARKDOWN_LIMIT, and it says how many. JUnit: a test a case, regressions are
 * failures; inconclusive and gone ones are failures under strict, else passed with their doubt as
 * output, and skipped. */
enum lb_status lb_report_markdown(const struct lb_run_comparison *comparison,
                                  const struct lb_report_names *names, FILE *out,
                                  struct lb_error *err);
enum lb_status lb_report_junit(const struct lb_run_comparison *comparison,
                               const struct lb_report_names *names, bool strict, FILE *out,
                               struct lb_error *err);
enum lb_status lb_report_json(const struct lb_run_comparison *comparison,
                              const struct lb_report_names *names, FILE *out, struct lb_error *err);

#endif
