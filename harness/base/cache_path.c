/* The folder in which the program keeps measured values from run to run. */
#include "base/cache_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

void lb_cache_path(const char *name, bool make, char path[4096])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[3900];
    if (cache && cache[0])
        snprintf(folder, sizeof(folder), "%.3800s", cache);
    else
        snprintf(folder, sizeof(folder), "%.3800s/.cache", home ? home : ".");
    if (make)
        mkdir(folder, 0777);
    snprintf(path, 4096, "%s/bench-lstm", folder);
    if (make)
        mkdir(path, 0777);
    snprintf(path, 4096, "%s/bench-lstm/%.150s", folder, name);
}
