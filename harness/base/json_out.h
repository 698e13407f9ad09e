/* Writing JSON documents for people and other tools. */
#ifndef LB_JSON_OUT_H
#define LB_JSON_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "api/status.h"

/* Writes the document, indented and with a newline at the end, and drops the caller's reference.
 * whole: false when a part of the document could not be made. LB_OOM, "WHAT: out of memory", when
 * the document is NULL or not whole or can't be written out. The caller checks the stream for
 * errors. */
enum lb_status lb_json_write(json_t *document, bool whole, const char *what, FILE *out,
                             struct lb_error *err);

#endif
