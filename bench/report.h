/* The report: one HTML file that says what a run found, shows it, and lets a reader check it. */
#ifndef LB_REPORT_H
#define LB_REPORT_H

#include <stddef.h>

#include "status.h"

struct lb_report_options {
    const char *const *runs; /* [count] folders or files, at least one; the last is reported */
    size_t count;
    const char *out;      /* the file; replaced when all went well only */
    const char *baseline; /* NULL: the run's own, or chosen */
};

/* Writes the report. Pictures that can't be drawn are no failure: the page says why.
 * LB_IO, LB_INVALID: a run can't be read or the file can't be written; LB_OOM. */
enum lb_status lb_report(const struct lb_report_options *options, struct lb_error *err);

#endif
