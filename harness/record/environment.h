/* The environment of a run: machine, system, build. It is recorded in every run's header. */
#ifndef LB_ENVIRONMENT_H
#define LB_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>

#include "device/device.h"

/* Describes this environment in a new object, in which a value that the system does not provide is
 * null. libraries {name: version} is borrowed. The caller adds the keys gpu and ceilings. */
json_t *lb_environment(json_t *libraries);

/* One line for people: "NVIDIA H100 80GB HBM3; AMD EPYC, 2 threads, 23.4 GiB, Linux 6.1 x86_64". */
void lb_environment_line(const json_t *environment, char *line, size_t size);

/* Lists in what [size] the keys in which two environments differ and that affect times, such as
 * "cpu, threads"; false when there are none. */
bool lb_environment_differs(const json_t *a, const json_t *b, char *what, size_t size);

/* A new object with the keys by which environments are told apart in one record: host, CPU, GPU (by
 * its uuid), build and libraries. What may be measured anew, such as the ceilings, is not there. */
json_t *lb_environment_identity(const json_t *environment);

/* A new object with what results must share to be taken together: build, libraries, and as "device"
 * lb_environment_device's text. */
json_t *lb_environment_kind(const json_t *environment);

/* The name of the device: the GPU's, or the CPU's with its number of threads. */
void lb_environment_device(const json_t *environment, char *name, size_t size);

/* The name of the node: the host's, and with a GPU the start of its uuid, because a host may have
 * several. */
void lb_environment_node(const json_t *environment, char *name, size_t size);

/* Lists in what [size] the libraries that both environments have in different versions, such as
 * "OpenBLAS 0.3.21 to 0.3.26"; false when there are none. */
bool lb_libraries_differ(const json_t *a, const json_t *b, char *what, size_t size);

/* Describes the GPU in a new object, an environment's gpu, with the members of *info, versions as
 * "9.0", and what NVML says: driver and clock_max_mhz, which may be null. */
json_t *lb_device_to_json(const struct lb_device_info *info);

/* Reads such an object; numbers whose key is missing become 0. */
void lb_device_from_json(const json_t *object, struct lb_device_info *info);

const char *lb_version(void); /* "0.1.0" */
const char *lb_commit(void);  /* twelve digits, followed by "+changes" when dirty */

#endif
