/* Measures the ceilings of a device, and of the CPUs that this process may use: the highest rates
 * and lowest latencies. */
#ifndef LB_CEILINGS_MEASURE_H
#define LB_CEILINGS_MEASURE_H

#include "machine/ceilings.h"

/* Is told of each figure, or group of figures, once it is measured. */
struct lb_ceilings_observer {
    void *user;
    /* ceilings: all figures that are known by now. failed: why this figure could not be measured;
     * "" when it was. */
    void (*figure)(void *user, const struct lb_ceilings *ceilings, const char *figure,
                   const char *failed);
};

/* Measures on the device that is open. Takes about that many seconds, on slow devices too, and up
 * to 2 GiB of device memory. A figure that can't be measured stays NaN, and the others are still
 * measured: the device may lack the feature, such as clusters, or other programs may leave no room
 * for a block on each SM. LB_ABSENT: no device is open, or the program was built without CUDA.
 * LB_OOM and LB_FAILED: nothing could be measured, or the device was lost; *ceilings then holds
 * what was measured before. */
enum lb_status lb_ceilings_measure(double seconds, struct lb_ceilings *ceilings,
                                   const struct lb_ceilings_observer *observer,
                                   struct lb_error *err);

/* Measures one core and all cores together, each figure as the best of many short rounds, which
 * other programs disturb little, in about that many seconds. Threads are pinned. bytes: the most
 * that a call moves; only where these do not fit the L3 is memory measured, which takes twice as
 * many bytes as the L3 has. LB_OOM; LB_FAILED when a thread does not start. */
enum lb_status lb_cpu_ceilings_measure(double seconds, double bytes, struct lb_ceilings *ceilings,
                                       struct lb_error *err);

/* Flops per second of multiply-adds in registers, of one short burst on the calling thread in the
 * fastest unit for the dtype. */
double lb_cpu_burst_flops_s(enum lb_dtype dtype);

#endif
