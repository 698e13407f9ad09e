/* The text of --help, written from the table of options. */
#ifndef LB_HELP_H
#define LB_HELP_H

#include <stdio.h>

/* What --help says below the options: exit codes and examples. */
extern const char lb_help_epilogue[];

/* Lines of at most 80 columns. */
void lb_help_print(FILE *stream);

#endif
