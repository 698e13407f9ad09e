/* JSON objects as tables. */
#include "record/json.h"

size_t lb_json_number(json_t *table, const char *text, size_t next)
{
    const json_t *known = json_object_get(table, text);
    if (known)
        return (size_t)json_integer_value(known);
    json_object_set_new(table, text, json_integer((json_int_t)next));
    return next;
}
