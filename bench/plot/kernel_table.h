/* The GPU kernels of a row, printed on the terminal. */
#ifndef LB_KERNEL_TABLE_H
#define LB_KERNEL_TABLE_H

#include <stdio.h>

#include "record/record.h"

/* Prints "cudnn:auto ran 1 persistent kernel, tensor cores: yes", then one line per kernel, the
 * gaps between kernels and the row's warning; or why nothing is known. Indented by four. */
void lb_kernels_print(FILE *out, const struct lb_row *row);

#endif
