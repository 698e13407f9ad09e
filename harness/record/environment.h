/* The environment of a run: machine, system, build. It is recorded in every run's header. */
#ifndef LB_ENVIRONMENT_H
#define LB_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>

#include "device/device.h"

/* Describes this environment in a new object with the keys host, cpu, cores, threads, simd,
 * governor, cache_bytes, memory_bytes, system, version, commit, dirty, compiler, flags, build_type,
 * libraries {name: version}. A value that the system does not provide is null. With a GPU the
 * caller adds the keys gpu and ceilings. libraries is borrowed. */
json_t *lb_environment(json_t *libraries);

/* One line for people: "NVIDIA H100 80GB HBM3; AMD EPYC, 2 threads, 23.4 GiB, Linux 6.1 x86_64". */
void lb_environment_line(const json_t *environment, char *line, size_t size);

/* Lists in what [size] the keys in which two environments differ and that affect times, such as
 * "cpu, threads"; false when there are none. */
bool lb_environment_differs(const json_t *a, const json_t *b, char *what, size_t size);

/* The keys by which environments are told apart in one record: host, CPU, GPU (by its uuid), build
 * and libraries. What may be measured anew, such as the ceilings, is not among them. A new object.
 */
json_t *lb_environment_identity(const json_t *environment);

/* The keys that results must share to be taken together: the device, the build and the libraries,
 * but not the host and the GPU's uuid. A new object whose key "device" is lb_environment_device's
 * text. */
json_t *lb_environment_kind(const json_t *environment);

/* The name of the device: the GPU's, or the CPU's with its number of threads. */
void lb_environment_device(const json_t *environment, char *name, size_t size);

/* The name of the node: the host's, and with a GPU the start of its uuid, because a host may have
 * several. */
void lb_environment_node(const json_t *environment, char *name, size_t size);

/* Lists in what [size] the libraries that both environments have in different versions, such as
 * "OpenBLAS 0.3.21 to 0.3.26"; false when there are none. */
bool lb_libraries_differ(const json_t *a, const json_t *b, char *what, size_t size);

/* Describes the GPU in a new object, an environment's gpu, with the keys name, uuid, pci, ordinal,
 * visible (how many devices the process sees), compute ("9.0"), sm_count, memory_bytes, l2_bytes,
 * shared_bytes, cuda_driver, cuda_runtime ("13.0"), driver and clock_max_mhz (null without NVML).
 */
json_t *lb_device_to_json(const struct lb_device_info *info);

/* Reads such an object; numbers whose key is missing become 0. */
void lb_device_from_json(const json_t *object, struct lb_device_info *info);

const char *lb_version(void); /* "0.1.0" */
const char *lb_commit(void);  /* twelve digits, followed by "+changes" when dirty */

#endif
