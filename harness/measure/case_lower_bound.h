/* Two limits of a case: the lower bound of its time, which is written into the case's row, and the
 * highest rate that the machine can reach. */
#ifndef LB_CASE_LOWER_BOUND_H
#define LB_CASE_LOWER_BOUND_H

#include "api/impl.h"
#include "machine/lower_bound.h"
#include "record/record.h"

/* The machine on which implementations of that memory run: the GPU (device: lb_device_known's) or
 * the CPUs of this machine or of --device-model, with published figures, the highest clock that the
 * driver allows, and what was measured (lb_ceilings_assumed). */
void lb_case_machine(enum lb_memory memory, const struct lb_device_info *device,
                     struct lb_machine *machine);

/* Sets floor_ns, chain_steps and chain_ns of the row, where the rate of its GEMMs is known. lengths
 * [B]: those of ragged rows; NULL: unknown, and the shortest possible rows are assumed. */
void lb_case_lower_bound(enum lb_memory memory, struct lb_row *row, const int32_t *lengths);

/* An upper bound of the flops per second of one CPU in the problem's dtype and math: the best of
 * several bursts (lb_cpu_burst_flops_s), times the factor that 16-bit operands and matrix units
 * could gain, plus a margin of 30 %. The first call per type takes about 3 ms; later calls return
 * the best so far. again: measures once more, on every CPU of the case (lb_visit_cpus). NaN on CPUs
 * other than x86-64. */
double lb_cpu_peak_flops_s(const struct lb_problem *problem, bool again);

/* The same for all multiprocessors of this process's device, from the figures of lb_case_machine.
 * NaN where the rate is not known. */
double lb_gpu_peak_flops_s(const struct lb_problem *problem);

#endif
