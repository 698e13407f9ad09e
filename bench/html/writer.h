/* Writing text, numbers and files into HTML and into JSON inside HTML. */
#ifndef LB_HTML_WRITER_H
#define LB_HTML_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "api/status.h"

/* Writes the text with its special characters as entities, so that it is never markup, also inside
 * a quoted attribute. A byte that is not part of a UTF-8 character becomes '?'. */
void lb_html_text(FILE *out, const char *text);

/* Formats like printf and writes the result as lb_html_text does; cut at 4,000 bytes. */
void lb_html_format(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "12.3 µs": three digits and a unit; "-" for NaN. */
void lb_html_ns(FILE *out, double ns);

/* Writes the text as a JSON string that is safe inside <script>: '<', '>', '&', U+2028 and U+2029
 * are written as \u escapes. */
void lb_html_json_string(FILE *out, const char *text);

/* Writes the number as JSON, in nine digits; null where it is not finite. */
void lb_html_json_number(FILE *out, double value);

/* Writes the bytes as base64. */
void lb_html_base64(FILE *out, const char *bytes, size_t size);

/* Reads a whole file, followed by a zero byte. The caller frees *bytes. LB_IO, LB_OOM. */
enum lb_status lb_html_read(const char *folder, const char *name, char **bytes, size_t *size,
                            struct lb_error *err);

#endif
