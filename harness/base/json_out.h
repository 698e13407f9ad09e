/* Whole JSON documents for other tools and people. */
#ifndef LB_JSON_OUT_H
#define LB_JSON_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "api/status.h"

/* Writes the document, indented, with a newline behind it, and gives it up. The caller looks at the
 * stream's errors. LB_OOM, "WHAT: out of memory", when it is NULL, is not whole because something
 * in it could not be made, or memory ran out on the way. */
enum lb_status lb_json_write(json_t *document, bool whole, const char *what, FILE *out,
                             struct lb_error *err);

#endif
