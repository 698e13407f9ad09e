/* The results of a sweep as a table on the terminal. */
#ifndef LB_TABLE_H
#define LB_TABLE_H

#include <stdio.h>

#include "record/run_file.h"

/* Chooses the baseline of speed-ups: the named impl[:variant]. When name is NULL, the first of
 * cudnn, onednn and cpu_ref that has an ok row, else the implementation of the first ok row, else
 * "". */
void lb_choose_baseline(const struct lb_run *run, const char *name,
                        char baseline[2 * LB_NAME_SIZE]);

/* "impl" or "impl:variant". */
void lb_impl_label(const struct lb_case *c, char label[2 * LB_NAME_SIZE]);

/* Prints the rows grouped by problem, fastest first: median, half width of its interval, speed-up
 * over the baseline, time per update where a row of the problem has one, verdict and reason. Ends
 * with a line that counts the verdicts. */
enum lb_status lb_table_print(FILE *out, const struct lb_run *run, const char *baseline,
                              struct lb_error *err);

#endif
