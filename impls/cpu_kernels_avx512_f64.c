/* cpu_blas's kernels, double, for AVX-512: 24 of 32 registers hold sums. */
#define KERNELS      lb_cpu_kernels_avx512_f64
#define NAME         "AVX-512"
#define VECTOR_BYTES 64
#define ROWS         6
#define HOLD(vector) __asm__("" : "+v"(vector))
#include "cpu_kernels_f64.inc"
