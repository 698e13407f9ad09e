/* cpu_blas's kernels for AVX2 and FMA: 12 of 16 registers hold sums. */
#define WIDTH        avx2
#define WIDTH_NAME   "AVX2"
#define VECTOR_BYTES 32
#define ROWS         3
#define HOLD(vector) __asm__("" : "+x"(vector))
#include "cpu_kernels_width.inc"
