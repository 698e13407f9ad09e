/* What no case can be faster than: a lower bound of times, and the highest rate. */
#include "measure/case_lower_bound.h"

#include <math.h>
#include <string.h>

#include "device/nvml.h"
#include "host/cpu_affinity.h"
#include "machine/ceilings.h"
#include "measure/ceilings_measure.h"

void lb_case_machine(enum lb_memory memory, const struct lb_device_info *device,
                     struct lb_machine *machine)
{
    struct lb_gpu_state state;
    struct lb_cpu_topology topology;
    bool gpu = memory == LB_DEVICE;
    const struct lb_ceilings *measured = lb_ceilings_assumed(gpu);
    if (gpu) {
        (void)lb_machine_of(device, machine, NULL);
        if (device->uuid[0] && lb_nvml_read(device->uuid, &state) && state.sm_max_mhz > 0)
            machine->clock_max_hz = state.sm_max_mhz * 1e6;
    } else if (lb_cpu_assumed()) {
        *machine = *lb_cpu_assumed();
    } else {
        lb_cpu_topology_here(&topology);
        lb_machine_here(&topology, false, machine);
    }
    if (measured && (gpu ? strcmp(measured->of, device->uuid) == 0 : !lb_cpu_assumed()))
        lb_machine_measured(machine, measured);
}

/* What a call on the device takes at least as was measured there, 0 where it was not: a stream
 * waits for each call, which a launch of its own starts, and any other call is at least one kernel.
 */
static double least_call_ns(const struct lb_device_info *device, enum lb_timing timing)
{
    const struct lb_ceilings *measured = lb_ceilings_assumed(true);
    if (!measured || strcmp(measured->of, device->uuid) != 0)
        return 0;
    return fmax(0, measured->all[timing == LB_STREAMING ? LB_LAUNCH_NS : LB_GRAPH_NODE_NS]);
}

void lb_case_lower_bound(enum lb_memory memory, struct lb_row *row, const int32_t *lengths)
{
    struct lb_machine machine;
    struct lb_lower_bound bound;
    const struct lb_problem *problem = &row->c.problem;
    struct lb_lower_bound_run run = {.cold = row->c.cache == LB_COLD,
                                     .threads = memory == LB_HOST ? row->c.threads : 0};
    const struct lb_device_info *device = lb_device_known(NULL);
    if (memory == LB_DEVICE && !device)
        return;
    for (int64_t b = 0; lengths && b < problem->batch; b++)
        run.row_steps += lengths[b];
    lb_case_machine(memory, device, &machine);
    lb_lower_bound_of(&machine, problem, &run, &bound);
    if (isnan(bound.total_ns))
        return;
    row->floor_ns = bound.total_ns;
    if (memory == LB_DEVICE)
        row->floor_ns = fmax(row->floor_ns, least_call_ns(device, row->c.timing));
    row->chain_steps = bound.steps;
    row->chain_ns = bound.steps * bound.step_ns;
}

static const double margin = 1.3; /* clocks vary, and a busy machine shows less than it can do */

/* The best rate seen, of f32 and of f64. */
static double best[2];

/* lb_cpu_visit: measures on the current CPU. *user: whether in double. */
static void measure_here(void *user, bool last)
{
    enum { BURSTS = 20 };
    const bool in_double = *(const bool *)user;
    (void)last;
    for (int i = 0; i < BURSTS; i++)
        best[in_double] = fmax(best[in_double], lb_cpu_burst_flops_s(in_double ? LB_F64 : LB_F32));
}

double lb_cpu_peak_flops_s(const struct lb_problem *problem, bool again)
{
#ifdef __x86_64__
    bool in_double = problem->dtype == LB_F64;
    bool halves = problem->dtype == LB_F16 || problem->dtype == LB_BF16 || problem->math != LB_IEEE;
    bool int8 = problem->dtype == LB_INT8;
    /* Matrix units do 16 times as many flops on 16-bit operands as in f32, vectors twice as many,
     * and both twice as many again on int8. Twice that is assumed, for CPUs to come. */
    double factor = (lb_cpu_has(LB_CPU_AMX, LB_BF16) ? 32 : 4) * (int8 ? 2 : 1);
    if (again)
        lb_visit_cpus(measure_here, &in_double);
    else if (best[in_double] == 0)
        measure_here(&in_double, true);
    return margin * best[in_double] * (halves || int8 ? factor : 1);
#else
    (void)problem, (void)again, (void)measure_here;
    return (double)NAN;
#endif
}

double lb_gpu_peak_flops_s(const struct lb_problem *problem)
{
    struct lb_machine machine;
    const struct lb_device_info *device = lb_device_known(NULL);
    if (!device)
        return (double)NAN;
    lb_case_machine(LB_DEVICE, device, &machine);
    double rate = lb_machine_flops_s(&machine, problem, machine.cores);
    return rate > 0 ? margin * rate : (double)NAN;
}
