/* The functions of OpenBLAS, found when the library is loaded. */
#include "impls/openblas/library.h"

#include <stdio.h>

struct lb_blas lb_blas;

static const char *const names[] = {LB_BLAS_FUNCTIONS(LB_FUNCTION_NAME)};

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ... SkylakeX MAX_THREADS=64" */
static void print_version(char *text, size_t size)
{
    snprintf(text, size, "%s", lb_blas.openblas_get_config());
}

struct lb_shared_library lb_openblas_library = {
    .name = "OpenBLAS",
    .file = LB_OPENBLAS_FILE,
    .built = LB_OPENBLAS_VERSION,
    .names = names,
    .functions = &lb_blas,
    .count = sizeof(names) / sizeof(names[0]),
    .print_version = print_version,
};
