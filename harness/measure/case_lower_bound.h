/* The floor of a case on the device at hand, into its row. */
#ifndef LB_CASE_LOWER_BOUND_H
#define LB_CASE_LOWER_BOUND_H

#include "device/lower_bound.h"
#include "record/record.h"

/* The model's figures of a device (floor.h): published ones, the highest clock that its driver
 * allows, and what it was measured to do better (ceilings.h). LB_UNSUPPORTED as lb_machine_of. */
enum lb_status lb_case_machine(const struct lb_device_info *device, struct lb_machine *machine,
                               struct lb_error *err);

/* floor_ns, chain_steps and chain_ns of row's case on this process's device: by the model with
 * those figures. On a device that the model does not know, floor_ns alone, from the measured rates
 * and without the order of steps; traffic counts there only where the caches can't keep it.
 * Untouched, NaN, where neither is known. lengths [B] of ragged rows, or NULL where they are not
 * known: the fewest steps that they can have then. */
void lb_case_lower_bound(struct lb_row *row, const int32_t *lengths);

#endif
