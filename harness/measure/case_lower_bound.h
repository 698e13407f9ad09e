/* What no case can be faster than: the lower bound of its time on this process's device, written
 * into the case's row, and the highest rate that the machine can reach. */
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
 * that the model does not know it sets floor_ns alone, from measured ceilings, which ignores that
 * steps wait for each other and counts traffic only where the caches cannot keep it. Without
 * either, the fields stay NaN. lengths [B] are those of ragged rows; NULL where they are not known,
 * which stands for rows as short as they can be. */
void lb_case_lower_bound(struct lb_row *row, const int32_t *lengths);

/* Sets floor_ns of the row of a case on the host, by host/cpu_ceilings.h. Without measured
 * ceilings of this machine's CPUs it stays NaN. lengths as above. */
void lb_case_cpu_lower_bound(struct lb_row *row, const int32_t *lengths);

/* An upper bound of the flops per second of one CPU in the problem's dtype and math: the best of
 * several bursts of independent vector multiply-adds on the calling thread, with what matrix units
 * could add for 16-bit operands, and a margin of 30 %. Takes about 3 ms at the first call per type;
 * later calls return the best so far. again: measures anew, on every CPU of the case
 * (lb_visit_cpus). NaN on CPUs other than x86-64. */
double lb_cpu_peak_flops_s(const struct lb_problem *problem, bool again);

/* The same for the device of this process and all its multiprocessors, from published figures, the
 * highest clock that the driver allows, and measured ceilings where those are better. NaN where the
 * device is not known. */
double lb_gpu_peak_flops_s(const struct lb_problem *problem);

#endif
