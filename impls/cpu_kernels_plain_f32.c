/* cpu_blas's kernels, float, for what the compiler targets by default, 16-byte vectors. */
#define KERNELS      lb_cpu_kernels_plain_f32
#define NAME         "16-byte vectors"
#define VECTOR_BYTES 16
#define ROWS         3
#define HOLD(vector) (void)0
#include "cpu_kernels_f32.inc"
