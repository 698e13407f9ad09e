/* The highest rate of flops that the machine of this process can reach: what no honest time
 * exceeds. */
#ifndef LB_PEAK_RATE_H
#define LB_PEAK_RATE_H

#include "api/problem.h"

/* An upper bound of the flops per second of one CPU in the problem's dtype and math: the best of
 * several bursts of independent vector multiply-adds on the calling thread, with what matrix units
 * could add for 16-bit operands, and a margin of 30 %. Takes about 3 ms at the first call per type;
 * later calls return the best so far. again: measures anew, on every CPU of the case
 * (lb_visit_cpus). NaN on CPUs other than x86-64. */
double lb_cpu_peak_flops_s(const struct lb_problem *problem, bool again);

/* The same for the device of this process and all its multiprocessors, from published figures, the
 * highest clock that the driver allows, and measured ceilings where those are better. NaN where the
 * device is not known. */
double lb_gpu_peak_flops_s(const struct lb_problem *problem);

#endif
