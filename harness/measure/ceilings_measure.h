/* Measures the ceilings of a device. */
#ifndef LB_CEILINGS_MEASURE_H
#define LB_CEILINGS_MEASURE_H

#include "device/ceilings.h"

/* Hears of each figure, or group of figures, once it is measured. */
struct lb_ceilings_observer {
    void *user;
    /* ceilings: all that is known by now. failed: why this figure is not; "" when it is. */
    void (*figure)(void *user, const struct lb_ceilings *ceilings, const char *figure,
                   const char *failed);
};

/* Measures on the device that is open. Takes less than 30 s, on slow devices too, and up to 2 GiB
 * of device memory. A figure that can't be measured stays NaN and costs no other one: the device
 * may lack the feature, such as clusters, or have no room for it, such as a block on each SM while
 * others use it. observer: NULL for none. LB_ABSENT: no device is open, or the program was built
 * without CUDA. LB_OOM and LB_FAILED: nothing could be measured, or the device was lost; *ceilings
 * then holds what was measured before. */
enum lb_status lb_ceilings_measure(struct lb_ceilings *ceilings,
                                   const struct lb_ceilings_observer *observer,
                                   struct lb_error *err);

#endif
