/* The floor of a case on the device at hand, into its row. */
#ifndef LB_CASE_FLOOR_H
#define LB_CASE_FLOOR_H

#include "record.h"

/* floor_ns, chain_steps and chain_ns of row's problem on this process's device: by the model of
 * floor.h with what was measured of the device (ceilings.h). On a device that the model does not
 * know, floor_ns alone, from the measured rates and without the order of steps. Untouched, NaN,
 * where neither is known. */
void lb_case_floor(struct lb_row *row);

#endif
