/* --ab: two implementations, or two plug-in builds of one, measured in turn in one process. */
#ifndef LB_AB_H
#define LB_AB_H

#include "run/sweep.h"

/* Measures options->subject against options->run, each impl[:variant] or the path of a plug-in, on
 * the selected problems; keeps the runs in the folder's a/ and b/ and compares them as --compare
 * does. *exit_code is that of the comparison. */
enum lb_status lb_ab(struct lb_session *session, int *exit_code, struct lb_error *err);

#endif
