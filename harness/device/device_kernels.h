/* The harness's own kernels. stream is a cudaStream_t. All functions only enqueue; they return
 * LB_FAILED when the launch is refused. */
#ifndef LB_DEVICE_KERNELS_H
#define LB_DEVICE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds a hash of memory to *sum. memory [bytes], aligned to 8, and sum are on the device. */
enum lb_status lb_device_hash_add(const void *memory, size_t bytes, uint64_t *sum, void *stream,
                                  struct lb_error *err);

/* Adds to *sum the number of the f16 values of memory [count], aligned to 8, that are infinite or
 * NaN. memory and sum are on the device. */
enum lb_status lb_device_overflow_add(const void *memory, size_t count, uint64_t *sum, void *stream,
                                      struct lb_error *err);

/* Returns the cudaError_t with which the runtime looks up the code of a kernel for the device. */
int lb_device_find_code(void);

/* Does a fixed amount of arithmetic: about 40 us at 2 GHz. out
 * [lb_device_fixed_bytes(multiprocessors)] is on the device. */
size_t lb_device_fixed_bytes(int multiprocessors);
enum lb_status lb_device_fixed_work(float *out, int multiprocessors, void *stream,
                                    struct lb_error *err);

/* Enqueues a kernel that waits until the host has written ticket, or a later one, to flags[0].
 * After LB_HOLD_NS it gives up and writes ticket to flags[1]. flags [2] is pinned host memory. */
enum lb_status lb_device_hold(volatile unsigned *flags, unsigned ticket, void *stream,
                              struct lb_error *err);

/* Reads the clocks of multiprocessors into readings [LB_CLOCK_SLOTS] on the device, each at its
 * hardware's number. A multiprocessor that runs none of the blocks is left out. */
enum { LB_CLOCK_SLOTS = 1024 };
struct lb_clock_reading;
enum lb_status lb_device_read_clocks(struct lb_clock_reading *readings, int multiprocessors,
                                     void *stream, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
