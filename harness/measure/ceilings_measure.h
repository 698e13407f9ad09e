/* Measures the ceilings of a device. */
#ifndef LB_CEILINGS_MEASURE_H
#define LB_CEILINGS_MEASURE_H

#include "device/ceilings.h"

/* Measures on the device that is open. Takes a few seconds, and up to 2 GiB of device memory.
 * Figures stay NaN when the device lacks the feature, such as clusters, or has no room for the
 * measurement, such as a block on each SM while others use it. LB_ABSENT: no device is open, or the
 * program was built without CUDA. LB_OOM and LB_FAILED as the device reports them; *ceilings then
 * holds what was measured before. */
enum lb_status lb_ceilings_measure(struct lb_ceilings *ceilings, struct lb_error *err);

#endif
