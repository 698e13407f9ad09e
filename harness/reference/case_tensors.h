/* The input and output tensors of one problem in an implementation's memory. */
#ifndef LB_CASE_TENSORS_H
#define LB_CASE_TENSORS_H

#include "device/memory.h"
#include "reference/reference.h"

enum lb_tensor {
    LB_X, /* inputs of forward */
    LB_H0,
    LB_C0,
    LB_DY, /* inputs of backward */
    LB_DHN,
    LB_DCN,
    LB_Y, /* outputs of forward */
    LB_HN,
    LB_CN,
    LB_DX, /* outputs of backward */
    LB_DH0,
    LB_DC0,
    LB_TENSOR_COUNT
};

struct lb_tensors {
    const struct lb_space *space;
    void *at[LB_TENSOR_COUNT]; /* NULL where the pass has no such tensor */
    size_t bytes[LB_TENSOR_COUNT];
};

/* Allocates what the problem's pass needs. On failure everything is released. */
enum lb_status lb_tensors_create(const struct lb_problem *problem, const struct lb_space *space,
                                 struct lb_tensors *tensors, struct lb_error *err);
void lb_tensors_destroy(struct lb_tensors *tensors); /* accepts a zeroed one */

const char *lb_tensor_name(enum lb_tensor tensor); /* "x", "h0", ... */

/* The first tensor beside which something was written, with the side as lb_space.overrun gives it;
 * LB_TENSOR_COUNT when there is none, or the space can't tell. */
enum lb_tensor lb_tensors_overrun(const struct lb_tensors *tensors, const char **side);

size_t lb_tensors_bytes(const struct lb_tensors *tensors);

/* Inputs from the host into the tensors. */
enum lb_status lb_tensors_upload(const struct lb_tensors *tensors, const struct lb_inputs *inputs,
                                 struct lb_error *err);

/* Fills all outputs with NaN, so that what is not written is found. */
enum lb_status lb_tensors_poison(const struct lb_tensors *tensors, struct lb_error *err);

/* Outputs from the tensors to the host. */
enum lb_status lb_tensors_download(const struct lb_tensors *tensors,
                                   const struct lb_results *results, struct lb_error *err);

struct lb_forward_io lb_tensors_forward(const struct lb_tensors *tensors);
struct lb_backward_io lb_tensors_backward(const struct lb_tensors *tensors);

#endif
