/* Launching the fused step kernels: a C interface. Launchers only enqueue on the stream
 * (cudaStream_t), one kernel a step. */
#ifndef LB_FUSED_STEP_H
#define LB_FUSED_STEP_H

#include "api/status.h"
#include "cuda/fused/common/args.h"
#include "cuda/fused/step/tile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of the kernels that ship: tile is in LB_FUSED_STEP_TILES. */
struct lb_fused_step_kernel {
    struct lb_fused_step_tile tile;
    enum lb_dtype dtype;
    enum lb_math math; /* f32: ieee on the plain units, else TF32 products */
    enum lb_act act;
    bool backward;
    const void *row; /* of the table of kernels; set by ready */
};

/* Readies the kernel for launches by this process, and asks the device how many blocks of it run at
 * a time. LB_FAILED in CUDA's words. */
enum lb_status lb_fused_step_ready(struct lb_fused_step_kernel *kernel, int *blocks,
                                   struct lb_error *err);

/* Steps [args.from, args.to) of a layer, directions side by side; backward the gradients of the
 * initial state too where from is 0. After lb_fused_step_ready. */
enum lb_status lb_fused_step_forward(const struct lb_fused_step_kernel *kernel,
                                     const struct lb_fused_forward_args *args, void *stream,
                                     struct lb_error *err);
enum lb_status lb_fused_step_backward(const struct lb_fused_step_kernel *kernel,
                                      const struct lb_fused_backward_args *args, void *stream,
                                      struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
