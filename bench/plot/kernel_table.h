/* The kernels of a row, for people. */
#ifndef LB_KERNEL_TABLE_H
#define LB_KERNEL_TABLE_H

#include <stdio.h>

#include "record/record.h"

/* "cudnn:auto ran 1 persistent kernel, tensor cores: yes", a line a kernel, the gaps, and the row's
 * warning; or why nothing is known. Indented by four. */
void lb_kernels_print(FILE *out, const struct lb_row *row);

#endif
