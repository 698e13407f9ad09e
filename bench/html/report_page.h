/* The report: one HTML file that shows what a run found and lets readers explore it. */
#ifndef LB_HTML_REPORT_H
#define LB_HTML_REPORT_H

#include <signal.h>

#include "cli/options.h"

/* Writes the report of options->run into the file options->out, which is replaced only if all went
 * well. When options->runs names further runs, the last one is reported and compared with each of
 * the others. LB_IO, LB_INVALID: a
 * run can't be read or the file can't be written. LB_OOM. LB_INTERRUPTED: *stop is nonzero; the
 * file is as it was. */
enum lb_status lb_html_report(const struct lb_options *options, const volatile sig_atomic_t *stop,
                              struct lb_error *err);

#endif
