/* One layer of oneDNN's LSTM: its primitives and their memory objects. */
#include "impls/onednn/layer.h"

#include <stdio.h>
#include <string.h>

struct lb_dnnl lb_dnnl;

static void print_version(char *text, size_t size)
{
    const dnnl_version_t *v = lb_dnnl.dnnl_version();
    snprintf(text, size, "%d.%d.%d", v->major, v->minor, v->patch);
}

struct lb_shared_library lb_onednn_library = {
    .name = "oneDNN",
    .file = LB_ONEDNN_FILE,
    .built = LB_VERSION_TEXT(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH),
    LB_FUNCTIONS_OF(LB_DNNL_FUNCTIONS, lb_dnnl),
    .print_version = print_version,
};

/* Calls a function of the library, and jumps to the label `done` when it fails. */
#define TRY_DNNL(call)                             \
    do {                                           \
        st = lb_onednn_status((call), #call, err); \
        if (st != LB_OK)                           \
            goto done;                             \
    } while (0)

/* For each slot: its argument number, the primitive that sets its format, and the primitives that
 * take it. */
static const struct {
    int arg;
    bool of_backward, in_forward, in_backward;
} slots[LB_SLOT_COUNT] = {
    [LB_X] = {DNNL_ARG_SRC_LAYER, false, true, true},
    [LB_H0] = {DNNL_ARG_SRC_ITER, false, true, true},
    [LB_C0] = {DNNL_ARG_SRC_ITER_C, false, true, true},
    [LB_W_IH] = {DNNL_ARG_WEIGHTS_LAYER, false, true, false},
    [LB_W_HH] = {DNNL_ARG_WEIGHTS_ITER, false, true, false},
    [LB_BIAS] = {DNNL_ARG_BIAS, false, true, true},
    [LB_PEEPHOLE] = {DNNL_ARG_WEIGHTS_PEEPHOLE, false, true, true},
    [LB_PROJECTION] = {DNNL_ARG_WEIGHTS_PROJECTION, false, true, false},
    [LB_Y] = {DNNL_ARG_DST_LAYER, false, true, true},
    [LB_HN] = {DNNL_ARG_DST_ITER, false, true, true},
    [LB_CN] = {DNNL_ARG_DST_ITER_C, false, true, true},
    [LB_KEPT] = {DNNL_ARG_WORKSPACE, false, true, true},
    [LB_SCRATCH] = {DNNL_ARG_SCRATCHPAD, false, true, false},
    [LB_BACK_W_IH] = {DNNL_ARG_WEIGHTS_LAYER, true, false, true},
    [LB_BACK_W_HH] = {DNNL_ARG_WEIGHTS_ITER, true, false, true},
    [LB_BACK_SCRATCH] = {DNNL_ARG_SCRATCHPAD, true, false, true},
    [LB_DX] = {DNNL_ARG_DIFF_SRC_LAYER, true, false, true},
    [LB_DH0] = {DNNL_ARG_DIFF_SRC_ITER, true, false, true},
    [LB_DC0] = {DNNL_ARG_DIFF_SRC_ITER_C, true, false, true},
    [LB_DW_IH] = {DNNL_ARG_DIFF_WEIGHTS_LAYER, true, false, true},
    [LB_DW_HH] = {DNNL_ARG_DIFF_WEIGHTS_ITER, true, false, true},
    [LB_DBIAS] = {DNNL_ARG_DIFF_BIAS, true, false, true},
    [LB_DPEEPHOLE] = {DNNL_ARG_DIFF_WEIGHTS_PEEPHOLE, true, false, true},
    [LB_DY] = {DNNL_ARG_DIFF_DST_LAYER, true, false, true},
    [LB_DHN] = {DNNL_ARG_DIFF_DST_ITER, true, false, true},
    [LB_DCN] = {DNNL_ARG_DIFF_DST_ITER_C, true, false, true},
};

enum lb_status lb_onednn_status(dnnl_status_t status, const char *what, struct lb_error *err)
{
    size_t prefix = strcspn(what, ".(");
    if (what[prefix] == '.') /* of "lb_dnnl.dnnl_primitive_create(" */
        what += prefix + 1;
    int length = (int)strcspn(what, "(");
    switch (status) {
    case dnnl_success: return LB_OK;
    case dnnl_unimplemented:
        return lb_fail(err, LB_UNSUPPORTED, "oneDNN has no kernel for this problem on this CPU");
    case dnnl_out_of_memory:
        return lb_fail(err, LB_OOM, "%.*s: oneDNN is out of memory", length, what);
    default: return lb_fail(err, LB_FAILED, "%.*s failed, status %d", length, what, (int)status);
    }
}

enum lb_status lb_onednn_open(dnnl_engine_t *engine, dnnl_stream_t *stream, struct lb_error *err)
{
    static dnnl_engine_t the_engine; /* one per process, never closed */
    static dnnl_stream_t the_stream;
    enum lb_status st = LB_OK;
    if (!the_engine)
        TRY_DNNL(lb_dnnl.dnnl_engine_create(&the_engine, dnnl_cpu, 0));
    if (!the_stream)
        TRY_DNNL(lb_dnnl.dnnl_stream_create(&the_stream, the_engine, dnnl_stream_default_flags));
    *engine = the_engine;
    *stream = the_stream;
done:
    return st;
}

/* The descriptors of a layer's tensors or of their gradients. Those in `owned` must be
 * destroyed. */
struct descs {
    struct lb_lstm_descs of;
    lb_memory_desc owned[11];
    size_t count;
};

static void destroy_descs(struct descs *descs)
{
    while (descs->count > 0)
        lb_memory_desc_destroy(descs->owned[--descs->count]);
}

static enum lb_status create_descs(const struct lb_problem *p, int64_t input, bool gradient,
                                   struct descs *descs, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    int64_t T = p->seq_len, B = p->batch, H = p->hidden, D = p->directions, P = lb_h_size(p);
    dnnl_data_type_t type = p->dtype == LB_BF16 && !gradient ? dnnl_bf16 : dnnl_f32;
    struct lb_lstm_descs *of = &descs->of;
    const struct {
        const_dnnl_memory_desc_t *desc;
        int ndims;
        dnnl_dims_t dims;
        dnnl_data_type_t type;
        dnnl_format_tag_t tag;
    } rows[] = {
        {&of->x, 3, {T, B, input}, type, dnnl_tnc},
        {&of->h0, 4, {1, D, B, P}, type, dnnl_ldnc},
        {&of->c0, 4, {1, D, B, H}, dnnl_f32, dnnl_ldnc},
        {&of->w_ih, 5, {1, D, input, 4, H}, type, dnnl_format_tag_any},
        {&of->w_hh, 5, {1, D, P, 4, H}, type, dnnl_format_tag_any},
        {&of->bias, 4, {1, D, 4, H}, dnnl_f32, dnnl_ldgo},
        {&of->y, 3, {T, B, D * P}, type, dnnl_tnc},
        {&of->hn, 4, {1, D, B, P}, type, dnnl_ldnc},
        {&of->cn, 4, {1, D, B, H}, dnnl_f32, dnnl_ldnc},
        {&of->peephole, 4, {1, D, 3, H}, dnnl_f32, dnnl_ldgo},
        {&of->projection, 4, {1, D, H, P}, type, dnnl_format_tag_any},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if ((rows[i].desc == &of->peephole && p->cell != LB_CELL_PEEPHOLE) ||
            (rows[i].desc == &of->projection && p->cell != LB_CELL_PROJECTION))
            continue;
        lb_memory_desc *owned = &descs->owned[descs->count];
        *owned = NULL;
        descs->count++;
        TRY_DNNL(
            lb_memory_desc_create(owned, rows[i].ndims, rows[i].dims, rows[i].type, rows[i].tag));
        *rows[i].desc = *owned;
    }
done:
    return st;
}

static enum lb_status create_memory(struct lb_onednn_layer *layer, dnnl_engine_t engine,
                                    struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (size_t i = 0; i < LB_SLOT_COUNT; i++) {
        dnnl_primitive_desc_t pd = slots[i].of_backward ? layer->backward_pd : layer->forward_pd;
        const_dnnl_memory_desc_t desc =
            pd ? lb_dnnl.dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, slots[i].arg)
               : NULL;
        if (desc && lb_dnnl.dnnl_memory_desc_get_size(desc) > 0)
            TRY_DNNL(lb_dnnl.dnnl_memory_create(&layer->memory[i], desc, engine, DNNL_MEMORY_NONE));
    }
done:
    return st;
}

