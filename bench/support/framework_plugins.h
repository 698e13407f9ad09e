/* The frameworks that --framework names, and where their plug-ins lie. */
#ifndef LB_FRAMEWORK_PLUGINS_H
#define LB_FRAMEWORK_PLUGINS_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

/* The path of the plug-in of that framework: beside the program in a build folder, or where
 * installed programs have it. False where there is none. */
bool lb_framework_plugin(const char *name, char *path, size_t size);

/* A library of a framework, and its version as its package says it. */
struct lb_framework_version {
    const char *library; /* "PyTorch" */
    char version[32];    /* "2.15.0" */
};

enum { LB_FRAMEWORK_LIBRARIES = 2 /* at most, of one framework */ };

/* The libraries of the framework whose plug-in lies at that path, in the environment of setup.sh
 * or, without one, of the system's Python. Returns how many were found; 0 for other plug-ins. */
size_t lb_framework_versions(const char *plugin,
                             struct lb_framework_version found[LB_FRAMEWORK_LIBRARIES]);

/* The name of the framework that the word is, which is that of its implementation too. LB_INVALID
 * suggests one or lists all. */
enum lb_status lb_framework_find(const char *word, const char **name, struct lb_error *err);

#endif
