/* The functions of oneDNN that this implementation calls: those of version 3, which this file
 * implements with version 2 where only that is installed. Only this file depends on the version.
 *
 * Version 2 keeps memory descriptors in structs, and needs a descriptor of an operation before
 * its primitive. Version 3 has handles and no operation descriptors. In both, a
 * const_dnnl_memory_desc_t points to a descriptor. */
#ifndef LB_ONEDNN_COMPAT_H
#define LB_ONEDNN_COMPAT_H

#include <dnnl.h>
#include <stdlib.h>

#include "host/shared_library.h"

#if DNNL_VERSION_MAJOR < 3
typedef const dnnl_memory_desc_t *const_dnnl_memory_desc_t;
typedef dnnl_memory_desc_t *lb_memory_desc;
#define LB_DNNL_FUNCTIONS_OF_VERSION(X) \
    X(dnnl_lstm_backward_desc_init_v3)  \
    X(dnnl_lstm_forward_desc_init_v3)   \
    X(dnnl_memory_desc_init_by_tag)     \
    X(dnnl_primitive_desc_create)
#else
typedef dnnl_memory_desc_t lb_memory_desc;
#define LB_DNNL_FUNCTIONS_OF_VERSION(X)         \
    X(dnnl_lstm_backward_primitive_desc_create) \
    X(dnnl_lstm_forward_primitive_desc_create)  \
    X(dnnl_memory_desc_create_with_tag)         \
    X(dnnl_memory_desc_destroy)
#endif

#define LB_DNNL_FUNCTIONS(X)                       \
    LB_DNNL_FUNCTIONS_OF_VERSION(X)                \
    X(dnnl_engine_create)                          \
    X(dnnl_get_effective_cpu_isa)                  \
    X(dnnl_memory_create)                          \
    X(dnnl_memory_desc_get_size)                   \
    X(dnnl_memory_destroy)                         \
    X(dnnl_memory_get_data_handle)                 \
    X(dnnl_memory_set_data_handle)                 \
    X(dnnl_primitive_attr_create)                  \
    X(dnnl_primitive_attr_destroy)                 \
    X(dnnl_primitive_attr_set_rnn_data_qparams)    \
    X(dnnl_primitive_attr_set_rnn_weights_qparams) \
    X(dnnl_primitive_attr_set_scratchpad_mode)     \
    X(dnnl_primitive_create)                       \
    X(dnnl_primitive_desc_destroy)                 \
    X(dnnl_primitive_desc_query)                   \
    X(dnnl_primitive_desc_query_md)                \
    X(dnnl_primitive_destroy)                      \
    X(dnnl_primitive_execute)                      \
    X(dnnl_reorder_primitive_desc_create)          \
    X(dnnl_stream_create)                          \
    X(dnnl_stream_destroy)                         \
    X(dnnl_stream_wait)                            \
    X(dnnl_version)

/* They are there once lb_onednn_library is loaded. */
struct lb_dnnl {
    LB_DNNL_FUNCTIONS(LB_FUNCTION_POINTER)
};
extern struct lb_dnnl lb_dnnl;

/* The arguments of the primitives. The first LB_TENSOR_COUNT are the tensors of an LSTM, in the
 * order of the library's parameters. The backward primitive has its own copy of the weights and its
 * own scratch memory. */
enum lb_slot {
    LB_X,
    LB_H0,
    LB_C0,
    LB_W_IH,
    LB_W_HH,
    LB_PEEPHOLE,
    LB_PROJECTION,
    LB_BIAS,
    LB_Y,
    LB_HN,
    LB_CN,
    LB_TENSOR_COUNT,
    LB_KEPT = LB_TENSOR_COUNT, /* the workspace that forward fills for backward */
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

/* The elements of v [LB_TENSOR_COUNT] as arguments. */
#define LB_TENSORS(v)                                                                \
    (v)[LB_X], (v)[LB_H0], (v)[LB_C0], (v)[LB_W_IH], (v)[LB_W_HH], (v)[LB_PEEPHOLE], \
        (v)[LB_PROJECTION], (v)[LB_BIAS], (v)[LB_Y], (v)[LB_HN], (v)[LB_CN]

static inline dnnl_status_t lb_memory_desc_create(lb_memory_desc *out, int ndims,
                                                  const dnnl_dims_t dims, dnnl_data_type_t type,
                                                  dnnl_format_tag_t tag)
{
#if DNNL_VERSION_MAJOR < 3
    *out = malloc(sizeof(**out));
    return *out ? lb_dnnl.dnnl_memory_desc_init_by_tag(*out, ndims, dims, type, tag)
                : dnnl_out_of_memory;
#else
    return lb_dnnl.dnnl_memory_desc_create_with_tag(out, ndims, dims, type, tag);
#endif
}

/* Accepts NULL. */
static inline void lb_memory_desc_destroy(lb_memory_desc desc)
{
#if DNNL_VERSION_MAJOR < 3
    free(desc);
#else
    lb_dnnl.dnnl_memory_desc_destroy(desc);
#endif
}

/* d [LB_TENSOR_COUNT]: the descriptors of the tensors; NULL for one that the cell does not have. */
static inline dnnl_status_t lb_lstm_forward(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                            dnnl_prop_kind_t kind, dnnl_rnn_direction_t direction,
                                            const lb_memory_desc *d,
                                            const_dnnl_primitive_attr_t attr)
{
#if DNNL_VERSION_MAJOR < 3
    dnnl_rnn_desc_t lstm;
    dnnl_status_t st = lb_dnnl.dnnl_lstm_forward_desc_init_v3(&lstm, kind, direction, LB_TENSORS(d),
                                                              dnnl_rnn_flags_undef);
    return st == dnnl_success ? lb_dnnl.dnnl_primitive_desc_create(out, &lstm, attr, engine, NULL)
                              : st;
#else
    return lb_dnnl.dnnl_lstm_forward_primitive_desc_create(
        out, engine, kind, direction, LB_TENSORS(d), dnnl_rnn_flags_undef, attr);
#endif
}

/* g [LB_TENSOR_COUNT]: the descriptors of the gradients; g[LB_W_IH] describes dw_ih. */
static inline dnnl_status_t lb_lstm_backward(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                             dnnl_rnn_direction_t direction,
                                             const lb_memory_desc *d, const lb_memory_desc *g,
                                             const_dnnl_primitive_desc_t forward,
                                             const_dnnl_primitive_attr_t attr)
{
#if DNNL_VERSION_MAJOR < 3
    dnnl_rnn_desc_t lstm;
    dnnl_status_t st = lb_dnnl.dnnl_lstm_backward_desc_init_v3(
        &lstm, dnnl_backward, direction, LB_TENSORS(d), LB_TENSORS(g), dnnl_rnn_flags_undef);
    return st == dnnl_success
               ? lb_dnnl.dnnl_primitive_desc_create(out, &lstm, attr, engine, forward)
               : st;
#else
    return lb_dnnl.dnnl_lstm_backward_primitive_desc_create(out, engine, dnnl_backward, direction,
                                                            LB_TENSORS(d), LB_TENSORS(g),
                                                            dnnl_rnn_flags_undef, forward, attr);
#endif
}

#endif
