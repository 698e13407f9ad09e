/* Where the Python environment of setup.sh lies. */
#ifndef LB_FRAMEWORKS_ENVIRONMENT_H
#define LB_FRAMEWORKS_ENVIRONMENT_H

#include <stdio.h>
#include <stdlib.h>

/* Writes the folder that LB_FRAMEWORKS names, or else bench-lstm/frameworks in the user's cache,
 * into path [size]. A path that does not fit is cut, and then leads to no environment. */
static inline void lb_frameworks_environment(char *path, size_t size)
{
    const char *given = getenv("LB_FRAMEWORKS");
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (given && given[0])
        snprintf(path, size, "%s", given);
    else if (cache && cache[0])
        snprintf(path, size, "%s/bench-lstm/frameworks", cache);
    else
        snprintf(path, size, "%s/.cache/bench-lstm/frameworks", home ? home : ".");
}

#endif
