/* Memory of the program itself, which is little beside that of the cases: where it runs out, the
 * process ends with a message. What grows with the tensors of a case fails as LB_OOM. */
#ifndef LB_MEMORY_H
#define LB_MEMORY_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Returns what an allocation returned, and ends the program where that is NULL. */
void *lb_needed(void *memory);

/* Room for one item more behind the items [count] of that many bytes each, which may move and must
 * grow by this function alone. */
void *lb_room(void *items, size_t count, size_t bytes);

/* From now on, Jansson's functions fail for their arguments alone. */
void lb_json_needs_memory(void);

#endif
