/* One layer of oneDNN's LSTM: its primitives and their memory objects. */
#ifndef LB_ONEDNN_LAYER_H
#define LB_ONEDNN_LAYER_H

#include "api/impl.h"
#include "impls/onednn/compat.h"

/* The arguments of the primitives. The backward primitive has its own copy of the weights and
 * its own scratch memory. */
enum lb_slot {
    LB_X,
    LB_H0,
    LB_C0,
    LB_W_IH,
    LB_W_HH,
    LB_BIAS,
    LB_PEEPHOLE,
    LB_PROJECTION,
    LB_Y,
    LB_HN,
    LB_CN,
    LB_KEPT, /* the workspace that forward fills for backward */
    LB_SCRATCH,
    LB_BACK_W_IH,
    LB_BACK_W_HH,
    LB_BACK_SCRATCH,
    LB_DX,
    LB_DH0,
    LB_DC0,
    LB_DW_IH,
    LB_DW_HH,
    LB_DBIAS,
    LB_DPEEPHOLE,
    LB_DY,
    LB_DHN,
    LB_DCN,
    LB_SLOT_COUNT
};

struct lb_onednn_layer {
    int64_t input;                                 /* I_l */
    dnnl_primitive_desc_t forward_pd, backward_pd; /* backward_pd: NULL when only inferring */
    dnnl_primitive_t forward, backward;
    dnnl_memory_t memory[LB_SLOT_COUNT]; /* NULL where the primitives have no such argument */
};

/* The process's engine and stream, opened once; LB_FAILED. */
enum lb_status lb_onednn_open(dnnl_engine_t *engine, dnnl_stream_t *stream, struct lb_error *err);

/* Converts the library's status to LB_OK, LB_UNSUPPORTED, LB_OOM or LB_FAILED. `what` names the
 * call. */
enum lb_status lb_onednn_status(dnnl_status_t status, const char *what, struct lb_error *err);

/* Builds the primitives of a layer with input size I_l: forward, and backward where the pass has
 * it. Tensors are plain (x [T, B, I_l], h0 [D, B, P], where P is the size of h); c0 and cn and,
 * with bf16, all gradients are f32; packed weights are in the library's own format. The caller
 * destroys a half-built layer. */
enum lb_status lb_onednn_layer_create(const struct lb_problem *problem, int64_t input,
                                      struct lb_onednn_layer *layer, struct lb_error *err);
void lb_onednn_layer_destroy(struct lb_onednn_layer *layer); /* accepts a zeroed one */

/* Bytes that a slot needs; 0 when the layer does not use it. */
size_t lb_onednn_bytes(const struct lb_onednn_layer *layer, enum lb_slot slot);

/* Sets the address of a slot's data. */
enum lb_status lb_onednn_set_data(const struct lb_onednn_layer *layer, enum lb_slot slot,
                                  void *data, struct lb_error *err);

/* Runs a primitive of the layer and waits for it. */
enum lb_status lb_onednn_forward(const struct lb_onednn_layer *layer, struct lb_error *err);
enum lb_status lb_onednn_backward(const struct lb_onednn_layer *layer, struct lb_error *err);

/* Converts plain weights [D, 4H, columns] of the given type to a slot's format, or back. With
 * columns 0 it converts the bias [D, 4H], the peepholes or their gradient [D, 3, H], or the
 * projection [D, P, H], by the slot. */
enum lb_status lb_onednn_reorder(const struct lb_problem *problem,
                                 const struct lb_onednn_layer *layer, enum lb_slot slot,
                                 int64_t columns, dnnl_data_type_t type, void *plain, bool to_slot,
                                 struct lb_error *err);

#endif
