/* The functions of cuBLAS that this module calls. Their pointers are in lb_cublas once
 * lb_cublas_library is loaded. */
#ifndef LB_CUBLAS_H
#define LB_CUBLAS_H

#include <cublas_v2.h>

#include "host/shared_library.h"

#define LB_CUBLAS_FUNCTIONS(X) \
    X(cublasCreate_v2)         \
    X(cublasDestroy_v2)        \
    X(cublasGemmEx_64)         \
    X(cublasGetProperty)       \
    X(cublasGetStatusString)   \
    X(cublasSetMathMode)       \
    X(cublasSetStream_v2)      \
    X(cublasSetWorkspace_v2)

struct lb_cublas {
    LB_CUBLAS_FUNCTIONS(LB_FUNCTION_POINTER)
};
extern struct lb_cublas lb_cublas;
extern struct lb_shared_library lb_cublas_library;

#endif
