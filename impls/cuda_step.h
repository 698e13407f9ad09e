/* cuda_step: what its two files share. */
#ifndef LB_CUDA_STEP_H
#define LB_CUDA_STEP_H

#include "impl.h"
#include "lanes.h"

/* Buffers of one layer and direction (entry l*D + d). T: storage type, R: f64 for f64, else f32.
 * Slots of h and c: in training T+1 in the order of time, so that the state before step t is slot t
 * forward and slot t+1 in reverse; in inference two of h, taken in turns, and one of c. */
struct lb_step_entry {
    const void *w_ih, *w_hh; /* [4H, I_l], [4H, H] T */
    void *bias;              /* [4H] R, b_ih + b_hh */
    void *gates;             /* [steps, B, 4H] R: pre-activations, in training then the gates */
    void *h;                 /* [slots, B, H] T */
    void *c;                 /* [slots, B, H] R */
    void *y;                 /* [T, B, D*H] T, of the whole layer; NULL on top: the case's own */

    void *dgates;      /* [T, B, 4H] T: gradients of the pre-activations */
    void *dh, *dc;     /* [B, H] R, running */
    void *dy;          /* [T, B, D*H] T, of the whole layer; NULL on top */
    void *sums;        /* [LB_CELL_PARTS, 4H] R */
    void *dweights[4]; /* the gradients, in the order of enum lb_weight */
};

struct lb_cuda_step {
    const struct lb_problem *problem;
    struct lb_lanes *lanes;
    enum lb_dtype real; /* R */
    int64_t chunk;      /* steps that layers run apart in the wavefront; T: no wavefront */
    struct lb_step_entry *entries; /* [L*D] */
    int64_t *active;               /* [T] rows that still run at time t: lengths descend */
    int32_t *lengths;              /* [B] in device memory; NULL when not ragged */
    void *gradients;
    char chosen[160];
};

/* The entry's lane: its layer in a wavefront, else its direction. */
int lb_step_lane(const struct lb_cuda_step *self, int64_t layer, int64_t direction);

/* Bytes of count elements of T, of R. */
size_t lb_step_storage(const struct lb_cuda_step *self, int64_t count);
size_t lb_step_real(const struct lb_cuda_step *self, int64_t count);

enum lb_status lb_step_forward(void *self, const struct lb_forward_io *io, struct lb_error *err);
enum lb_status lb_step_backward(void *self, const struct lb_backward_io *io, struct lb_error *err);

#endif
