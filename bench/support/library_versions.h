/* The versions of libraries, as a run's environment records them: an object {name: version}. */
#ifndef LB_LIBRARY_VERSIONS_H
#define LB_LIBRARY_VERSIONS_H

#include <jansson.h>

#include "model/registry.h"

/* The libraries that the program itself is linked with. A new object. */
json_t *lb_linked_libraries(void);

/* Adds the version of an implementation's library to those in the object: NULL, recorded as null,
 * where a worker could not load it. For a GPU's library the version that the program was built
 * against is added too, as "cuDNN, built". */
void lb_library_add(json_t *libraries, const struct lb_impl_entry *impl_entry, const char *version);

/* One sentence that lists the libraries whose loaded version is not the one that the program was
 * built against, in a static buffer; "" when there is none. */
const char *lb_libraries_mismatch(const json_t *libraries);

/* --version: prints the libraries that are linked and those that workers load. */
void lb_libraries_print(void);

#endif
