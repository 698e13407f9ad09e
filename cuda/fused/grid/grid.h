/* Arguments of the grid kernels, and their launchers with a C interface. A launcher only enqueues
 * on the stream (cudaStream_t). */
#ifndef LB_GRID_H
#define LB_GRID_H

#include "api/status.h"
#include "cuda/fused/common/args.h"
#include "cuda/fused/grid/tile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Arguments of a kernel. All its blocks must run at the same time. layer.scratch has the exchange
 * buffers. They must be zero before the first launch of a sequence, and later launches continue
 * with what the launch before left there. */
struct lb_grid_forward_args {
    struct lb_fused_forward_args layer;
    int rows;            /* batch rows per group */
    int direction;       /* the first direction: a launch computes one or both */
    uint32_t spin_limit; /* reads of a missing packet after which a wait gives up */
};

struct lb_grid_backward_args {
    struct lb_fused_backward_args layer;
    int rows, direction; /* as above */
    uint32_t spin_limit;
};

/* About two seconds, as a read from the second-level cache takes about half a microsecond. */
enum { LB_GRID_SPIN_LIMIT = 1 << 22 };

/* One of the built kernels, and how it is launched. */
struct lb_grid_kernel {
    struct lb_grid_tile tile;
    enum lb_grid_math math;
    struct lb_grid_split split;
    bool backward;
    bool beside;     /* both directions in one launch, else one after the other */
    const void *row; /* of the table of kernels; set by lb_grid_ready */
};

/* Readies the kernel for launches by this process, and asks the device how many of its blocks run
 * at the same time. LB_UNSUPPORTED where these are fewer than `needed`, LB_FAILED with CUDA's
 * message. */
enum lb_status lb_grid_ready(struct lb_grid_kernel *kernel, int needed, int *resident,
                             struct lb_error *err);

/* Enqueues the clearing of the exchange buffers (scratch) of a layer, which the first launch of a
 * sequence needs. */
enum lb_status lb_grid_clear(const void *kernel, int hidden, int directions, void *scratch,
                             void *stream, struct lb_error *err);

/* Enqueue steps [from, to) of a layer, all directions. lb_grid_ready comes first, and lb_grid_clear
 * before the first steps of a sequence. */
enum lb_status lb_grid_forward(const void *kernel, const struct lb_fused_forward_args *args,
                               void *stream, struct lb_error *err);
enum lb_status lb_grid_backward(const void *kernel, const struct lb_fused_backward_args *args,
                                void *stream, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif
