/* The text of --help, written from the table of options. */
#ifndef LB_HELP_H
#define LB_HELP_H

#include <stdio.h>

/* Lines of at most 80 columns. */
void lb_help_print(FILE *stream);

#endif
