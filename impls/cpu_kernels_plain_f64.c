/* cpu_blas's kernels, double, for what the compiler targets by default, 16-byte vectors. */
#define KERNELS      lb_cpu_kernels_plain_f64
#define NAME         "16-byte vectors"
#define VECTOR_BYTES 16
#define ROWS         3
#define HOLD(vector) (void)0
#include "cpu_kernels_f64.inc"
