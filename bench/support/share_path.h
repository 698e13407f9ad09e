/* Where the program's case files and plot scripts lie, and the plug-ins of frameworks. */
#ifndef LB_SHARE_PATH_H
#define LB_SHARE_PATH_H

#include <jansson.h>
#include <stddef.h>

#include "api/status.h"

/* The path of the folder "cases", "criteria" or "plots": in $BENCH_LSTM_SHARE when that is set,
 * else beside the installed program (../share/bench-lstm), else in the source tree that it was
 * built from. LB_IO names the paths that were tried. */
enum lb_status lb_share_path(const char *name, char *path, size_t size, struct lb_error *err);

/* Finds the plug-in of a framework, whose implementation has the same name: beside the program in a
 * build folder, or where it was installed. LB_INVALID: there is no such framework; err suggests one
 * or lists all. LB_ABSENT: its plug-in was not built. */
enum lb_status lb_framework_find(const char *name, char *path, size_t size, struct lb_error *err);

/* Adds the libraries of the framework whose plug-in lies at that path, {"PyTorch": "2.15.0"}, as
 * they are in the environment of setup.sh or, without one, in the system's Python. Other plug-ins
 * have none. */
void lb_framework_add_versions(const char *plugin, json_t *libraries);

#endif
