/* The floating-point environment in which the harness computes expected results. */
#ifndef LB_FP_ENVIRONMENT_H
#define LB_FP_ENVIRONMENT_H

#include <fenv.h>

/* Saves the calling thread's environment, which fesetenv brings back, and sets that of a fresh
 * process, because an implementation may have set another one, which would change expected results
 * and widen its own tolerances. */
void lb_fp_enter(fenv_t *saved);

#endif
