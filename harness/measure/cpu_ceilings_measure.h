/* Measures the ceilings (highest rates) of the CPUs that this process may use. */
#ifndef LB_CPU_CEILINGS_MEASURE_H
#define LB_CPU_CEILINGS_MEASURE_H

#include "machine/ceilings.h"

/* Measures one core and all cores together, each figure as the best of many short rounds, so that
 * other programs on the machine disturb it little, in about that many seconds. Threads are pinned.
 * LB_OOM; LB_FAILED when a thread does not start. */
enum lb_status lb_cpu_ceilings_measure(double seconds, struct lb_ceilings *ceilings,
                                       struct lb_error *err);

/* Flops per second of multiply-adds in registers, of one short burst on the calling thread in the
 * fastest unit for the dtype. */
double lb_cpu_burst_flops_s(enum lb_dtype dtype);

#endif
