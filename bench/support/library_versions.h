/* The versions of the libraries in this program, as loaded. */
#ifndef LB_LIBRARY_VERSIONS_H
#define LB_LIBRARY_VERSIONS_H

#include "record/environment.h"

/* Ends with a NULL name; valid for the life of the process. */
const struct lb_library *lb_libraries(void);

/* One sentence on libraries that are loaded in another version than was built against; "" when all
 * are as they should be. */
const char *lb_libraries_mismatch(void);

#endif
