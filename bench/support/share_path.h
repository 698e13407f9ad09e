/* The folders of the program's case files and plot scripts. */
#ifndef LB_SHARE_PATH_H
#define LB_SHARE_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

/* The path of the folder "cases", "criteria" or "plots": in $BENCH_LSTM_SHARE when that is set,
 * else beside the installed program (../share/bench-lstm), else in the source tree that it was
 * built from. LB_IO names the paths that were tried. */
enum lb_status lb_share_path(const char *name, char *path, size_t size, struct lb_error *err);

/* The folder that this program lies in. False where the system does not say. */
bool lb_program_folder(char *path, size_t size);

#endif
