/* JSON objects as tables. */
#ifndef LB_JSON_H
#define LB_JSON_H

#include <jansson.h>
#include <stddef.h>

/* Returns the number that the text has in the table. A text that is not there gets the number
 * `next`. */
size_t lb_json_number(json_t *table, const char *text, size_t next);

#endif
