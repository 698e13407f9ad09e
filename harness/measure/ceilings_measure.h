/* Measures the ceilings of a device: its highest rates and lowest latencies. */
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
 * to 2 GiB of device memory. A figure that can't be measured stays NaN, and the other figures are
 * still measured: the device may lack the feature, such as clusters, or other programs may use it,
 * so that there is no room for a block on each SM. observer: NULL for none. LB_ABSENT: no device is
 * open, or the program was built without CUDA. LB_OOM and LB_FAILED: nothing could be measured, or
 * the device was lost; *ceilings then holds what was measured before. */
enum lb_status lb_ceilings_measure(double seconds, struct lb_ceilings *ceilings,
                                   const struct lb_ceilings_observer *observer,
                                   struct lb_error *err);

#endif
