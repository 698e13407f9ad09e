/* Runs one case in this process, from supports to destroy, with one row as its outcome. */
#ifndef LB_CASE_RUN_H
#define LB_CASE_RUN_H

#include "case/options.h"

/* Runs c on impl and always fills row, because every outcome, a failure too, is a verdict. The
 * caller frees the row. Device memory that stays in use after destroy is not the case's, and does
 * not count in row->peak_bytes. */
void lb_case_run(const struct lb_impl *impl, const struct lb_case *c,
                 const struct lb_run_options *options, const struct lb_run_observer *observer,
                 struct lb_row *row);

#endif
