/* Recording which GPU kernels a call runs, by CUPTI's activity records. */
#ifndef LB_KERNEL_TRACE_H
#define LB_KERNEL_TRACE_H

#include "record/gpu_kernels.h"

/* Does the work to look at, and waits until it is done. */
typedef enum lb_status lb_traced_call(void *user, struct lb_error *err);

/* Makes the call once and records its kernels. The library is loaded when this is first used, and
 * taken off the process before it returns, so that nothing of it is left in later timings.
 * LB_ABSENT when there is no CUPTI, when another tool holds it (such as nsys), or when the call ran
 * no kernel; LB_FAILED with CUPTI's words; the call's own failure. */
enum lb_status lb_kernel_trace(lb_traced_call *call, void *user, struct lb_kernels *out,
                               struct lb_error *err);

#endif
