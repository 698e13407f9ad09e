/* Writing HTML: text and numbers as they may stand in it. */
#ifndef LB_HTML_WRITER_H
#define LB_HTML_WRITER_H

#include <stdio.h>

#include "model/case.h"

/* Text with its special characters written as entities, so that it is text and nothing else, also
 * inside a quoted attribute. */
void lb_html_text(FILE *out, const char *text);

/* As printf, the result as lb_html_text writes it; cut at 4,000 bytes. */
void lb_html_format(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "12.3 µs": three digits and a unit; "-" for NaN. */
void lb_html_ns(FILE *out, double ns);

/* The file as it stands; LB_IO. */
enum lb_status lb_html_file(FILE *out, const char *folder, const char *name, struct lb_error *err);

/* The whole file as a string for the caller to free; LB_IO, LB_OOM. */
enum lb_status lb_html_read(const char *folder, const char *name, char **text,
                            struct lb_error *err);

#endif
