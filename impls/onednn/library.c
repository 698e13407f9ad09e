/* The functions of oneDNN, found when the library is loaded. */
#include "impls/onednn/library.h"

#include <stdio.h>

struct lb_dnnl lb_dnnl;

static const char *const names[] = {LB_DNNL_FUNCTIONS(LB_FUNCTION_NAME)};

static void print_version(char *text, size_t size)
{
    const dnnl_version_t *v = lb_dnnl.dnnl_version();
    snprintf(text, size, "%d.%d.%d", v->major, v->minor, v->patch);
}

struct lb_shared_library lb_onednn_library = {
    .name = "oneDNN",
    .file = LB_ONEDNN_FILE,
    .built = LB_VERSION_TEXT(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH),
    .names = names,
    .functions = &lb_dnnl,
    .count = sizeof(names) / sizeof(names[0]),
    .print_version = print_version,
};
