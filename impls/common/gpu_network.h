/* What the GPU implementations that work on canonical weights, with cuBLAS and pointwise kernels,
 * have in common: streams, weights and their gradients on the device, lengths, and how the
 * harness's buffers are cut into parts. */
#ifndef LB_GPU_NETWORK_H
#define LB_GPU_NETWORK_H

#include "api/impl.h"
#include "device/streams.h"
#include "device/weight_packing.h"

/* T is the storage type, R that of sums: f64 for f64, else f32. */
struct lb_gpu_network {
    const struct lb_problem *problem;
    void *stream; /* of stream 0 */
    int stream_count;
    struct lb_streams *streams;    /* from prepare on */
    enum lb_dtype real;            /* R */
    enum lb_dtype gradients_dtype; /* of the weight gradients below */
    char *weights;                 /* T, packed; NULL until prepare */
    char *gradients;               /* packed; NULL in passes without them */
    int32_t *lengths;              /* [B] on the device; NULL when not ragged */
};

/* Any problem, on a device that the kernels are built for. */
enum lb_status lb_gpu_network_supports(const struct lb_problem *problem,
                                       const struct lb_exec_config *config, struct lb_error *why);

/* Touches no device. gradients_dtype is T; the caller may set R before anything is cut. */
struct lb_gpu_network lb_gpu_network_make(const struct lb_problem *problem,
                                          const struct lb_exec_config *config, int stream_count);
void lb_gpu_network_destroy(struct lb_gpu_network *net); /* accepts a zeroed one */

/* The four buffers of an implementation while they are cut into arrays. Zeroed, they only count. */
struct lb_gpu_parts {
    struct lb_arena weights, gradients, reserve, workspace;
};

/* Cuts the net's own parts: weights, gradients, lengths. The address of cuBLAS' scratch for all
 * streams, which lies first in the workspace. */
void *lb_gpu_network_carve(struct lb_gpu_network *net, struct lb_gpu_parts *parts);

/* Cuts off so many elements of T, of R. */
void *lb_gpu_carve_storage(const struct lb_gpu_network *net, struct lb_arena *from, int64_t count);
void *lb_gpu_carve_real(const struct lb_gpu_network *net, struct lb_arena *from, int64_t count);

/* An implementation's own carving: calls lb_gpu_network_carve first, and returns what that gives.
 */
typedef void *lb_gpu_carve(void *self, struct lb_gpu_parts *parts);

/* What `carve` adds up to. Touches no device. */
struct lb_sizes lb_gpu_network_sizes(void *self, lb_gpu_carve *carve);

/* Carves the buffers, opens the streams with their scratch, and brings weights and lengths to the
 * device. net belongs to self. */
enum lb_status lb_gpu_network_prepare(struct lb_gpu_network *net, void *self, lb_gpu_carve *carve,
                                      const struct lb_buffers *buffers,
                                      const struct lb_weights *weights, struct lb_error *err);

/* Tensor `which` of layer_dir l*D + d: the weights, T; their gradients. */
const void *lb_gpu_weight(const struct lb_gpu_network *net, int64_t layer_dir,
                          enum lb_weight which);
void *lb_gpu_gradient(const struct lb_gpu_network *net, int64_t layer_dir, enum lb_weight which);

/* The matrices of one layer_dir, and the gradients of its four weight tensors. */
struct lb_gpu_weights {
    const void *w_ih, *w_hh; /* [4H, I_l], [4H, H] T */
    void *dweights[4];       /* in the order of enum lb_weight; NULL in passes without them */
};

struct lb_gpu_weights lb_gpu_weights_of(const struct lb_gpu_network *net, int64_t layer_dir);

/* ---- State of a layer_dir, enqueued on one of the network's streams ----------------------------
 * h [B, H] T; c, dh, dc [B, H] R. The case's own tensors h0, c0, hn, cn, ... are [L*D, B, H] T. */

enum lb_status lb_gpu_start_state(const struct lb_gpu_network *net, int stream_index,
                                  int64_t layer_dir, const struct lb_forward_io *io, void *h,
                                  void *c, struct lb_error *err);
/* dhn and dcn to dh and dc; at the end dh and dc to dh0 and dc0, rounded once. */
enum lb_status lb_gpu_start_gradients(const struct lb_gpu_network *net, int stream_index,
                                      int64_t layer_dir, const struct lb_backward_io *io, void *dh,
                                      void *dc, struct lb_error *err);
enum lb_status lb_gpu_finish_gradients(const struct lb_gpu_network *net, int stream_index,
                                       int64_t layer_dir, const struct lb_backward_io *io,
                                       const void *dh, const void *dc, struct lb_error *err);

/* The last backward's gradients to the canonical layout, rounded once where they are kept in R. */
enum lb_status lb_gpu_network_gradients(const struct lb_gpu_network *net,
                                        const struct lb_gradients *gradients, struct lb_error *err);

/* Bytes of count elements of T, of R. */
size_t lb_gpu_storage(const struct lb_gpu_network *net, int64_t count);
size_t lb_gpu_real(const struct lb_gpu_network *net, int64_t count);

/* Address of element `index` of a tensor of T, of R. */
void *lb_gpu_storage_at(const struct lb_gpu_network *net, const void *base, int64_t index);
void *lb_gpu_real_at(const struct lb_gpu_network *net, const void *base, int64_t index);

#endif
