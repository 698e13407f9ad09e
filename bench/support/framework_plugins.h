/* The frameworks that --framework names, and where their plug-ins lie. */
#ifndef LB_FRAMEWORK_PLUGINS_H
#define LB_FRAMEWORK_PLUGINS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

/* The path of the plug-in of that framework: beside the program in a build folder, or where
 * installed programs have it. False where there is none. */
bool lb_framework_plugin(const char *name, char *path, size_t size);

/* Adds the libraries of the framework whose plug-in lies at that path, {"PyTorch": "2.15.0"}, as
 * they are in the environment of setup.sh or, without one, in the system's Python. Other plug-ins
 * have none. */
void lb_framework_add_versions(const char *plugin, json_t *libraries);

/* The name of the framework that the word is, which is that of its implementation too. LB_INVALID
 * suggests one or lists all. */
enum lb_status lb_framework_find(const char *word, const char **name, struct lb_error *err);

#endif
