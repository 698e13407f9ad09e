/* The calls of oneDNN 3, which this file implements with oneDNN 2 where only that is installed.
 * Only this file depends on the library's version.
 *
 * Version 2 keeps memory descriptors in structs, and needs a descriptor of an operation before
 * its primitive. Version 3 has handles and no operation descriptors. In both, a
 * const_dnnl_memory_desc_t points to a descriptor. */
#ifndef LB_ONEDNN_COMPAT_H
#define LB_ONEDNN_COMPAT_H

#include <stdlib.h>

#include "impls/onednn/library.h"

#if DNNL_VERSION_MAJOR < 3
typedef const dnnl_memory_desc_t *const_dnnl_memory_desc_t;
typedef dnnl_memory_desc_t *lb_memory_desc;
#else
typedef dnnl_memory_desc_t lb_memory_desc;
#endif

/* The descriptors of an LSTM's tensors, in the order of the library's arguments. */
struct lb_lstm_descs {
    const_dnnl_memory_desc_t x, h0, c0, w_ih, w_hh, bias, y, hn, cn;
    const_dnnl_memory_desc_t peephole, projection; /* NULL: the cell has none */
};

#if DNNL_VERSION_MAJOR < 3

static inline dnnl_status_t lb_memory_desc_create(lb_memory_desc *out, int ndims,
                                                  const dnnl_dims_t dims, dnnl_data_type_t type,
                                                  dnnl_format_tag_t tag)
{
    *out = malloc(sizeof(**out));
    return *out ? lb_dnnl.dnnl_memory_desc_init_by_tag(*out, ndims, dims, type, tag)
                : dnnl_out_of_memory;
}

static inline void lb_memory_desc_destroy(lb_memory_desc desc)
{
    free(desc);
}

static inline dnnl_status_t lb_lstm_forward(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                            dnnl_prop_kind_t kind, dnnl_rnn_direction_t direction,
                                            const struct lb_lstm_descs *d,
                                            const_dnnl_primitive_attr_t attr)
{
    dnnl_rnn_desc_t lstm;
    dnnl_status_t st = lb_dnnl.dnnl_lstm_forward_desc_init_v3(
        &lstm, kind, direction, d->x, d->h0, d->c0, d->w_ih, d->w_hh, d->peephole, d->projection,
        d->bias, d->y, d->hn, d->cn, dnnl_rnn_flags_undef);
    return st == dnnl_success ? lb_dnnl.dnnl_primitive_desc_create(out, &lstm, attr, engine, NULL)
                              : st;
}

/* g has the descriptors of the gradients: g->w_ih describes dw_ih. */
static inline dnnl_status_t
lb_lstm_backward(dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_rnn_direction_t direction,
                 const struct lb_lstm_descs *d, const struct lb_lstm_descs *g,
                 const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    dnnl_rnn_desc_t lstm;
    dnnl_status_t st = lb_dnnl.dnnl_lstm_backward_desc_init_v3(
        &lstm, dnnl_backward, direction, d->x, d->h0, d->c0, d->w_ih, d->w_hh, d->peephole,
        d->projection, d->bias, d->y, d->hn, d->cn, g->x, g->h0, g->c0, g->w_ih, g->w_hh,
        g->peephole, g->projection, g->bias, g->y, g->hn, g->cn, dnnl_rnn_flags_undef);
    return st == dnnl_success
               ? lb_dnnl.dnnl_primitive_desc_create(out, &lstm, attr, engine, forward)
               : st;
}

#else

static inline dnnl_status_t lb_memory_desc_create(lb_memory_desc *out, int ndims,
                                                  const dnnl_dims_t dims, dnnl_data_type_t type,
                                                  dnnl_format_tag_t tag)
{
    return lb_dnnl.dnnl_memory_desc_create_with_tag(out, ndims, dims, type, tag);
}

static inline void lb_memory_desc_destroy(lb_memory_desc desc)
{
    lb_dnnl.dnnl_memory_desc_destroy(desc);
}

static inline dnnl_status_t lb_lstm_forward(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                            dnnl_prop_kind_t kind, dnnl_rnn_direction_t direction,
                                            const struct lb_lstm_descs *d,
                                            const_dnnl_primitive_attr_t attr)
{
    return lb_dnnl.dnnl_lstm_forward_primitive_desc_create(
        out, engine, kind, direction, d->x, d->h0, d->c0, d->w_ih, d->w_hh, d->peephole,
        d->projection, d->bias, d->y, d->hn, d->cn, dnnl_rnn_flags_undef, attr);
}

static inline dnnl_status_t
lb_lstm_backward(dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_rnn_direction_t direction,
                 const struct lb_lstm_descs *d, const struct lb_lstm_descs *g,
                 const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    return lb_dnnl.dnnl_lstm_backward_primitive_desc_create(
        out, engine, dnnl_backward, direction, d->x, d->h0, d->c0, d->w_ih, d->w_hh, d->peephole,
        d->projection, d->bias, d->y, d->hn, d->cn, g->x, g->h0, g->c0, g->w_ih, g->w_hh,
        g->peephole, g->projection, g->bias, g->y, g->hn, g->cn, dnnl_rnn_flags_undef, forward,
        attr);
}

#endif
#endif
