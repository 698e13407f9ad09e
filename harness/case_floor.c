/* The floor of a case on the device at hand. */
#include "case_floor.h"

#include "ceilings.h"
#include "device.h"
#include "floor.h"

void lb_case_floor(struct lb_row *row)
{
    struct lb_machine machine;
    struct lb_ceilings ceilings;
    struct lb_floor floor;
    const struct lb_problem *problem = &row->c.problem;
    const struct lb_device_info *device = lb_device_known(NULL);
    if (!device)
        return;
    bool measured = lb_ceilings_load(device->uuid, &ceilings);
    if (lb_machine_of(device, &machine, NULL) == LB_OK) {
        if (measured)
            lb_machine_measured(&machine, device, &ceilings);
        lb_floor_of(&machine, device, problem, &floor);
        row->floor_ns = floor.total_ns;
        row->chain_steps = floor.steps;
        row->chain_ns = floor.steps * floor.step_ns;
    } else if (measured) {
        row->floor_ns = lb_ceilings_floor_ns(&ceilings, problem);
    }
}
