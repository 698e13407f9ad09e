/* The floating-point environment in which the harness computes expected results. */
#ifndef LB_FP_ENVIRONMENT_H
#define LB_FP_ENVIRONMENT_H

#include <fenv.h>

/* What lb_fp_enter found: rounding mode, exception masks, flush-to-zero. */
struct lb_fp_environment {
    fenv_t saved;
};

/* Saves the calling thread's environment and sets that of a fresh process: rounding to nearest, and
 * subnormal numbers are kept. An implementation in the same process may have set another one, which
 * would change expected results and widen its own tolerances. */
void lb_fp_enter(struct lb_fp_environment *environment);

/* Brings back what lb_fp_enter found. */
void lb_fp_leave(const struct lb_fp_environment *environment);

#endif
