/* The functions of cuBLAS, found when the library is loaded. */
#include "device/cublas.h"

#include <stdio.h>

struct lb_cublas lb_cublas;

static void print_version(char *text, size_t size)
{
    int major = 0, minor = 0, patch = 0;
    text[0] = '\0';
    if (lb_cublas.cublasGetProperty(MAJOR_VERSION, &major) == CUBLAS_STATUS_SUCCESS &&
        lb_cublas.cublasGetProperty(MINOR_VERSION, &minor) == CUBLAS_STATUS_SUCCESS &&
        lb_cublas.cublasGetProperty(PATCH_LEVEL, &patch) == CUBLAS_STATUS_SUCCESS)
        snprintf(text, size, "%d.%d.%d", major, minor, patch);
}

struct lb_shared_library lb_cublas_library = {
    .name = "cuBLAS",
    .file = LB_CUBLAS_FILE,
    .built = LB_VERSION_TEXT(CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH),
    LB_FUNCTIONS_OF(LB_CUBLAS_FUNCTIONS, lb_cublas),
    .print_version = print_version,
};
