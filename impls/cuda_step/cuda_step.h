/* What the two files of cuda_step share. */
#ifndef LB_CUDA_STEP_H
#define LB_CUDA_STEP_H

#include "impls/common/gpu_network.h"

/* Buffers of one layer and direction (layer_dir l*D + d). T and R as in gpu_network.h.
 * In training h and c have T+1 slots in the order of time: the state before time t is slot t in the
 * forward direction and slot t+1 in the reverse direction. In inference h has two slots, used in
 * turn, and c has one. */
struct lb_cuda_step_layer_dir {
    struct lb_gpu_weights weights; /* gradients in T */
    void *bias;                    /* [4H] R, b_ih + b_hh */
    void *gates; /* [steps, B, 4H] R: pre-activations; training replaces them by the gates */
    void *h;     /* [slots, B, H] T */
    void *c;     /* [slots, B, H] R */
    void *y;     /* [T, B, D*H] T, of the whole layer; NULL in the last layer: the case's own */

    void *dgates;  /* [T, B, 4H] T: gradients of the pre-activations */
    void *dh, *dc; /* [B, H] R, of the step that comes next */
    void *dy;      /* [T, B, D*H] T, of the whole layer; NULL in the last layer */
    void *sums;    /* [LB_CELL_PARTS, 4H] R */
};

struct lb_cuda_step {
    struct lb_gpu_network net; /* gradients in T */
    int64_t chunk;             /* steps that layers run apart in the wavefront; T: no wavefront */
    struct lb_cuda_step_layer_dir *layer_dirs; /* [L*D] */
    int64_t *active; /* [T] rows that still run at time t: lengths descend */
    char description[160];
};

/* Index of a layer_dir's stream: its layer in a wavefront, else its direction. */
int lb_cuda_step_stream(const struct lb_cuda_step *self, int64_t layer, int64_t direction);

enum lb_status lb_cuda_step_forward(void *self, const struct lb_forward_io *io,
                                    struct lb_error *err);
enum lb_status lb_cuda_step_backward(void *self, const struct lb_backward_io *io,
                                     struct lb_error *err);

#endif
