/* A hash of device memory, computed there, so that only eight bytes come to the host. */
#ifndef LB_DEVICE_HASH_H
#define LB_DEVICE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds a hash of memory to *sum, in stream order. memory [bytes], aligned to 8, and sum are on the
 * device; stream is a cudaStream_t. Where one byte of memory changes, the hash does. Not for
 * adversaries. LB_FAILED when the launch is refused. */
enum lb_status lb_device_hash_add(const void *memory, size_t bytes, uint64_t *sum, void *stream,
                                  struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
