/* Memory of the program itself. */
#include "base/memory.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

void *lb_needed(void *memory)
{
    if (memory)
        return memory;
    fputs("bench-lstm: out of memory\n", stderr);
    _Exit(EXIT_FAILURE);
}

void *lb_room(void *items, size_t count, size_t bytes)
{
    bool full = (count & (count - 1)) == 0; /* it doubles at powers of two */
    return full ? lb_needed(realloc(items, (count > 0 ? 2 * count : 1) * bytes)) : items;
}

static void *allocate(size_t bytes)
{
    return lb_needed(malloc(bytes > 0 ? bytes : 1));
}

void lb_json_needs_memory(void)
{
    json_set_alloc_funcs(allocate, free);
}
