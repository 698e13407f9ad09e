/* The message of a failed launch. */
#ifndef LB_LAUNCH_ERROR_CUH
#define LB_LAUNCH_ERROR_CUH

#include <cuda_runtime.h>

#include "api/status.h"

/* Returns LB_OOM where memory ran out, else LB_FAILED, with the message "DOING KERNEL: words (name,
 * number)". Clears the runtime's last error, so that a later call does not report it as its own. */
inline enum lb_status lb_launch_failed(const char *doing, const char *kernel, cudaError_t error,
                                       struct lb_error *err)
{
    (void)cudaGetLastError();
    return lb_fail(err, error == cudaErrorMemoryAllocation ? LB_OOM : LB_FAILED,
                   "%s %s: %s (%s, %d)", doing, kernel, cudaGetErrorString(error),
                   cudaGetErrorName(error), static_cast<int>(error));
}

#endif
