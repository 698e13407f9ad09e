/* Launches the cluster kernels from C. A launcher only enqueues on the stream (cudaStream_t). */
#ifndef LB_CLUSTER_H
#define LB_CLUSTER_H

#include <stdbool.h>

#include "api/dtype.h"
#include "api/status.h"
#include "cuda/fused/cluster/tile.h"
#include "cuda/fused/common/args.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of the built kernels; tile is in LB_CLUSTER_FORWARD_TILES or LB_CLUSTER_BACKWARD_TILES. */
struct lb_cluster_kernel {
    struct lb_cluster_tile tile;
    enum lb_dtype dtype; /* LB_F16 or LB_BF16 */
    bool backward;
    bool train;      /* forward: writes gates and cells for backward */
    int rows;        /* batch rows per cluster: 1 to tile.columns */
    const void *row; /* of the table of kernels; set by lb_cluster_ready */
};

/* Readies the kernel for launches by this process, and asks the device how many of its clusters run
 * at the same time. LB_UNSUPPORTED where not even one does, LB_FAILED with CUDA's message. */
enum lb_status lb_cluster_ready(struct lb_cluster_kernel *kernel, int *clusters,
                                struct lb_error *err);

/* Enqueue steps [from, to) of a layer, all directions in one launch. lb_cluster_ready comes first.
 */
enum lb_status lb_cluster_forward(const void *kernel, const struct lb_fused_forward_args *args,
                                  void *stream, struct lb_error *err);
enum lb_status lb_cluster_backward(const void *kernel, const struct lb_fused_backward_args *args,
                                   void *stream, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