enum lb_status lb_onednn_layer_create(const struct lb_problem *problem, int64_t input,
                                      struct lb_onednn_layer *layer, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr = NULL;
    struct descs descs = {.count = 0}, gradients = {.count = 0};
    dnnl_prop_kind_t kind = lb_trains(problem) ? dnnl_forward_training : dnnl_forward_inference;
    dnnl_rnn_direction_t direction =
        problem->directions == 2 ? dnnl_bidirectional_concat : dnnl_unidirectional_left2right;
    layer->input = input;
    LB_TRY(lb_onednn_open(&engine, &stream, err));
    LB_TRY(create_descs(problem, input, false, &descs, err));
    TRY_DNNL(lb_dnnl.dnnl_primitive_attr_create(&attr));
    TRY_DNNL(lb_dnnl.dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
    TRY_DNNL(lb_lstm_forward(&layer->forward_pd, engine, kind, direction, &descs.of, attr));
    TRY_DNNL(lb_dnnl.dnnl_primitive_create(&layer->forward, layer->forward_pd));
    if (lb_has_backward(problem)) {
        LB_TRY(create_descs(problem, input, true, &gradients, err));
        TRY_DNNL(lb_lstm_backward(&layer->backward_pd, engine, direction, &descs.of, &gradients.of,
                                  layer->forward_pd, attr));
        TRY_DNNL(lb_dnnl.dnnl_primitive_create(&layer->backward, layer->backward_pd));
    }
    LB_TRY(create_memory(layer, engine, err));
done:
    destroy_descs(&gradients);
    destroy_descs(&descs);
    if (attr)
        lb_dnnl.dnnl_primitive_attr_destroy(attr);
    return st;
}

void lb_onednn_layer_destroy(struct lb_onednn_layer *layer)
{
    for (size_t i = 0; i < LB_SLOT_COUNT; i++)
        if (layer->memory[i])
            lb_dnnl.dnnl_memory_destroy(layer->memory[i]);
    if (layer->backward)
        lb_dnnl.dnnl_primitive_destroy(layer->backward);
    if (layer->backward_pd)
        lb_dnnl.dnnl_primitive_desc_destroy(layer->backward_pd);
    if (layer->forward)
        lb_dnnl.dnnl_primitive_destroy(layer->forward);
    if (layer->forward_pd)
        lb_dnnl.dnnl_primitive_desc_destroy(layer->forward_pd);
}

static const_dnnl_memory_desc_t desc_of(const struct lb_onednn_layer *layer, enum lb_slot slot)
{
    dnnl_primitive_desc_t pd = slots[slot].of_backward ? layer->backward_pd : layer->forward_pd;
    return lb_dnnl.dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, slots[slot].arg);
}

