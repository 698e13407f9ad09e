/* Questions about the machine. The program itself never opens the GPU: a worker looks for it. */
#ifndef LB_DEVICE_QUERY_H
#define LB_DEVICE_QUERY_H

#include "run/worker.h"

/* True when the implementation of that name (NULL: any) that may run here needs a GPU. */
bool lb_gpu_wanted(const struct lb_session *session, const char *name);

/* Finds the CPU and the GPU for which the program plans and runs from now on: those that it has,
 * but for the one that --device-model names. gpu: a worker looks for the GPU, which session->gpu
 * then describes. LB_OK also without a GPU. LB_INVALID, LB_IO: there is no such model, or its file
 * is wrong. */
enum lb_status lb_machine_find(struct lb_session *session, bool gpu, struct lb_error *err);

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
