/* The GPU in records: what a run's header says about it. */
#ifndef LB_DEVICE_RECORD_H
#define LB_DEVICE_RECORD_H

#include <jansson.h>

#include "device/device.h"

/* Describes the device in a new object with the keys name, uuid, pci, ordinal, visible (how
 * many devices the process sees), compute ("9.0"), sm_count, memory_bytes, l2_bytes, shared_bytes,
 * cuda_driver, cuda_runtime ("13.0"), driver and clock_max_mhz (null without NVML). NULL when
 * memory runs out. */
json_t *lb_device_to_json(const struct lb_device_info *info);

/* Reads such an object; numbers whose key is missing become 0. */
void lb_device_from_json(const json_t *object, struct lb_device_info *info);

/* One line for people: "NVIDIA H100 80GB HBM3, 132 SMs, 80 GiB". */
void lb_device_line(const struct lb_device_info *info, char *line, size_t size);

#endif
