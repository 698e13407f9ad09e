/* Launching the fused cluster kernels: a C interface. Every launcher only enqueues on the stream
 * (cudaStream_t). */
#ifndef LB_FUSED_H
#define LB_FUSED_H

#include <stdbool.h>

#include "api/dtype.h"
#include "api/status.h"
#include "cuda/fused/cluster/tile.h"
#include "cuda/fused/common/args.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of the kernels that ship: tile is in LB_FUSED_FORWARD_TILES or LB_FUSED_BACKWARD_TILES. */
struct lb_fused_kernel {
    struct lb_fused_tile tile;
    enum lb_dtype dtype; /* LB_F16 or LB_BF16 */
    bool backward;
    bool train; /* forward: keeps what backward needs */
};

/* Readies the kernel for launches by this process, and asks the device how many clusters of it run
 * at a time. LB_UNSUPPORTED where not even one does, LB_FAILED in CUDA's words. */
enum lb_status lb_fused_ready(const struct lb_fused_kernel *kernel, int *clusters,
                              struct lb_error *err);

/* Steps [from, to) of a layer, directions side by side. After lb_fused_ready. */
enum lb_status lb_fused_forward(const struct lb_fused_kernel *kernel,
                                const struct lb_fused_forward_args *args, void *stream,
                                struct lb_error *err);
enum lb_status lb_fused_backward(const struct lb_fused_kernel *kernel,
                                 const struct lb_fused_backward_args *args, void *stream,
                                 struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
