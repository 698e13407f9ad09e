/* cpu_blas's kernels, float, for AVX-512: 24 of 32 registers hold sums. */
#define KERNELS      lb_cpu_kernels_avx512_f32
#define NAME         "AVX-512"
#define VECTOR_BYTES 64
#define ROWS         6
#define HOLD(vector) __asm__("" : "+v"(vector))
#include "cpu_kernels_f32.inc"
