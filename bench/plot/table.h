/* Results as text on the terminal: the table of a sweep, and the GPU kernels of a row. */
#ifndef LB_TABLE_H
#define LB_TABLE_H

#include <stdio.h>

#include "plot/grouped_run.h"

/* Prints the rows by problem in the order of the run, fastest first: median, half width of its
 * interval, speed-up over the baseline, time per update where a row of the problem has one, verdict
 * and reason. Ends with a line that counts the verdicts. Lines fit the width of out's terminal, or
 * 80 columns. */
void lb_table_print(FILE *out, const struct lb_grouped_run *grouped);

/* The two parts of that: the problems, and what follows them. baseline [2 * LB_NAME_SIZE]: that the
 * latest heading names, "" before the first; another heading is printed where this run's differs.
 */
void lb_table_print_problems(FILE *out, const struct lb_grouped_run *grouped, char *baseline);
void lb_table_print_summary(FILE *out, const struct lb_grouped_run *grouped);

/* Prints "cudnn:auto ran 1 persistent kernel, tensor cores: yes", then one line per kernel, the
 * gaps between kernels and the row's warning; or why nothing is known. Indented by four. */
void lb_kernels_print(FILE *out, const struct lb_row *row);

#endif
