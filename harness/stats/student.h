/* Student's t distribution, for comparisons whose units are whole runs. */
#ifndef LB_STUDENT_H
#define LB_STUDENT_H

#include <stddef.h>

/* The probability that |T| is at least |t|, for df >= 1 degrees of freedom.
 * Source: Abramowitz & Stegun, 26.7.3 and 26.7.4, which are exact. */
double lb_student_p(double t, size_t df);

/* The t above 0 for which lb_student_p is p, with 0 < p < 1. */
double lb_student_quantile(double p, size_t df);

#endif