size_t lb_onednn_bytes(const struct lb_onednn_layer *layer, enum lb_slot slot)
{
    return layer->memory[slot] ? lb_dnnl.dnnl_memory_desc_get_size(desc_of(layer, slot)) : 0;
}

enum lb_status lb_onednn_set_data(const struct lb_onednn_layer *layer, enum lb_slot slot,
                                  void *data, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    if (layer->memory[slot])
        TRY_DNNL(lb_dnnl.dnnl_memory_set_data_handle(layer->memory[slot], data));
done:
    return st;
}

static enum lb_status run(const struct lb_onednn_layer *layer, dnnl_primitive_t primitive,
                          bool backward, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_exec_arg_t args[LB_SLOT_COUNT];
    int count = 0;
    LB_TRY(lb_onednn_open(&engine, &stream, err));
    for (size_t i = 0; i < LB_SLOT_COUNT; i++)
        if (layer->memory[i] && (backward ? slots[i].in_backward : slots[i].in_forward))
            args[count++] = (dnnl_exec_arg_t){slots[i].arg, layer->memory[i]};
    TRY_DNNL(lb_dnnl.dnnl_primitive_execute(primitive, stream, count, args));
    TRY_DNNL(lb_dnnl.dnnl_stream_wait(stream));
done:
    return st;
}

enum lb_status lb_onednn_forward(const struct lb_onednn_layer *layer, struct lb_error *err)
{
    return run(layer, layer->forward, false, err);
}

enum lb_status lb_onednn_backward(const struct lb_onednn_layer *layer, struct lb_error *err)
{
    return run(layer, layer->backward, true, err);
}

enum lb_status lb_onednn_reorder(const struct lb_problem *problem,
                                 const struct lb_onednn_layer *layer, enum lb_slot slot,
                                 int64_t columns, dnnl_data_type_t type, void *plain, bool to_slot,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    lb_memory_desc desc = NULL;
    dnnl_memory_t memory = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t reorder = NULL;
    int64_t D = problem->directions, H = problem->hidden;
    dnnl_dims_t matrix = {1, D, columns, 4, H}, vector = {1, D, 4, H};
    dnnl_dims_t peepholes = {1, D, 3, H}, projection = {1, D, H, lb_h_size(problem)};
    const_dnnl_memory_desc_t of_slot = desc_of(layer, slot);
    LB_TRY(lb_onednn_open(&engine, &stream, err));
    if (columns > 0)
        TRY_DNNL(lb_memory_desc_create(&desc, 5, matrix, type, dnnl_ldgoi));
    else if (slot == LB_PROJECTION)
        TRY_DNNL(lb_memory_desc_create(&desc, 4, projection, type, dnnl_ldoi));
    else if (slot == LB_PEEPHOLE || slot == LB_DPEEPHOLE)
        TRY_DNNL(lb_memory_desc_create(&desc, 4, peepholes, type, dnnl_ldgo));
    else
        TRY_DNNL(lb_memory_desc_create(&desc, 4, vector, type, dnnl_ldgo));
    TRY_DNNL(lb_dnnl.dnnl_memory_create(&memory, desc, engine, plain));
    TRY_DNNL(lb_dnnl.dnnl_reorder_primitive_desc_create(&pd, to_slot ? desc : of_slot, engine,
                                                        to_slot ? of_slot : desc, engine, NULL));
    TRY_DNNL(lb_dnnl.dnnl_primitive_create(&reorder, pd));
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_FROM, to_slot ? memory : layer->memory[slot]},
        {DNNL_ARG_TO, to_slot ? layer->memory[slot] : memory},
    };
    TRY_DNNL(lb_dnnl.dnnl_primitive_execute(reorder, stream, 2, args));
    TRY_DNNL(lb_dnnl.dnnl_stream_wait(stream));
done:
    if (reorder)
        lb_dnnl.dnnl_primitive_destroy(reorder);
    if (pd)
        lb_dnnl.dnnl_primitive_desc_destroy(pd);
    if (memory)
        lb_dnnl.dnnl_memory_destroy(memory);
    lb_memory_desc_destroy(desc);
    return st;
}
