/* One cuDNN RNN under one algorithm: descriptors, sizes, weights, and its three calls. */
#ifndef LB_CUDNN_RNN_H
#define LB_CUDNN_RNN_H

#include <cudnn.h>

#include "api/impl.h"
#include "host/shared_library.h"
#include "impls/cudnn/rules.h"

/* The functions of cuDNN that are called: lb_cudnn has them once lb_cudnn_library is loaded. */
#define LB_CUDNN_FUNCTIONS(X)        \
    X(cudnnBuildRNNDynamic)          \
    X(cudnnCreate)                   \
    X(cudnnCreateDropoutDescriptor)  \
    X(cudnnCreateRNNDataDescriptor)  \
    X(cudnnCreateRNNDescriptor)      \
    X(cudnnCreateTensorDescriptor)   \
    X(cudnnDestroy)                  \
    X(cudnnDestroyDropoutDescriptor) \
    X(cudnnDestroyRNNDataDescriptor) \
    X(cudnnDestroyRNNDescriptor)     \
    X(cudnnDestroyTensorDescriptor)  \
    X(cudnnGetErrorString)           \
    X(cudnnGetLastErrorString)       \
    X(cudnnGetRNNTempSpaceSizes)     \
    X(cudnnGetRNNWeightParams)       \
    X(cudnnGetRNNWeightSpaceSize)    \
    X(cudnnGetVersion)               \
    X(cudnnRNNBackwardData_v8)       \
    X(cudnnRNNBackwardWeights_v8)    \
    X(cudnnRNNForward)               \
    X(cudnnSetCallback)              \
    X(cudnnSetDropoutDescriptor)     \
    X(cudnnSetRNNDataDescriptor)     \
    X(cudnnSetRNNDescriptor_v8)      \
    X(cudnnSetStream)                \
    X(cudnnSetTensorNdDescriptor)

struct lb_cudnn {
    LB_CUDNN_FUNCTIONS(LB_FUNCTION_POINTER)
};
extern struct lb_cudnn lb_cudnn;
extern struct lb_shared_library lb_cudnn_library;

/* Descriptors of a problem that all algorithms share. */
struct lb_cudnn_shapes {
    const struct lb_problem *problem;
    cudnnHandle_t handle; /* the process's own, on the case's stream */
    cudnnDropoutDescriptor_t dropout;
    cudnnRNNDataDescriptor_t x, y;
    cudnnTensorDescriptor_t h, c;  /* [L*D, B, P], where P is the size of h, and [L*D, B, H] */
    int32_t *lengths;              /* [B] on the host */
    const int32_t *device_lengths; /* [B]; NULL when not ragged */
};

struct lb_cudnn_rnn {
    const struct lb_cudnn_shapes *shapes;
    cudnnRNNDescriptor_t descriptor;
    size_t weights, reserve, workspace; /* bytes */
};

/* The library's answer as a status: what it can't do is LB_UNSUPPORTED, with its own reason. */
enum lb_status lb_cudnn_check(cudnnStatus_t status, const char *what, struct lb_error *err);

/* The answer to whether an algorithm takes a problem. Beside NOT_SUPPORTED the library says
 * BAD_PARAM of a combination that it does not have: LB_UNSUPPORTED. Anything else is a failure of
 * the probe and stays one: the algorithm might have taken it. */
enum lb_status lb_cudnn_probed(cudnnStatus_t status, const char *what, struct lb_error *err);

/* Handle and descriptors. Lengths are not known yet: full, or such that they differ. */
enum lb_status lb_cudnn_shapes_create(const struct lb_problem *problem, void *stream,
                                      struct lb_cudnn_shapes *shapes, struct lb_error *err);
void lb_cudnn_shapes_destroy(struct lb_cudnn_shapes *shapes); /* accepts a zeroed one */

/* Sets the real lengths [B] (host) and their copy in device memory; both stay the caller's. */
enum lb_status lb_cudnn_shapes_set_lengths(struct lb_cudnn_shapes *shapes, const int32_t *lengths,
                                           const int32_t *device_lengths, struct lb_error *err);

/* Asks the library for an RNN under an algorithm (not CUDNN_AUTO), with its sizes.
 * LB_UNSUPPORTED when it says no, in its own words. */
enum lb_status lb_cudnn_rnn_create(const struct lb_cudnn_shapes *shapes,
                                   enum lb_cudnn_variant variant, struct lb_cudnn_rnn *rnn,
                                   struct lb_error *err);
void lb_cudnn_rnn_destroy(struct lb_cudnn_rnn *rnn); /* accepts a zeroed one */

/* Canonical weights to memory->weights, at the places the library names; and gradients back. memory
 * is that of the calls, at least as large as the RNN's sizes. */
enum lb_status lb_cudnn_rnn_load(struct lb_cudnn_rnn *rnn, const struct lb_buffers *memory,
                                 const struct lb_weights *weights, struct lb_error *err);
enum lb_status lb_cudnn_rnn_fetch(const struct lb_cudnn_rnn *rnn, const struct lb_buffers *memory,
                                  const struct lb_gradients *gradients, struct lb_error *err);

/* Enqueue. Backward: zeroes the gradients, then data, then weights, which the library adds. */
enum lb_status lb_cudnn_rnn_forward(const struct lb_cudnn_rnn *rnn, const struct lb_buffers *memory,
                                    const struct lb_forward_io *io, struct lb_error *err);
enum lb_status lb_cudnn_rnn_backward(const struct lb_cudnn_rnn *rnn,
                                     const struct lb_buffers *memory,
                                     const struct lb_backward_io *io, struct lb_error *err);

#endif
