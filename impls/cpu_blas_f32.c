/* cpu_blas in float, for f32. */
#include <math.h>

#define real     float
#define GEMM     cblas_sgemm
#define EXP(v)   expf(v)
#define TANH(v)  tanhf(v)
#define ROUTINES lb_cpu_blas_f32
#include "cpu_blas_body.inc"
