/* Records which GPU kernels a call runs, by CUPTI's activity records. */
#ifndef LB_KERNEL_TRACE_H
#define LB_KERNEL_TRACE_H

#include "record/gpu_kernels.h"

/* Makes the call whose kernels are recorded, and waits until it is done. */
typedef enum lb_status lb_traced_call(void *user, struct lb_error *err);

/* Makes the call once and records its kernels in *out, which lb_kernels_free releases. CUPTI may
 * crash or hang the process, so call this in one that holds no result. graph: the call replays a
 * CUDA graph. LB_ABSENT when CUPTI is missing, when it is older than 12.6 and the call replays a
 * graph, when another tool such as nsys uses it, when the call ran no kernel, or when CUPTI dropped
 * records or gave some without times; LB_FAILED with CUPTI's message; or the call's own failure. */
enum lb_status lb_kernel_trace(lb_traced_call *call, void *user, bool graph, struct lb_kernels *out,
                               struct lb_error *err);

#endif
