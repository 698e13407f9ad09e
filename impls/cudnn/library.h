/* The functions of cuDNN that this implementation calls: lb_cudnn has them once lb_cudnn_library is
 * loaded. */
#ifndef LB_CUDNN_LIBRARY_H
#define LB_CUDNN_LIBRARY_H

#include <cudnn.h>

#include "host/shared_library.h"

#define LB_CUDNN_FUNCTIONS(X)        \
    X(cudnnBuildRNNDynamic)          \
    X(cudnnCreate)                   \
    X(cudnnCreateDropoutDescriptor)  \
    X(cudnnCreateRNNDataDescriptor)  \
    X(cudnnCreateRNNDescriptor)      \
    X(cudnnCreateTensorDescriptor)   \
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

#endif
