/* cuDNN's weight space: where its parts lie, and the way between it and the canonical layout. */
#ifndef LB_CUDNN_LAYOUT_H
#define LB_CUDNN_LAYOUT_H

#include "api/impl.h"

/* The parts of a layer_dir, as cuDNN numbers its linear layers. */
enum {
    CUDNN_GATE_PARTS = 8, /* input products of i f g o, then recurrent ones */
    CUDNN_PROJECTION = 8, /* w_hr of the cell projection, which has no bias */
    CUDNN_PARTS_MAX
};

/* Offsets in bytes of one layer_dir's matrices ([H, I_l], recurrent [H, P], projection [P, H], all
 * row-major; P is H but for the cell projection) and biases ([H]). */
struct lb_cudnn_offsets {
    size_t matrix[CUDNN_PARTS_MAX], bias[CUDNN_GATE_PARTS];
};

/* Parts that a layer_dir of the problem has: the projection is the last where there is one. */
int lb_cudnn_part_count(const struct lb_problem *problem);

/* Elements of a layer_dir's part: H I_l, H P or, of the projection, P H. */
size_t lb_cudnn_matrix_elements(const struct lb_problem *problem, size_t layer_dir, int part);

/* LB_FAILED when a part does not lie within bytes: then nothing may be copied. */
enum lb_status lb_cudnn_layout_check(const struct lb_problem *problem,
                                     const struct lb_cudnn_offsets *offsets, size_t bytes,
                                     struct lb_error *err);

/* Canonical weights into an image of the weight space; offsets [L*D]. */
void lb_cudnn_layout_pack(const struct lb_problem *problem, const struct lb_cudnn_offsets *offsets,
                          const struct lb_weights *weights, void *image);

/* An image of the weight gradients into canonical ones. */
void lb_cudnn_layout_unpack(const struct lb_problem *problem,
                            const struct lb_cudnn_offsets *offsets, const void *image,
                            const struct lb_gradients *gradients);

#endif
