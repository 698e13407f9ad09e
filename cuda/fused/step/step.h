/* Launches the step kernels from C. A launcher only enqueues on the stream (cudaStream_t), one
 * kernel per step. */
#ifndef LB_STEP_H
#define LB_STEP_H

#include "api/status.h"
#include "cuda/fused/common/args.h"
#include "cuda/fused/step/tile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of the built kernels; tile is in a list of tile.h. */
struct lb_step_kernel {
    struct lb_step_tile tile;
    enum lb_dtype dtype;
    enum lb_math math; /* f32: LB_IEEE without tensor cores, else TF32 */
    enum lb_act act;
    bool backward;
    /* Set by lb_step_ready: */
    const void *row; /* of the table of kernels */
    bool follows;    /* a step's launch may begin while that of the step before still runs; in a
                      * plan, whether it is expected to */
};

/* Readies the kernel for launches by this process, and asks the device how many of its blocks, or
 * clusters where the tile has several blocks, run at the same time. LB_FAILED with CUDA's message.
 * LB_UNSUPPORTED where the device cannot run such a cluster. */
enum lb_status lb_step_ready(struct lb_step_kernel *kernel, int *resident, struct lb_error *err);

/* Enqueue steps [args->from, args->to) of a layer, all directions in one launch per step. Where
 * from is 0, backward also computes the gradients of the initial state. lb_step_ready comes
 * first. */
enum lb_status lb_step_forward(const void *kernel, const struct lb_fused_forward_args *args,
                               void *stream, struct lb_error *err);
enum lb_status lb_step_backward(const void *kernel, const struct lb_fused_backward_args *args,
                                void *stream, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
