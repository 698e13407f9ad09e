/* The floating-point environment in which the harness computes expected results. */
#include "host/fp_environment.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

void lb_fp_enter(fenv_t *saved)
{
    fegetenv(saved);
    fesetenv(FE_DFL_ENV);
#ifdef __SSE__
    /* Not every C library clears the bits for flush-to-zero and for subnormal operands. */
    enum { ALL_MASKED_TO_NEAREST = 0x1f80 };
    _mm_setcsr(ALL_MASKED_TO_NEAREST);
#endif
}
