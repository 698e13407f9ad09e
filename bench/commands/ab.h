/* --ab: two implementations, or two builds of one plug-in, measured alternately in one process.
 * --against: two builds of this program, measured alternately in fresh processes. */
#ifndef LB_AB_H
#define LB_AB_H

#include "sweep/sweep.h"

/* Measures options->subject against options->run on the selected problems; each of the two is an
 * impl[:variant] or the path of a plug-in. Stores the runs in a/ and b/ of the output folder and
 * compares them as --compare does. *exit_code is that of the comparison. */
enum lb_status lb_ab(struct lb_session *session, int *exit_code, struct lb_error *err);

/* Measures the cases of the plan with the workers of options->against, the base, and with those of
 * this program, in pairs of fresh processes. Stores the runs in base/ and new/ of the output folder
 * and compares them likewise. LB_INVALID: the other program is no bench-lstm. */
enum lb_status lb_against(struct lb_session *session, struct lb_plan *plan, int *exit_code,
                          struct lb_error *err);

#endif
