/* The fused grid kernels: their arguments, and launching them from C. Every launcher only enqueues
 * on the stream (cudaStream_t). */
#ifndef LB_FUSED_GRID_H
#define LB_FUSED_GRID_H

#include "api/status.h"
#include "cuda/fused/common/args.h"
#include "cuda/fused/grid/tile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a kernel gets. All blocks must run at the same time. layer.scratch: the exchange buffers,
 * all zero at the start. */
struct lb_grid_forward_args {
    struct lb_fused_forward_args layer;
    int rows;            /* of the batch a group */
    int direction;       /* of the first blocks: the launch has one direction or both */
    uint32_t spin_limit; /* reads of a packet that has not come before a wait is given up */
};

struct lb_grid_backward_args {
    struct lb_fused_backward_args layer;
    int rows, direction; /* as above */
    uint32_t spin_limit;
};

/* About two seconds: a read from the second-level cache takes half a microsecond. */
enum { LB_GRID_SPIN_LIMIT = 1 << 22 };

/* One of the kernels that ship, and how it is launched. */
struct lb_grid_kernel {
    struct lb_grid_tile tile;
    enum lb_grid_math math;
    struct lb_grid_split split;
    bool backward;
    bool beside;     /* directions side by side in one launch, else one after the other */
    const void *row; /* of the table of kernels; set by ready */
};

/* Readies the kernel for launches by this process, and asks the device how many blocks of it run at
 * a time. LB_UNSUPPORTED where it cannot keep `needed` blocks resident, LB_FAILED in CUDA's words.
 */
enum lb_status lb_grid_ready(struct lb_grid_kernel *kernel, int needed, int *resident,
                             struct lb_error *err);

/* Steps [from, to) of a layer, all directions. After lb_grid_ready. */
enum lb_status lb_grid_forward(const struct lb_grid_kernel *kernel,
                               const struct lb_fused_forward_args *args, void *stream,
                               struct lb_error *err);
enum lb_status lb_grid_backward(const struct lb_grid_kernel *kernel,
                                const struct lb_fused_backward_args *args, void *stream,
                                struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
