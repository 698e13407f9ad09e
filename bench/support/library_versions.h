/* The versions of the libraries that this program has loaded. */
#ifndef LB_LIBRARY_VERSIONS_H
#define LB_LIBRARY_VERSIONS_H

#include "record/environment.h"

/* Libraries and their versions. Ends with a NULL name; valid as long as the process lives. */
const struct lb_library *lb_libraries(void);

/* One sentence that lists the libraries whose loaded version is not the one that the program was
 * built against; "" when there is none. */
const char *lb_libraries_mismatch(void);

#endif
