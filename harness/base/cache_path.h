/* The folder in which the program keeps measured values from run to run. */
#ifndef LB_CACHE_PATH_H
#define LB_CACHE_PATH_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the path of the file `name` in $XDG_CACHE_HOME/bench-lstm, or in ~/.cache/bench-lstm when
 * that variable is not set. With make, the last two folders are created when they are missing; a
 * failure to do so shows when the caller opens the file. */
void lb_cache_path(const char *name, bool make, char path[4096]);

#ifdef __cplusplus
}
#endif
#endif
