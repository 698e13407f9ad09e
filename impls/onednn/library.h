/* The functions of oneDNN that this implementation calls: lb_dnnl has them once lb_onednn_library
 * is loaded. */
#ifndef LB_ONEDNN_LIBRARY_H
#define LB_ONEDNN_LIBRARY_H

#include <dnnl.h>

#include "host/shared_library.h"

#if DNNL_VERSION_MAJOR < 3
#define LB_DNNL_FUNCTIONS_OF_VERSION(X) \
    X(dnnl_lstm_backward_desc_init_v3)  \
    X(dnnl_lstm_forward_desc_init_v3)   \
    X(dnnl_memory_desc_init_by_tag)     \
    X(dnnl_primitive_desc_create)
#else
#define LB_DNNL_FUNCTIONS_OF_VERSION(X)         \
    X(dnnl_lstm_backward_primitive_desc_create) \
    X(dnnl_lstm_forward_primitive_desc_create)  \
    X(dnnl_memory_desc_create_with_tag)         \
    X(dnnl_memory_desc_destroy)
#endif

#define LB_DNNL_FUNCTIONS(X)                   \
    LB_DNNL_FUNCTIONS_OF_VERSION(X)            \
    X(dnnl_engine_create)                      \
    X(dnnl_memory_create)                      \
    X(dnnl_memory_desc_get_size)               \
    X(dnnl_memory_destroy)                     \
    X(dnnl_memory_get_data_handle)             \
    X(dnnl_memory_set_data_handle)             \
    X(dnnl_primitive_attr_create)              \
    X(dnnl_primitive_attr_destroy)             \
    X(dnnl_primitive_attr_set_scratchpad_mode) \
    X(dnnl_primitive_create)                   \
    X(dnnl_primitive_desc_destroy)             \
    X(dnnl_primitive_desc_query)               \
    X(dnnl_primitive_desc_query_md)            \
    X(dnnl_primitive_destroy)                  \
    X(dnnl_primitive_execute)                  \
    X(dnnl_reorder_primitive_desc_create)      \
    X(dnnl_stream_create)                      \
    X(dnnl_stream_wait)                        \
    X(dnnl_version)

struct lb_dnnl {
    LB_DNNL_FUNCTIONS(LB_FUNCTION_POINTER)
};
extern struct lb_dnnl lb_dnnl;
extern struct lb_shared_library lb_onednn_library;

#endif
