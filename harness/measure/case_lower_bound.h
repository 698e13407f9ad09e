/* Two limits of a case: the lower bound of its time on this process's device, which is written into
 * the case's row, and the highest rate that the machine can reach. */
#ifndef LB_CASE_LOWER_BOUND_H
#define LB_CASE_LOWER_BOUND_H

#include "device/lower_bound.h"
#include "record/record.h"

/* The figures of a device for the model (device/lower_bound.h): published ones, the highest clock
 * that the driver allows, and measured ceilings (device/ceilings.h) where those are better.
 * LB_UNSUPPORTED as lb_machine_of. */
enum lb_status lb_case_machine(const struct lb_device_info *device, struct lb_machine *machine,
                               struct lb_error *err);

/* Sets floor_ns, chain_steps and chain_ns of the row, by the model with those figures. On a device
 * that the model does not know it sets only floor_ns, from measured ceilings; that bound ignores
 * that steps wait for each other and counts only traffic that the caches cannot keep. Where there
 * are no measured ceilings either, the fields stay NaN. lengths [B]: those of ragged rows; NULL
 * when they are unknown, and the shortest possible rows are assumed. */
void lb_case_lower_bound(struct lb_row *row, const int32_t *lengths);

/* Sets floor_ns of the row of a case on the host, by host/cpu_ceilings.h. Without measured
 * ceilings of this machine's CPUs it stays NaN. lengths as above. */
void lb_case_cpu_lower_bound(struct lb_row *row, const int32_t *lengths);

/* An upper bound of the flops per second of one CPU in the problem's dtype and math. It is the best
 * of several bursts of independent vector multiply-adds on the calling thread, times the factor
 * that 16-bit operands and matrix units could gain, plus a margin of 30 %. The first call per type
 * takes about 3 ms; later calls return the best so far. again: measures once more, on every CPU of
 * the case (lb_visit_cpus). NaN on CPUs other than x86-64. */
double lb_cpu_peak_flops_s(const struct lb_problem *problem, bool again);

/* The same for all multiprocessors of this process's device, from published figures, the highest
 * clock that the driver allows, and measured ceilings where those are better. NaN where the device
 * is not known. */
double lb_gpu_peak_flops_s(const struct lb_problem *problem);

#endif
