/* What went wrong before or at a launch, in words. */
#ifndef LB_LAUNCH_ERROR_CUH
#define LB_LAUNCH_ERROR_CUH

#include <cuda_runtime.h>

#include "api/status.h"

/* LB_FAILED: "DOING KERNEL: words (name, number)". The runtime forgets the error, so that it is not
 * taken for a later call's. */
inline enum lb_status lb_launch_failed(const char *doing, const char *kernel, cudaError_t error,
                                       struct lb_error *err)
{
    (void)cudaGetLastError();
    return lb_fail(err, LB_FAILED, "%s %s: %s (%s, %d)", doing, kernel, cudaGetErrorString(error),
                   cudaGetErrorName(error), static_cast<int>(error));
}

#endif
