/* Answers questions about the GPU, which the program itself never opens: a worker process looks and
 * measures for it. Also answers for the CPU that --device-model names. */
#ifndef LB_DEVICE_QUERY_H
#define LB_DEVICE_QUERY_H

#include "run/session.h"

/* From now on the program plans for the CPU that --device-model names. LB_OK also when it names no
 * CPU. LB_INVALID, LB_IO: the file that it names is wrong. */
enum lb_status lb_cpu_find(const struct lb_session *session, struct lb_error *err);

/* True when a device must be looked for: --device-model names a GPU, or the built-in implementation
 * of that name (NULL: any of them) needs one. */
bool lb_gpu_wanted(const struct lb_session *session, const char *name);

/* Finds the device for which the program plans and runs from now on: the one that --device-model
 * names, else the one that a worker sees, which session->gpu then describes. LB_OK also without a
 * device. LB_INVALID, LB_IO: there is no such model, or its file is wrong. */
enum lb_status lb_gpu_find(struct lb_session *session, struct lb_error *err);

/* Adds the device to an environment record, and under "tuned" which file of tuned choices decides
 * what runs on it: file, changed_s (since 1970) and hash. Warns on stderr when a library has
 * another version than the program was built against. */
void lb_gpu_annotate(const struct lb_session *session, json_t *environment);

/* Measures what the CPUs, and the GPU where there is one, reach at best, before a sweep of these
 * cases: in at most 3 seconds each, or 1 with --quick. Keeps the figures under "ceilings" in the
 * environment record, and has workers compute the lower bounds of rows with them. Warns on stderr
 * of what cannot be measured. */
void lb_ceilings_find(const struct lb_session *session, const struct lb_case *cases, size_t count,
                      json_t *environment);

/* --ceilings: measures the same for longer, and prints it. */
enum lb_status lb_ceilings_print(struct lb_session *session, struct lb_error *err);

#endif
