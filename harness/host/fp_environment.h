/* The floating-point environment in which the harness computes expected results. */
#ifndef LB_FP_ENVIRONMENT_H
#define LB_FP_ENVIRONMENT_H

#include <fenv.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

/* Saves the calling thread's environment, which fesetenv brings back, and sets that of a fresh
 * process, because an implementation may have set another one, which would change expected results
 * and widen its own tolerances. */
static inline void lb_fp_enter(fenv_t *saved)
{
    fegetenv(saved);
    fesetenv(FE_DFL_ENV);
#ifdef __SSE__
    /* Not every C library clears the bits for flush-to-zero and for subnormal operands. */
    enum { ALL_MASKED_TO_NEAREST = 0x1f80 };
    _mm_setcsr(ALL_MASKED_TO_NEAREST);
#endif
}
#endif
