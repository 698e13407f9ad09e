/* Where the program keeps what it found out, from run to run. */
#ifndef LB_CACHE_PATH_H
#define LB_CACHE_PATH_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The path of a file, of that name without a folder, in $XDG_CACHE_HOME/bench-lstm, or in
 * ~/.cache/bench-lstm where that is not set. make: makes the folders that are not there yet, of the
 * last two; who opens the file finds out whether that went well. */
void lb_cache_path(const char *name, bool make, char path[4096]);

#ifdef __cplusplus
}
#endif
#endif
