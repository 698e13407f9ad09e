/* cpu_blas's kernels for AVX-512: 24 of 32 registers hold sums. */
#define WIDTH        avx512
#define WIDTH_NAME   "AVX-512"
#define VECTOR_BYTES 64
#define ROWS         6
#define HOLD(vector) __asm__("" : "+v"(vector))
#include "cpu_kernels_width.inc"
