/* --profile: one case in this process, for a profiler that is attached to it. */
#ifndef LB_PROFILE_H
#define LB_PROFILE_H

#include "cli/options.h"

/* Runs the case options->subject, which must name an implementation: it is checked, warmed up, and
 * then called options->profile_calls times inside the NVTX range timed@bench-lstm while profilers
 * collect (profiler.h). There is no worker process and no sampling. Prints a few lines on stdout;
 * *exit_code is that of a sweep of this case. LB_INVALID when the case can't be read or a plug-in
 * can't be loaded. */
enum lb_status lb_profile_case(const struct lb_options *options, int *exit_code,
                               struct lb_error *err);

#endif
