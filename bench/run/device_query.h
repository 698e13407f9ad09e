/* The program's side of the GPU: it never touches one itself, a worker looks and measures for it.
 */
#ifndef LB_DEVICE_QUERY_H
#define LB_DEVICE_QUERY_H

#include "run/session.h"

/* Whether a device is to be found: a model was named, or a built-in implementation of that name
 * (NULL: any) needs one. */
bool lb_gpu_wanted(const struct lb_session *session, const char *name);

/* Finds out which device there is, for everything that follows: the model that was named, else what
 * a worker sees. session->gpu then describes a real one. That there is none is no failure.
 * LB_INVALID: no such model. */
enum lb_status lb_gpu_find(struct lb_session *session, struct lb_error *err);

/* Adds the device and what is known of its ceilings to an environment record, and says on stderr
 * where a library is not the version that was built against. */
void lb_gpu_annotate(const struct lb_session *session, json_t *environment);

/* --ceilings: measures, keeps and prints. LB_ABSENT without a device. */
enum lb_status lb_ceilings_print(struct lb_session *session, struct lb_error *err);

#endif
