/* The functions of OpenBLAS that this implementation calls: lb_blas has them once
 * lb_openblas_library is loaded. */
#ifndef LB_OPENBLAS_LIBRARY_H
#define LB_OPENBLAS_LIBRARY_H

#include <cblas.h>

#include "host/shared_library.h"

#define LB_BLAS_FUNCTIONS(X)    \
    X(cblas_daxpy)              \
    X(cblas_dgemm)              \
    X(cblas_dgemv)              \
    X(cblas_saxpy)              \
    X(cblas_sgemm)              \
    X(cblas_sgemv)              \
    X(openblas_get_config)      \
    X(openblas_get_corename)    \
    X(openblas_get_num_threads) \
    X(openblas_set_num_threads)

struct lb_blas {
    LB_BLAS_FUNCTIONS(LB_FUNCTION_POINTER)
};
extern struct lb_blas lb_blas;
extern struct lb_shared_library lb_openblas_library;

#endif
