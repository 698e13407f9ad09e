/* What the GPU implementations that use cuBLAS have in common: streams, lengths, canonical weights
 * and their gradients on the device, and how the harness's buffers are cut into parts. */
#ifndef LB_GPU_NETWORK_H
#define LB_GPU_NETWORK_H

#include "api/impl.h"
#include "device/streams.h"
#include "device/weight_packing.h"

/* The four buffers of an implementation while they are carved into arrays. Zeroed ones only add up
 * sizes. */
struct lb_gpu_parts {
    struct lb_arena weights, gradients, reserve, workspace;
};

/* An implementation's own carving. It calls lb_gpu_network_carve first and returns its result. */
typedef void *lb_gpu_carve(void *state, struct lb_gpu_parts *parts);

/* The first member of an implementation's state. T is the storage type, R the type of sums: f64 for
 * f64, else f32. */
struct lb_gpu_network {
    const struct lb_problem *problem;
    void *stream; /* of stream 0 */
    int stream_count;
    lb_gpu_carve *carve;
    struct lb_streams *streams;    /* from prepare on */
    enum lb_dtype real;            /* R */
    enum lb_dtype gradients_dtype; /* of the weight gradients below */
    bool canonical;                /* the implementation works on the packed tensors below */
    char *weights;                 /* T, packed; NULL until prepare, or where not canonical */
    char *gradients;               /* packed; NULL in passes without them, or where not canonical */
    int32_t *lengths;              /* [B] on the device; NULL when not ragged */
};

/* Supports every problem on a device for which the kernels are built. */
enum lb_status lb_gpu_network_supports(const struct lb_problem *problem,
                                       const struct lb_exec_config *config, struct lb_error *why);

/* Uses no device. The network is canonical and gradients_dtype is T; the caller may change this and
 * the number of streams before the buffers are carved. */
struct lb_gpu_network lb_gpu_network_make(const struct lb_problem *problem,
                                          const struct lb_exec_config *config, int stream_count,
                                          lb_gpu_carve *carve);
void lb_gpu_network_destroy(struct lb_gpu_network *net); /* accepts a zeroed one */

/* Carves the network's own arrays: weights, gradients and lengths. Returns the address of cuBLAS'
 * scratch for all streams, which is first in the workspace. */
void *lb_gpu_network_carve(struct lb_gpu_network *net, struct lb_gpu_parts *parts);

/* lb_impl.sizes: what the carving adds up. Uses no device. */
enum lb_status lb_gpu_network_sizes(void *state, struct lb_sizes *sizes, struct lb_error *err);

/* Carves the buffers, opens the streams with their scratch, and uploads lengths and canonical
 * weights. */
enum lb_status lb_gpu_network_prepare(void *state, const struct lb_buffers *buffers,
                                      const struct lb_weights *weights, struct lb_error *err);

/* The weight tensors T of one layer_dir l*D + d, and their gradients, which are NULL in passes
 * without them. */
struct lb_gpu_weights {
    const void *weights[LB_WEIGHT_COUNT];
    void *dweights[LB_WEIGHT_COUNT];
};

struct lb_gpu_weights lb_gpu_weights_of(const struct lb_gpu_network *net, int64_t layer_dir);

/* Enqueues the GEMM (device/streams.h) of two T matrices with the problem's math. All rows follow
 * one another: in, math and the rows' lengths are filled in here. */
enum lb_status lb_gpu_gemm(const struct lb_gpu_network *net, int stream_index, struct lb_gemm gemm,
                           struct lb_error *err);

/* ---- State of a layer_dir, enqueued on one of the network's streams ----------------------------
 * h [B, P] T, dh [B, P] R; c, dc [B, H] R. The case's own tensors are h0 and hn [L*D, B, P] T, c0
 * and cn [L*D, B, H] T, and likewise their gradients. */

enum lb_status lb_gpu_start_state(const struct lb_gpu_network *net, int stream_index,
                                  int64_t layer_dir, const struct lb_forward_io *io, void *h,
                                  void *c, struct lb_error *err);
/* Start with dh = dhn and dc = dcn; finish with dh0 = dh and dc0 = dc, rounded once. */
enum lb_status lb_gpu_start_gradients(const struct lb_gpu_network *net, int stream_index,
                                      int64_t layer_dir, const struct lb_backward_io *io, void *dh,
                                      void *dc, struct lb_error *err);
enum lb_status lb_gpu_finish_gradients(const struct lb_gpu_network *net, int stream_index,
                                       int64_t layer_dir, const struct lb_backward_io *io,
                                       const void *dh, const void *dc, struct lb_error *err);

/* lb_impl.gradients of a canonical network: downloads the gradients of the last backward. Those in
 * R are rounded once. */
enum lb_status lb_gpu_network_gradients(void *state, const struct lb_gradients *gradients,
                                        struct lb_error *err);

/* Return the bytes of `count` elements of T, or of R. */
static inline size_t lb_gpu_storage(const struct lb_gpu_network *net, int64_t count)
{
    return (size_t)count * lb_dtype_size(net->problem->dtype);
}

static inline size_t lb_gpu_real(const struct lb_gpu_network *net, int64_t count)
{
    return (size_t)count * lb_dtype_size(net->real);
}

/* Return the address of element `index` of a tensor of T, or of R. */
static inline void *lb_gpu_storage_at(const struct lb_gpu_network *net, const void *base,
                                      int64_t index)
{
    return (char *)base + lb_gpu_storage(net, index);
}

static inline void *lb_gpu_real_at(const struct lb_gpu_network *net, const void *base,
                                   int64_t index)
{
    return (char *)base + lb_gpu_real(net, index);
}

/* Carve an array of `count` elements of T, or of R. */
static inline void *lb_gpu_carve_storage(const struct lb_gpu_network *net, struct lb_arena *from,
                                         int64_t count)
{
    return lb_arena_take(from, lb_gpu_storage(net, count));
}

static inline void *lb_gpu_carve_real(const struct lb_gpu_network *net, struct lb_arena *from,
                                      int64_t count)
{
    return lb_arena_take(from, lb_gpu_real(net, count));
}

#endif
