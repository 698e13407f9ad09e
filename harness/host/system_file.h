/* Reads what the system tells in small text files, as below /proc and /sys. */
#ifndef LB_SYSTEM_FILE_H
#define LB_SYSTEM_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Copies what follows `begin` on the first line that begins with it into text [size], without the
 * end of the line, cut where it does not fit. begin "": the first line. False, and "", when there
 * is no such file or line. */
bool lb_system_text(const char *path, const char *begin, char *text, size_t size);

/* The number at the start of that text; NaN when there is none. */
double lb_system_number(const char *path, const char *begin);

#endif
