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
                                       const struct lb_exec_config *place, struct lb_error *why);

/* Touches no device. gradients_dtype is T; the caller may set R before anything is cut. */
struct lb_gpu_network lb_gpu_network_make(const struct lb_problem *problem,
                                          const struct lb_exec_config *place, int stream_count);
void lb_gpu_network_destroy(struct lb_gpu_network *net); /* accepts a zeroed one */

/* The four buffers of an implementation while they are cut; zeroed, they only count. */
struct lb_gpu_parts {
    struct lb_arena weights, gradients, reserve, workspace;
};

struct lb_gpu_parts lb_gpu_parts_of(const struct lb_buffers *buffers);
struct lb_sizes lb_gpu_parts_sizes(const struct lb_gpu_parts *parts);

/* Cuts the net's own parts: weights, gradients, lengths. The address of cuBLAS' scratch for all
 * streams, which lies first in the workspace. */
void *lb_gpu_network_carve(struct lb_gpu_network *net, struct lb_gpu_parts *parts);

/* Cuts off so many elements of T, of R. */
void *lb_gpu_carve_storage(const struct lb_gpu_network *net, struct lb_arena *from, int64_t count);
void *lb_gpu_carve_real(const struct lb_gpu_network *net, struct lb_arena *from, int64_t count);

/* Opens the streams with their scratch and brings weights and lengths to the device. */
enum lb_status lb_gpu_network_prepare(struct lb_gpu_network *net, void *scratch,
                                      const struct lb_buffers *buffers,
                                      const struct lb_weights *weights, struct lb_error *err);

/* Tensor `which` of entry l*D + d: the weights, T; their gradients. */
const void *lb_gpu_weight(const struct lb_gpu_network *net, int64_t entry, enum lb_weight which);
void *lb_gpu_gradient(const struct lb_gpu_network *net, int64_t entry, enum lb_weight which);

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
