/* cpu_blas's kernels, double, for AVX2 and FMA: 12 of 16 registers hold sums. */
#define KERNELS      lb_cpu_kernels_avx2_f64
#define NAME         "AVX2"
#define VECTOR_BYTES 32
#define ROWS         3
#define HOLD(vector) __asm__("" : "+x"(vector))
#include "cpu_kernels_f64.inc"
