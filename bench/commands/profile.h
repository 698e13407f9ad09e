/* --profile: one case in this process, for the profiler that is attached to it. */
#ifndef LB_PROFILE_H
#define LB_PROFILE_H

#include "cli/options.h"

/* Runs options->subject, which must name an implementation: checked, warmed up, then called
 * options->profile_calls times within the NVTX range timed@bench-lstm, with profilers collecting
 * (profiler.h). No worker process, no sampling. Prints a few lines on stdout; *exit_code as for a
 * sweep of that case. LB_INVALID when the case can't be read or a plug-in can't be loaded. */
enum lb_status lb_profile_case(const struct lb_options *options, int *exit_code,
                               struct lb_error *err);

#endif
