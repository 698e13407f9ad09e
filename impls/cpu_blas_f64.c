/* cpu_blas in double, for f64. */
#include <math.h>

#define real     double
#define GEMM     cblas_dgemm
#define EXP(v)   exp(v)
#define TANH(v)  tanh(v)
#define ROUTINES lb_cpu_blas_f64
#include "cpu_blas_body.inc"
