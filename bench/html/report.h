/* The report: one HTML file that says what a run found, shows it, and lets a reader check it. */
#ifndef LB_HTML_REPORT_H
#define LB_HTML_REPORT_H

#include "cli/options.h"

/* Writes the report of options->run, or of the last of options->runs with what changed since the
 * others, into the file options->out, which is replaced only when all went well. Pictures that
 * can't be drawn are no failure: the page says why. LB_IO, LB_INVALID: a run can't be read or the
 * file can't be written; LB_OOM. */
enum lb_status lb_html_report(const struct lb_options *options, struct lb_error *err);

#endif
