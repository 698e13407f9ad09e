/* Built instead of kernel_trace_cupti.c where CUPTI's headers are missing. */
#include "trace/kernel_trace.h"

enum lb_status lb_kernel_trace(lb_traced_call *call, void *user, bool graph, struct lb_kernels *out,
                               struct lb_error *err)
{
    (void)call, (void)user, (void)graph, (void)out;
    return lb_fail(err, LB_ABSENT, LB_WHY_CUPTI);
}
