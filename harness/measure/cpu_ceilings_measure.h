/* Measures the ceilings (highest rates) of the CPUs that this process may use. */
#ifndef LB_CPU_CEILINGS_MEASURE_H
#define LB_CPU_CEILINGS_MEASURE_H

#include "host/cpu_ceilings.h"

/* Measures with 1, 2, 4, ... and max_threads threads (0: one for each core that this process may
 * use). Each figure is the best of `rounds` rounds of a few milliseconds, so that other programs on
 * the machine disturb it little. 200 rounds take some seconds per number of threads. Threads are
 * pinned to CPUs. LB_OOM; LB_UNSUPPORTED when the process may use fewer CPUs than max_threads;
 * LB_FAILED when a thread does not start. */
enum lb_status lb_cpu_ceilings_measure(int max_threads, int rounds,
                                       struct lb_cpu_ceilings *ceilings, struct lb_error *err);

#endif
