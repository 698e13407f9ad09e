/* What the program asks about the GPU, which it never opens itself: a worker process looks and
 * measures for it. And about the CPU that --device-model names. */
#ifndef LB_DEVICE_QUERY_H
#define LB_DEVICE_QUERY_H

#include "run/session.h"

/* Takes the CPU that --device-model names for all that follows. LB_OK also where it names none.
 * LB_INVALID, LB_IO: its file is wrong. */
enum lb_status lb_cpu_find(const struct lb_session *session, struct lb_error *err);

/* Whether a device must be looked for: --device-model named a GPU, or the built-in implementation
 * of that name (NULL: any of them) needs one. */
bool lb_gpu_wanted(const struct lb_session *session, const char *name);

/* Finds out which device everything that follows is for: the one that --device-model names, else
 * the one that a worker sees, which session->gpu then describes. LB_OK also without a device.
 * LB_INVALID, LB_IO: there is no such model, or its file is wrong. */
enum lb_status lb_gpu_find(struct lb_session *session, struct lb_error *err);

/* Adds the device and its measured ceilings, where they are known, to an environment record. Warns
 * on stderr when a library has another version than the program was built against. */
void lb_gpu_annotate(const struct lb_session *session, json_t *environment);

/* Adds the device of that record, and its ceilings, to an environment record. */
void lb_gpu_describe(json_t *gpu, json_t *environment);

/* --ceilings: measures the ceilings of the CPUs, and of the device where there is one, prints them
 * and keeps them for later runs. */
enum lb_status lb_ceilings_print(struct lb_session *session, struct lb_error *err);

#endif
