/* --devices: a sweep on several GPUs of this machine. One process of this program per GPU sweeps a
 * shard of the cases on CPUs of its own. The runs lie in DIR/devices, in folders called by the
 * number of their GPU, and are merged into DIR/run.jsonl. */
#ifndef LB_DEVICES_H
#define LB_DEVICES_H

#include "run/session.h"

/* --sweep: sweeps on the GPUs of options->devices. --resume: continues every unfinished run in
 * options->subject, and merges all again. *exit_code: the program's, 1 also when one of the
 * processes failed. LB_INVALID: one of the GPUs can't be used. Other errors are those of lb_sweep.
 */
enum lb_status lb_devices_sweep(struct lb_session *session, int *exit_code, struct lb_error *err);

/* Whether the folder holds such a sweep. */
bool lb_is_devices_run(const char *folder);

#endif
