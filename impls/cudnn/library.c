/* The functions of cuDNN, found when the library is loaded. */
#include "impls/cudnn/library.h"

#include <stdio.h>

struct lb_cudnn lb_cudnn;

static const char *const names[] = {LB_CUDNN_FUNCTIONS(LB_FUNCTION_NAME)};

static void print_version(char *text, size_t size)
{
    size_t version = lb_cudnn.cudnnGetVersion();
    snprintf(text, size, "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}

struct lb_shared_library lb_cudnn_library = {
    .name = "cuDNN",
    .file = LB_CUDNN_FILE,
    .built = LB_VERSION_TEXT(CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL),
    .names = names,
    .functions = &lb_cudnn,
    .count = sizeof(names) / sizeof(names[0]),
    .print_version = print_version,
};
