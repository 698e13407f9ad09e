/* The frameworks that --framework names, and where their plug-ins lie. */
#ifndef LB_FRAMEWORK_PLUGINS_H
#define LB_FRAMEWORK_PLUGINS_H

#include <jansson.h>
#include <stddef.h>

#include "api/status.h"

/* Finds the plug-in of a framework, whose implementation has the same name: beside the program in a
 * build folder, or where it was installed. LB_INVALID: there is no such
 * framework; err suggests one or lists all. LB_ABSENT: its plug-in was not built. */
enum lb_status lb_framework_find(const char *name, char *path, size_t size, struct lb_error *err);

/* Adds the libraries of the framework whose plug-in lies at that path, {"PyTorch": "2.15.0"}, as
 * they are in the environment of setup.sh or, without one, in the system's Python. Other plug-ins
 * have none. */
void lb_framework_add_versions(const char *plugin, json_t *libraries);

#endif
