/* fused: what its files share. */
#ifndef LB_FUSED_IMPL_H
#define LB_FUSED_IMPL_H

#include "device.h"
#include "fused.h"
#include "impl.h"
#include "lanes.h"

/* Which kernels, and what the cost model expects of them. */
struct lb_fused_choice {
    struct lb_fused_kernel forward, backward;
    double forward_ns, backward_ns; /* a step */
    int clusters, resident;         /* that the forward pass needs, that the device has room for */
    int fitting;                    /* forward tiles that could have been taken */
    const char *model;              /* of the figures: "h100" */
};

/* The tiles with the least expected time. Pure: device NULL stands for an H100.
 * LB_UNSUPPORTED names the limit. */
enum lb_status lb_fused_choose(const struct lb_problem *problem,
                               const struct lb_device_info *device, struct lb_fused_choice *choice,
                               struct lb_error *why);

/* Buffers of one layer, both directions together, and its sizes. The gates of a unit are
 * neighbours: row 4 u + q of a direction's matrices is row q H + u of the canonical ones. */
struct lb_fused_layer {
    int64_t input;       /* I_l */
    void *w_ih;          /* [D, H, 4, I_l] T */
    void *bias;          /* [D, H, 4] f32 */
    void *w_hh, *w_hh_t; /* [D] packed for the forward and the backward tile */
    void *gates;         /* [T, B, D, H, 4] f32: pre-activations, in training then the gates */
    void *cells;         /* [T, B, D, H] f32; NULL in inference */
    void *y;             /* [T, B, D, H] T; NULL on top: the case's own */
    void *dgates;        /* [T, B, D, H, 4] T */
    void *dy;            /* [T, B, D, H] T; NULL on top */
    void *dw_ih, *dw_hh; /* [D, H, 4, I_l], [D, H, 4, H] f32 */
    void *db;            /* [D, H, 4] T */
};

struct lb_fused {
    const struct lb_problem *problem;
    void *stream;
    struct lb_lanes *lanes;
    struct lb_fused_choice choice;
    struct lb_fused_layer *layers; /* [L] */
    const int32_t *lengths;        /* [B] on the host; NULL when not ragged */
    int32_t *device_lengths;       /* the same on the device */
    void *sums;                    /* [LB_CELL_PARTS, D, H, 4] f32 */
    char chosen[320];
};

/* Bytes of one layer's weights, and the canonical ones of layer l brought to them. */
enum lb_status lb_fused_upload(const struct lb_fused *self, int64_t layer,
                               const struct lb_weights *weights, struct lb_error *err);

/* The last backward's gradients of layer l to canonical ones, rounded once. */
enum lb_status lb_fused_download(const struct lb_fused *self, int64_t layer,
                                 const struct lb_gradients *gradients, struct lb_error *err);

enum lb_status lb_fused_run_forward(void *self, const struct lb_forward_io *io,
                                    struct lb_error *err);
enum lb_status lb_fused_run_backward(void *self, const struct lb_backward_io *io,
                                     struct lb_error *err);

#endif
