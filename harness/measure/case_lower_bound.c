/* The lower bound of a case on this process's device. */
#include "measure/case_lower_bound.h"

#include <math.h>

#include "device/ceilings.h"
#include "device/cpu_ceilings.h"
#include "device/device.h"
#include "device/nvml.h"

enum lb_status lb_case_machine(const struct lb_device_info *device, struct lb_machine *machine,
                               struct lb_error *err)
{
    struct lb_gpu_state state;
    struct lb_ceilings ceilings;
    enum lb_status st = lb_machine_of(device, machine, err);
    if (st != LB_OK || !device->uuid[0])
        return st;
    if (lb_nvml_read(device->uuid, &state) && state.sm_max_mhz > 0)
        machine->clock_max_hz = state.sm_max_mhz * 1e6;
    if (lb_ceilings_load(device->uuid, &ceilings))
        lb_machine_measured(machine, device, &ceilings);
    return LB_OK;
}

/* The lower bound by measured rates alone, in ns; NaN for ragged rows, which it does not know. */
static double measured_lower_bound(const struct lb_ceilings *ceilings,
                                   const struct lb_device_info *device, const struct lb_case *c)
{
    const struct lb_problem *p = &c->problem;
    if (p->ragged)
        return (double)NAN;
    if (c->cache == LB_COLD || lb_problem_bytes(p) > device->l2_bytes)
        return lb_ceilings_lower_bound_ns(ceilings, p);
    return lb_problem_flops(p) / ceilings->gemm_flops_s[p->dtype][p->math] * 1e9;
}

void lb_case_lower_bound(struct lb_row *row, const int32_t *lengths)
{
    struct lb_machine machine;
    struct lb_ceilings ceilings;
    struct lb_lower_bound bound;
    const struct lb_problem *problem = &row->c.problem;
    struct lb_lower_bound_run run = {.cold = row->c.cache == LB_COLD};
    const struct lb_device_info *device = lb_device_known(NULL);
    if (!device)
        return;
    for (int64_t b = 0; lengths && b < problem->batch; b++)
        run.row_steps += lengths[b];
    if (lb_case_machine(device, &machine, NULL) == LB_OK) {
        lb_lower_bound_of(&machine, device, problem, &run, &bound);
        row->floor_ns = bound.total_ns;
        row->chain_steps = bound.steps;
        row->chain_ns = bound.steps * bound.step_ns;
    } else if (lb_ceilings_load(device->uuid, &ceilings)) {
        row->floor_ns = measured_lower_bound(&ceilings, device, &row->c);
    }
}

void lb_case_cpu_lower_bound(struct lb_row *row, const int32_t *lengths)
{
    struct lb_cpu_ceilings ceilings;
    struct lb_cpu_lower_bound bound;
    int64_t row_steps = 0;
    for (int64_t b = 0; lengths && b < row->c.problem.batch; b++)
        row_steps += lengths[b];
    if (!lb_cpu_ceilings_load(&ceilings))
        return;
    lb_cpu_lower_bound_of(&ceilings, &row->c.problem, row->c.threads, row->c.cache == LB_COLD,
                          row_steps, &bound);
    row->floor_ns = bound.total_ns;
}
