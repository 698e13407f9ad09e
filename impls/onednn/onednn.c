/* onednn: oneDNN's LSTM primitive, one per layer. It supports f32 and bf16, both directions and
 * all passes, and int8 for inference; of the cells other than the standard one peephole, and
 * projection without backward.
 *
 * `prepare` converts the weights to the format that the library asks for. With bf16, the library
 * requires cell states and all gradients in f32; converting them is part of the timed call.
 *
 * int8 is what the library calls f32u8f32f32, with the integers of int8.h and 128 added to those of
 * x and h: one scale for both, which is 127 because w_ih takes over that of x. Both directions of a
 * layer share the scales of the weights, and y and hn are rounded to whole 127ths. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/impl.h"
#include "api/int8.h"
#include "base/arena.h"
#include "impls/common/simd_kernels.h"
#include "impls/onednn/compat.h"

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

/* The status of a call of the library, or of a function of compat.h. */
#define DNNL(call)   status_of(lb_dnnl.call, #call, err)
#define COMPAT(call) status_of(call, #call, err)

/* Destroys an object of the library, unless it is NULL. */
#define DESTROY(kind, object)                      \
    do {                                           \
        if (object)                                \
            lb_dnnl.dnnl_##kind##_destroy(object); \
    } while (0)

/* Where the data of a slot are: in the caller's tensors or in arrays of struct onednn, or in a
 * buffer of the harness, layer by layer. Primitives run one at a time, and share the workspace. */
enum place { ELSEWHERE, WEIGHTS, GRADIENTS, RESERVE, WORKSPACE, PLACES };

/* The primitives that take a slot. Where both do, forward sets its format. */
enum taker { FORWARD, BOTH, BACKWARD };

/* For each slot: its argument number; who takes it; of which tensor it is a copy or the gradient;
 * and its place. */
static const struct {
    int arg;
    enum taker taker;
    enum lb_slot tensor;
    enum place place;
} slots[LB_SLOT_COUNT] = {
    [LB_X] = {DNNL_ARG_SRC_LAYER, BOTH, LB_X, ELSEWHERE},
    [LB_H0] = {DNNL_ARG_SRC_ITER, BOTH, LB_H0, ELSEWHERE},
    [LB_C0] = {DNNL_ARG_SRC_ITER_C, BOTH, LB_C0, ELSEWHERE},
    [LB_W_IH] = {DNNL_ARG_WEIGHTS_LAYER, FORWARD, LB_W_IH, WEIGHTS},
    [LB_W_HH] = {DNNL_ARG_WEIGHTS_ITER, FORWARD, LB_W_HH, WEIGHTS},
    [LB_PEEPHOLE] = {DNNL_ARG_WEIGHTS_PEEPHOLE, BOTH, LB_PEEPHOLE, WEIGHTS},
    [LB_PROJECTION] = {DNNL_ARG_WEIGHTS_PROJECTION, FORWARD, LB_PROJECTION, WEIGHTS},
    [LB_BIAS] = {DNNL_ARG_BIAS, BOTH, LB_BIAS, WEIGHTS},
    [LB_Y] = {DNNL_ARG_DST_LAYER, BOTH, LB_Y, ELSEWHERE},
    [LB_HN] = {DNNL_ARG_DST_ITER, BOTH, LB_HN, ELSEWHERE},
    [LB_CN] = {DNNL_ARG_DST_ITER_C, BOTH, LB_CN, ELSEWHERE},
    [LB_KEPT] = {DNNL_ARG_WORKSPACE, BOTH, LB_KEPT, RESERVE},
    [LB_SCRATCH] = {DNNL_ARG_SCRATCHPAD, FORWARD, LB_SCRATCH, WORKSPACE},
    [LB_BACK_W_IH] = {DNNL_ARG_WEIGHTS_LAYER, BACKWARD, LB_W_IH, WEIGHTS},
    [LB_BACK_W_HH] = {DNNL_ARG_WEIGHTS_ITER, BACKWARD, LB_W_HH, WEIGHTS},
    [LB_BACK_SCRATCH] = {DNNL_ARG_SCRATCHPAD, BACKWARD, LB_SCRATCH, WORKSPACE},
    [LB_DX] = {DNNL_ARG_DIFF_SRC_LAYER, BACKWARD, LB_X, ELSEWHERE},
    [LB_DH0] = {DNNL_ARG_DIFF_SRC_ITER, BACKWARD, LB_H0, ELSEWHERE},
    [LB_DC0] = {DNNL_ARG_DIFF_SRC_ITER_C, BACKWARD, LB_C0, ELSEWHERE},
    [LB_DW_IH] = {DNNL_ARG_DIFF_WEIGHTS_LAYER, BACKWARD, LB_W_IH, GRADIENTS},
    [LB_DW_HH] = {DNNL_ARG_DIFF_WEIGHTS_ITER, BACKWARD, LB_W_HH, GRADIENTS},
    [LB_DBIAS] = {DNNL_ARG_DIFF_BIAS, BACKWARD, LB_BIAS, GRADIENTS},
    [LB_DPEEPHOLE] = {DNNL_ARG_DIFF_WEIGHTS_PEEPHOLE, BACKWARD, LB_PEEPHOLE, GRADIENTS},
    [LB_DY] = {DNNL_ARG_DIFF_DST_LAYER, BACKWARD, LB_Y, ELSEWHERE},
    [LB_DHN] = {DNNL_ARG_DIFF_DST_ITER, BACKWARD, LB_HN, ELSEWHERE},
    [LB_DCN] = {DNNL_ARG_DIFF_DST_ITER_C, BACKWARD, LB_CN, ELSEWHERE},
};

/* The process's engine, opened for its first case and never closed. */
static dnnl_engine_t engine;

struct layer {
    int64_t input;                                 /* I_l */
    bool last;                                     /* its output is y */
    dnnl_primitive_desc_t forward_pd, backward_pd; /* backward_pd: NULL when only inferring */
    dnnl_primitive_t forward, backward;
    dnnl_memory_t memory[LB_SLOT_COUNT]; /* NULL where the primitives have no such argument */
};

struct onednn {
    struct lb_problem problem;
    dnnl_stream_t stream;
    struct layer *layers;               /* [L]; owned */
    size_t L, size;                     /* layers; bytes of one element in the dtype */
    struct lb_counts n;                 /* elements of [T, B, I], [T, B, D*P] and [L*D, B, H] */
    size_t h;                           /* of [L*D, B, P]; with a backward P is H */
    const struct lb_simd_kernels *bf16; /* whose conversions are used */

    /* In the harness's buffers; NULL where the pass or the dtype needs none. */
    char *lower;               /* outputs of all layers but the last, each [T, B, D*P]; dtype */
    char *hn;                  /* [L*D, B, P] dtype, kept for backward */
    float *c0, *cn;            /* [L*D, B, H] */
    float *dy, *dhn, *dcn;     /* f32 copies of the caller's bf16 tensors */
    float *dx, *dh0, *dc0;     /* likewise */
    uint8_t *x;                /* [T, B, I] of int8 */
    dnnl_primitive_t quantise; /* from the caller's x to it, between the two memories; owned */
    dnnl_memory_t from, to;
    float x_max;       /* of int8, as in struct lb_buffers */
    float most_weight; /* of int8: to which the largest weight of a channel is rounded */
    float *dlower[2];  /* [T, B, D*H] gradients of the outputs of two layers below the top one */
    char description[256];
};

static enum lb_status onednn_supports(const struct lb_problem *p,
                                      const struct lb_exec_config *config, struct lb_error *why)
{
    (void)config;
    if (p->dtype != LB_F32 && p->dtype != LB_BF16 && p->dtype != LB_INT8)
        return lb_fail(why, LB_UNSUPPORTED,
                       "dtype %s: on a CPU, oneDNN's LSTM has f32, bf16 and int8 only",
                       lb_dtype_name(p->dtype));
    if (p->math != LB_IEEE)
        return lb_fail(why, LB_UNSUPPORTED, "math %s: oneDNN computes f32 in full precision here",
                       lb_math_name(p->math));
    if (p->act != LB_ACT_TANH)
        return lb_fail(why, LB_UNSUPPORTED, "act-%s: oneDNN's LSTM has tanh only",
                       lb_act_name(p->act));
    if (p->cell == LB_CELL_PROJECTION && lb_has_backward(p))
        return lb_fail(why, LB_UNSUPPORTED,
                       "pass %s: oneDNN's LSTM with projection has no backward pass",
                       lb_pass_name(p->pass));
    if (p->cell == LB_CELL_PROJECTION && p->pass == LB_INFER && p->dtype == LB_BF16)
        return lb_fail(why, LB_UNSUPPORTED,
                       "dtype bf16: with projection oneDNN's inference is wrong (seen in 2.6.3)");
    if (p->ragged)
        return lb_fail(why, LB_UNSUPPORTED, "ragged: oneDNN's LSTM takes full lengths only");
    return LB_OK;
}

/* Converts the status of the library's call to LB_OK, LB_UNSUPPORTED, LB_OOM or LB_FAILED. */
static enum lb_status status_of(dnnl_status_t status, const char *call, struct lb_error *err)
{
    int length = (int)strcspn(call, "("); /* of the name in "dnnl_primitive_create(&layer->..." */
    switch (status) {
    case dnnl_success: return LB_OK;
    case dnnl_unimplemented:
        return lb_fail(err, LB_UNSUPPORTED, "oneDNN has no kernel for this problem on this CPU");
    case dnnl_out_of_memory:
        return lb_fail(err, LB_OOM, "%.*s: oneDNN is out of memory", length, call);
    default: return lb_fail(err, LB_FAILED, "%.*s failed, status %d", length, call, (int)status);
    }
}

/* A tensor of a layer in a plain format. */
struct plain {
    int ndims;
    dnnl_dims_t dims;
    dnnl_format_tag_t tag;
    bool packed; /* the primitives choose the format */
    bool wide;   /* f32 where the dtype is bf16 */
};

/* x [T, B, I_l], h0 [D, B, P], where P is the size of h, and so on. The weights have the canonical
 * layout, one matrix per direction; those of int8 are transposed, which alone the library's reorder
 * takes. */
static struct plain plain_of(const struct lb_problem *p, int64_t input, enum lb_slot tensor)
{
    int64_t T = p->seq_len, B = p->batch, H = p->hidden, D = p->directions, P = lb_h_size(p);
    dnnl_format_tag_t weights = p->dtype == LB_INT8 ? dnnl_ldigo : dnnl_ldgoi;
    const struct plain tensors[LB_TENSOR_COUNT] = {
        [LB_X] = {3, {T, B, input}, dnnl_tnc, false, false},
        [LB_H0] = {4, {1, D, B, P}, dnnl_ldnc, false, false},
        [LB_C0] = {4, {1, D, B, H}, dnnl_ldnc, false, true},
        [LB_W_IH] = {5, {1, D, input, 4, H}, weights, true, false},
        [LB_W_HH] = {5, {1, D, P, 4, H}, weights, true, false},
        [LB_PEEPHOLE] = {4, {1, D, 3, H}, dnnl_ldgo, false, true},
        [LB_PROJECTION] = {4, {1, D, H, P}, dnnl_ldoi, true, false},
        [LB_BIAS] = {4, {1, D, 4, H}, dnnl_ldgo, false, true},
        [LB_Y] = {3, {T, B, D * P}, dnnl_tnc, false, false},
        [LB_HN] = {4, {1, D, B, P}, dnnl_ldnc, false, false},
        [LB_CN] = {4, {1, D, B, H}, dnnl_ldnc, false, true},
    };
    return tensors[tensor];
}

/* The type in which a tensor's elements, or those of its gradient, are kept. */
static dnnl_data_type_t type_of(const struct lb_problem *p, const struct plain *plain,
                                bool gradient)
{
    return p->dtype == LB_BF16 && !plain->wide && !gradient ? dnnl_bf16 : dnnl_f32;
}

/* The type in which a layer's primitives take a tensor or its gradient. */
static dnnl_data_type_t taken_type(const struct lb_problem *p, const struct layer *layer,
                                   enum lb_slot tensor, bool gradient)
{
    struct plain plain = plain_of(p, layer->input, tensor);
    if (p->dtype == LB_INT8 && (tensor == LB_W_IH || tensor == LB_W_HH))
        return dnnl_s8;
    if (p->dtype == LB_INT8 && (tensor == LB_X || (tensor == LB_Y && !layer->last)))
        return dnnl_u8;
    return type_of(p, &plain, gradient);
}

/* Creates the descriptors of a layer's tensors or of their gradients; the caller destroys them. */
static enum lb_status create_descs(const struct lb_problem *p, const struct layer *layer,
                                   bool gradient, lb_memory_desc descs[LB_TENSOR_COUNT],
                                   struct lb_error *err)
{
    for (enum lb_slot i = 0; i < LB_TENSOR_COUNT; i++) {
        struct plain plain = plain_of(p, layer->input, i);
        if ((i == LB_PEEPHOLE && p->cell != LB_CELL_PEEPHOLE) ||
            (i == LB_PROJECTION && p->cell != LB_CELL_PROJECTION))
            continue;
        LB_CHECK(COMPAT(lb_memory_desc_create(&descs[i], plain.ndims, plain.dims,
                                              taken_type(p, layer, i, gradient),
                                              plain.packed ? dnnl_format_tag_any : plain.tag)));
    }
    return LB_OK;
}

static const_dnnl_memory_desc_t desc_of(const struct layer *layer, enum lb_slot slot)
{
    dnnl_primitive_desc_t pd =
        slots[slot].taker == BACKWARD ? layer->backward_pd : layer->forward_pd;
    return pd ? lb_dnnl.dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, slots[slot].arg)
              : NULL;
}

static enum lb_status create_memory(struct layer *layer, struct lb_error *err)
{
    for (enum lb_slot i = 0; i < LB_SLOT_COUNT; i++) {
        const_dnnl_memory_desc_t desc = desc_of(layer, i);
        if (desc && lb_dnnl.dnnl_memory_desc_get_size(desc) > 0)
            LB_CHECK(DNNL(dnnl_memory_create(&layer->memory[i], desc, engine, DNNL_MEMORY_NONE)));
    }
    return LB_OK;
}

/* Adds the scales of int8: that of x and h, and those of the gates of w_ih and w_hh, [4H], which
 * stay 1 where scales is NULL. */
static enum lb_status set_scales(const struct lb_problem *p, dnnl_primitive_attr_t attr,
                                 const float *scales, struct lb_error *err)
{
    enum { GATES_AND_UNITS = 1 << 3 | 1 << 4 }; /* of the dimensions l d i g o */
    if (p->dtype != LB_INT8)
        return LB_OK;
    LB_CHECK(DNNL(dnnl_primitive_attr_set_rnn_data_qparams(attr, 127, 128)));
    if (scales)
        LB_CHECK(DNNL(dnnl_primitive_attr_set_rnn_weights_qparams(attr, 4 * p->hidden,
                                                                  GATES_AND_UNITS, scales)));
    return LB_OK;
}

/* Builds the primitives of a layer: forward, and backward where the pass has it. c0 and cn and,
 * with bf16, all gradients are f32. scales: of int8, from prepare on. The caller destroys a
 * half-built layer. */
static enum lb_status create_layer(const struct lb_problem *problem, const float *scales,
                                   struct layer *layer, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    dnnl_primitive_attr_t attr = NULL;
    lb_memory_desc descs[LB_TENSOR_COUNT] = {NULL}, gradients[LB_TENSOR_COUNT] = {NULL};
    dnnl_prop_kind_t kind = lb_trains(problem) ? dnnl_forward_training : dnnl_forward_inference;
    dnnl_rnn_direction_t direction =
        problem->directions == 2 ? dnnl_bidirectional_concat : dnnl_unidirectional_left2right;
    LB_TRY(create_descs(problem, layer, false, descs, err));
    LB_TRY(DNNL(dnnl_primitive_attr_create(&attr)));
    LB_TRY(DNNL(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user)));
    LB_TRY(set_scales(problem, attr, scales, err));
    LB_TRY(COMPAT(lb_lstm_forward(&layer->forward_pd, engine, kind, direction, descs, attr)));
    LB_TRY(DNNL(dnnl_primitive_create(&layer->forward, layer->forward_pd)));
    if (lb_has_backward(problem)) {
        LB_TRY(create_descs(problem, layer, true, gradients, err));
        LB_TRY(COMPAT(lb_lstm_backward(&layer->backward_pd, engine, direction, descs, gradients,
                                       layer->forward_pd, attr)));
        LB_TRY(DNNL(dnnl_primitive_create(&layer->backward, layer->backward_pd)));
    }
    LB_TRY(create_memory(layer, err));
done:
    for (size_t i = 0; i < LB_TENSOR_COUNT; i++) {
        lb_memory_desc_destroy(descs[i]);
        lb_memory_desc_destroy(gradients[i]);
    }
    DESTROY(primitive_attr, attr);
    return st;
}

static void destroy_layer(struct layer *layer)
{
    for (size_t i = 0; i < LB_SLOT_COUNT; i++)
        DESTROY(memory, layer->memory[i]);
    DESTROY(primitive, layer->backward);
    DESTROY(primitive_desc, layer->backward_pd);
    DESTROY(primitive, layer->forward);
    DESTROY(primitive_desc, layer->forward_pd);
    *layer = (struct layer){.input = layer->input, .last = layer->last};
}

/* Bytes that a slot needs; 0 when the layer does not use it. */
static size_t bytes_of(const struct layer *layer, enum lb_slot slot)
{
    return layer->memory[slot] ? lb_dnnl.dnnl_memory_desc_get_size(desc_of(layer, slot)) : 0;
}

/* Sets the address of a slot's data. */
static enum lb_status set_data(const struct layer *layer, enum lb_slot slot, const void *data,
                               struct lb_error *err)
{
    if (layer->memory[slot])
        LB_CHECK(DNNL(dnnl_memory_set_data_handle(layer->memory[slot], (void *)(uintptr_t)data)));
    return LB_OK;
}

/* Runs a primitive and waits for it. */
static enum lb_status execute(dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                              const dnnl_exec_arg_t *args, struct lb_error *err)
{
    LB_CHECK(DNNL(dnnl_primitive_execute(primitive, stream, count, args)));
    return DNNL(dnnl_stream_wait(stream));
}

static enum lb_status run(const struct onednn *net, size_t l, bool backward, struct lb_error *err)
{
    const struct layer *layer = &net->layers[l];
    dnnl_exec_arg_t args[LB_SLOT_COUNT];
    int count = 0;
    for (size_t i = 0; i < LB_SLOT_COUNT; i++)
        if (layer->memory[i] && slots[i].taker != (backward ? FORWARD : BACKWARD))
            args[count++] = (dnnl_exec_arg_t){slots[i].arg, layer->memory[i]};
    return execute(backward ? layer->backward : layer->forward, net->stream, count, args, err);
}

/* Converts the plain weights or gradients in `plain` to a slot's format, or back. scales: of
 * weights in int8. */
static enum lb_status reorder(const struct onednn *net, const struct layer *layer,
                              enum lb_slot slot, void *plain, bool to_slot, const float *scales,
                              struct lb_error *err)
{
    const struct lb_problem *p = &net->problem;
    enum lb_status st = LB_OK;
    lb_memory_desc desc = NULL;
    dnnl_memory_t memory = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_primitive_attr_t attr = NULL;
    struct plain of = plain_of(p, layer->input, slots[slot].tensor);
    const_dnnl_memory_desc_t of_slot = desc_of(layer, slot);
    LB_TRY(
        COMPAT(lb_memory_desc_create(&desc, of.ndims, of.dims, type_of(p, &of, !to_slot), of.tag)));
    LB_TRY(DNNL(dnnl_memory_create(&memory, desc, engine, plain)));
    LB_TRY(DNNL(dnnl_primitive_attr_create(&attr)));
    if (of.packed)
        LB_TRY(set_scales(p, attr, scales, err));
    LB_TRY(DNNL(dnnl_reorder_primitive_desc_create(&pd, to_slot ? desc : of_slot, engine,
                                                   to_slot ? of_slot : desc, engine, attr)));
    LB_TRY(DNNL(dnnl_primitive_create(&reorder, pd)));
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_FROM, to_slot ? memory : layer->memory[slot]},
        {DNNL_ARG_TO, to_slot ? layer->memory[slot] : memory},
    };
    LB_TRY(execute(reorder, net->stream, 2, args, err));
done:
    DESTROY(primitive, reorder);
    DESTROY(primitive_desc, pd);
    DESTROY(memory, memory);
    DESTROY(primitive_attr, attr);
    lb_memory_desc_destroy(desc);
    return st;
}

/* Sets the number of threads of the OpenMP runtime that the library was loaded with. */
static enum lb_status set_threads(int threads, struct lb_error *err)
{
    void (*set)(int) = NULL;
    void *symbol = lb_shared_library_find(&lb_onednn_library, "omp_set_num_threads");
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && threads > CPU_COUNT(&cpus))
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: this process may use only %d of the CPUs",
                       threads, CPU_COUNT(&cpus));
    if (threads > 1 && lb_dnnl.dnnl_version()->cpu_runtime != DNNL_RUNTIME_OMP)
        return lb_fail(
            err, LB_UNSUPPORTED,
            "threads %d: this oneDNN is not built on OpenMP, so its threads can't be set", threads);
    if (symbol)
        memcpy(&set, &symbol, sizeof(set)); /* ISO C has no cast between the two types */
    if (set)
        set(threads);
    else if (threads > 1)
        return lb_fail(err, LB_UNSUPPORTED,
                       "threads %d: omp_set_num_threads was not found, so threads can't be set",
                       threads);
    return LB_OK;
}

/* The largest weight of int8 that a kernel multiplies rightly. On x86 without VNNI the library adds
 * pairs of products in 16 bits (its guide, "Nuances of int8 Computations"), and the kernel
 * brgemm:avx2 (seen in 3.7.2) does so with AVX-VNNI too. 16 bits hold 2 * 255 * 64. */
static float most_weight(const char *kernel)
{
    const unsigned isa = lb_dnnl.dnnl_get_effective_cpu_isa(); /* a set of bits; 0 is not x86 */
    bool vnni = isa == 0 || (isa & dnnl_cpu_isa_avx2_vnni) == dnnl_cpu_isa_avx2_vnni ||
                (isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni;
    return vnni && strcmp(kernel, "brgemm:avx2") != 0 ? 127 : 64;
}

static enum lb_status onednn_create(void *self, const struct lb_problem *problem,
                                    const struct lb_exec_config *config, struct lb_error *err)
{
    struct onednn *net = self;
    const char *kernel = "unknown", *back = NULL;
    LB_CHECK(lb_shared_library_load(&lb_onednn_library, err));
    const dnnl_version_t *version = lb_dnnl.dnnl_version();
    net->problem = *problem;
    net->L = (size_t)problem->layers;
    net->size = lb_dtype_size(problem->dtype);
    net->h = lb_h_count(problem);
    LB_CHECK(lb_problem_counts(problem, &net->n, err));
    net->layers = calloc(net->L, sizeof(*net->layers));
    if (!net->layers)
        return lb_fail(err, LB_OOM, "out of memory");
    net->bf16 = lb_simd_kernels_best(LB_BF16);
    LB_CHECK(set_threads(config->threads, err));
    if (!engine)
        LB_CHECK(DNNL(dnnl_engine_create(&engine, dnnl_cpu, 0)));
    LB_CHECK(DNNL(dnnl_stream_create(&net->stream, engine, dnnl_stream_default_flags)));
    for (int64_t l = 0; l < problem->layers; l++) {
        net->layers[l].input = lb_layer_input(problem, l);
        net->layers[l].last = l == problem->layers - 1;
        LB_CHECK(create_layer(problem, NULL, &net->layers[l], err));
    }
    lb_dnnl.dnnl_primitive_desc_query(net->layers[0].forward_pd, dnnl_query_impl_info_str, 0,
                                      &kernel);
    if (net->layers[0].backward_pd)
        lb_dnnl.dnnl_primitive_desc_query(net->layers[0].backward_pd, dnnl_query_impl_info_str, 0,
                                          &back);
    net->most_weight = most_weight(kernel);
    /* That kernel reads memory that nobody wrote (seen in 2.6.3); in training mode it does not. */
    if (problem->cell == LB_CELL_PROJECTION && problem->pass == LB_INFER &&
        strncmp(kernel, "ref", 3) == 0)
        return lb_fail(err, LB_UNSUPPORTED,
                       "cell projection: this CPU gets oneDNN's kernel %.20s, whose inference with "
                       "projection is wrong",
                       kernel);
    snprintf(net->description, sizeof(net->description), "oneDNN %d.%d.%d, %s%s%s%s, %d thread%s",
             version->major, version->minor, version->patch, kernel, back ? ", backward " : "",
             back ? back : "",
             problem->dtype != LB_INT8 ? ""
             : net->most_weight < 127  ? ", s8 weights per channel in 7 bits, u8 activations static"
                                       : ", s8 weights per channel, u8 activations static",
             config->threads, config->threads == 1 ? "" : "s");
    return LB_OK;
}

/* Lays out what forward keeps for backward. */
static void lay_out_kept(struct onednn *net, struct lb_arena *arena)
{
    size_t floats = net->n.state * sizeof(float);
    bool trains = lb_trains(&net->problem), converts = net->problem.dtype == LB_BF16;
    bool int8 = net->problem.dtype == LB_INT8;
    net->lower = lb_arena_take(arena, (net->L - 1) * net->n.y * (int8 ? 1 : net->size));
    net->x = int8 ? lb_arena_take(arena, net->n.x) : NULL;
    net->hn = trains ? lb_arena_take(arena, net->h * net->size) : NULL;
    net->c0 = converts ? lb_arena_take(arena, floats) : NULL;
    net->cn = trains || converts ? lb_arena_take(arena, floats) : NULL;
}

static void lay_out_scratch(struct onednn *net, struct lb_arena *arena)
{
    float **const states[] = {&net->dhn, &net->dcn, &net->dh0, &net->dc0};
    if (!lb_has_backward(&net->problem))
        return;
    for (size_t i = 0; i < 2 && i + 1 < net->L; i++)
        net->dlower[i] = lb_arena_take(arena, net->n.y * sizeof(float));
    if (net->problem.dtype != LB_BF16)
        return;
    net->dy = lb_arena_take(arena, net->n.y * sizeof(float));
    net->dx = lb_arena_take(arena, net->n.x * sizeof(float));
    for (size_t i = 0; i < 4; i++)
        *states[i] = lb_arena_take(arena, net->n.state * sizeof(float));
}

/* Sets the addresses of all slots and arrays. With zeroed buffers, it only computes the sizes. */
static enum lb_status lay_out(struct onednn *net, const struct lb_buffers *buffers,
                              struct lb_sizes *sizes, struct lb_error *err)
{
    struct lb_arena arenas[PLACES] = {[WEIGHTS] = {.base = buffers->weights},
                                      [GRADIENTS] = {.base = buffers->gradients},
                                      [RESERVE] = {.base = buffers->reserve},
                                      [WORKSPACE] = {.base = buffers->workspace}};
    lay_out_kept(net, &arenas[lb_trains(&net->problem) ? RESERVE : WORKSPACE]);
    lay_out_scratch(net, &arenas[WORKSPACE]);
    size_t arrays = arenas[WORKSPACE].used, workspace = arrays;
    for (size_t l = 0; l < net->L; l++)
        for (enum lb_slot i = 0; i < LB_SLOT_COUNT; i++) {
            if (slots[i].place == ELSEWHERE)
                continue;
            arenas[WORKSPACE].used = arrays;
            void *data = lb_arena_take(&arenas[slots[i].place], bytes_of(&net->layers[l], i));
            if (data)
                LB_CHECK(set_data(&net->layers[l], i, data, err));
            workspace = arenas[WORKSPACE].used > workspace ? arenas[WORKSPACE].used : workspace;
        }
    *sizes = (struct lb_sizes){arenas[WEIGHTS].used, arenas[GRADIENTS].used, arenas[RESERVE].used,
                               workspace};
    return LB_OK;
}

static enum lb_status onednn_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    return lay_out(self, &(struct lb_buffers){0}, sizes, err);
}

/* Number of elements of one direction's weights, or of their gradients, in a slot. */
static size_t count_of(const struct onednn *net, size_t l, enum lb_slot slot)
{
    struct plain plain = plain_of(&net->problem, net->layers[l].input, slots[slot].tensor);
    size_t count = 1;
    for (int i = 2; i < plain.ndims; i++) /* after [1, D] */
        count *= (size_t)plain.dims[i];
    return count;
}

/* from [rows, count / rows] times a factor -> to, transposed. */
static void transpose(const void *from, float *to, size_t rows, size_t count, float factor)
{
    size_t columns = count / rows;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            to[c * rows + r] = ((const float *)from)[r * columns + c] * factor;
}

/* Converts canonical weights of a layer, one array per direction, into a slot that it has.
 * added: NULL, or arrays that are added to them. */
static enum lb_status pack_slot(const struct onednn *net, size_t l, enum lb_slot slot,
                                const void *const *from, const void *const *added,
                                const float *scales, char *staging, struct lb_error *err)
{
    const struct lb_problem *p = &net->problem;
    struct plain plain = plain_of(p, net->layers[l].input, slots[slot].tensor);
    size_t D = (size_t)p->directions, count = count_of(net, l, slot), size = net->size;
    for (size_t i = 0; i < D; i++) {
        const char *weights = from[l * D + i];
        if (!plain.wide) {
            if (net->x)
                transpose(weights, (float *)(void *)staging + i * count, 4 * (size_t)p->hidden,
                          count, slot == LB_W_IH && l == 0 ? net->x_max : 1);
            else
                memcpy(staging + i * count * size, weights, count * size);
            continue;
        }
        for (size_t j = 0; j < count; j++) {
            double value, more = 0;
            lb_load(p->dtype, weights + j * size, &value, 1);
            if (added)
                lb_load(p->dtype, (const char *)added[l * D + i] + j * size, &more, 1);
            ((float *)(void *)staging)[i * count + j] = (float)(value + more);
        }
    }
    return reorder(net, &net->layers[l], slot, staging, true, scales, err);
}

/* Allocates room for the largest weights of a layer, in all directions; the caller frees it. */
static void *allocate_staging(const struct onednn *net, struct lb_error *err)
{
    size_t most = 0;
    for (size_t l = 0; l < net->L; l++)
        for (enum lb_slot i = 0; i < LB_TENSOR_COUNT; i++) {
            size_t count = slots[i].place == WEIGHTS ? count_of(net, l, i) : 0;
            most = count > most ? count : most;
        }
    void *staging = malloc((size_t)net->problem.directions * most * sizeof(float));
    if (!staging)
        lb_fail(err, LB_OOM, "out of memory for weights or their gradients");
    return staging;
}

/* Converts the weights of all layers into their slots. */
static enum lb_status pack(const struct onednn *net, const struct lb_weights *weights,
                           const float *scales, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const void *const *const from[LB_TENSOR_COUNT] = {[LB_W_IH] = weights->w_ih,
                                                      [LB_W_HH] = weights->w_hh,
                                                      [LB_PEEPHOLE] = weights->w_cell,
                                                      [LB_PROJECTION] = weights->w_cell,
                                                      [LB_BIAS] = weights->b_ih};
    char *staging = allocate_staging(net, err);
    if (!staging)
        return LB_OOM;
    for (size_t l = 0; l < net->L; l++)
        for (enum lb_slot i = 0; i < LB_SLOT_COUNT; i++)
            if (slots[i].place == WEIGHTS && net->layers[l].memory[i])
                LB_TRY(pack_slot(
                    net, l, i, from[slots[i].tensor], i == LB_BIAS ? weights->b_hh : NULL,
                    scales ? scales + l * 4 * (size_t)net->problem.hidden : NULL, staging, err));
done:
    free(staging);
    return st;
}

/* scales [L, 4H] of the weights, by which the library multiplies them. */
static void find_scales(const struct onednn *net, const struct lb_weights *weights, float *scales)
{
    size_t H = (size_t)net->problem.hidden, D = (size_t)net->problem.directions;
    for (size_t l = 0; l < net->L; l++)
        for (size_t g = 0; g < 4 * H; g++) {
            size_t input = (size_t)net->layers[l].input;
            float most = 0;
            for (size_t d = l * D; d < (l + 1) * D; d++)
                most = fmaxf(most, lb_int8_channel((const float *)weights->w_ih[d] + g * input,
                                                   input, l == 0 ? net->x_max : 1,
                                                   (const float *)weights->w_hh[d] + g * H, H));
            scales[l * 4 * H + g] = most > 0 ? net->most_weight / most : 1;
        }
}

/* Creates the reorder from the caller's x to integers. */
static enum lb_status create_quantise(struct onednn *net, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    lb_memory_desc from = NULL, to = NULL;
    struct plain x = plain_of(&net->problem, net->problem.input, LB_X);
    LB_TRY(DNNL(dnnl_primitive_attr_create(&attr)));
    LB_TRY(DNNL(dnnl_primitive_attr_set_rnn_data_qparams(attr, lb_int8_factor(net->x_max), 128)));
    LB_TRY(COMPAT(lb_memory_desc_create(&from, x.ndims, x.dims, dnnl_f32, x.tag)));
    LB_TRY(COMPAT(lb_memory_desc_create(&to, x.ndims, x.dims, dnnl_u8, x.tag)));
    LB_TRY(DNNL(dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, attr)));
    LB_TRY(DNNL(dnnl_primitive_create(&net->quantise, pd)));
    LB_TRY(DNNL(dnnl_memory_create(&net->from, from, engine, DNNL_MEMORY_NONE)));
    LB_TRY(DNNL(dnnl_memory_create(&net->to, to, engine, net->x)));
done:
    DESTROY(primitive_desc, pd);
    DESTROY(primitive_attr, attr);
    lb_memory_desc_destroy(from);
    lb_memory_desc_destroy(to);
    return st;
}

/* In int8 the primitives hold the scales of the weights, so they are built again. */
static enum lb_status prepare_int8(struct onednn *net, const struct lb_buffers *buffers,
                                   const struct lb_weights *weights, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t gates = 4 * (size_t)net->problem.hidden;
    struct lb_sizes sizes;
    float *scales = malloc(net->L * gates * sizeof(*scales));
    if (!scales)
        return lb_fail(err, LB_OOM, "out of memory for the scales of the weights");
    net->x_max = buffers->x_max;
    find_scales(net, weights, scales);
    for (size_t l = 0; l < net->L; l++) {
        destroy_layer(&net->layers[l]);
        LB_TRY(create_layer(&net->problem, scales + l * gates, &net->layers[l], err));
    }
    LB_TRY(lay_out(net, buffers, &sizes, err));
    LB_TRY(create_quantise(net, err));
    LB_TRY(pack(net, weights, scales, err));
done:
    free(scales);
    return st;
}

static enum lb_status onednn_prepare(void *self, const struct lb_buffers *buffers,
                                     const struct lb_weights *weights, struct lb_error *err)
{
    struct onednn *net = self;
    struct lb_sizes sizes;
    if (net->problem.dtype == LB_INT8)
        return prepare_int8(net, buffers, weights, err);
    enum lb_status st = lay_out(net, buffers, &sizes, err);
    return st == LB_OK ? pack(net, weights, NULL, err) : st;
}

/* Sets the arguments of layer l that both passes share. hn, cn: the caller's arrays, used when
 * the implementation keeps no copy of its own. */
static enum lb_status set_layer_data(const struct onednn *net, size_t l, const void *x,
                                     const void *h0, const void *c0, const void *y, void *hn,
                                     void *cn, struct lb_error *err)
{
    size_t slice = net->n.state / net->L, state = l * slice * net->size; /* [D, B, H] */
    size_t h = l * (net->h / net->L) * net->size, lower = net->n.y * (net->x ? 1 : net->size);
    const char *cells = net->c0 ? (const char *)(net->c0 + l * slice) : (const char *)c0 + state;
    const struct layer *layer = &net->layers[l];
    LB_CHECK(set_data(layer, LB_X, l == 0 ? x : net->lower + (l - 1) * lower, err));
    LB_CHECK(set_data(layer, LB_H0, (const char *)h0 + h, err));
    LB_CHECK(set_data(layer, LB_C0, cells, err));
    LB_CHECK(set_data(layer, LB_Y, layer->last ? y : net->lower + l * lower, err));
    LB_CHECK(set_data(layer, LB_HN, net->hn ? net->hn + h : (char *)hn + h, err));
    return set_data(layer, LB_CN, net->cn ? (char *)(net->cn + l * slice) : (char *)cn + state,
                    err);
}

static enum lb_status onednn_forward(void *self, const struct lb_forward_io *io,
                                     struct lb_error *err)
{
    const struct onednn *net = self;
    const void *x = net->x ? net->x : io->x;
    if (net->c0)
        net->bf16->to_f32(io->c0, net->c0, net->n.state);
    if (net->x) {
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, net->from}, {DNNL_ARG_TO, net->to}};
        LB_CHECK(DNNL(dnnl_memory_set_data_handle(net->from, (void *)(uintptr_t)io->x)));
        LB_CHECK(execute(net->quantise, net->stream, 2, args, err));
    }
    for (size_t l = 0; l < net->L; l++) {
        LB_CHECK(set_layer_data(net, l, x, io->h0, io->c0, io->y, io->hn, io->cn, err));
        LB_CHECK(run(net, l, false, err));
    }
    if (net->hn)
        memcpy(io->hn, net->hn, net->h * net->size);
    if (net->cn && net->problem.dtype == LB_BF16)
        net->bf16->from_f32(net->cn, io->cn, net->n.state);
    else if (net->cn)
        memcpy(io->cn, net->cn, net->n.state * sizeof(float));
    return LB_OK;
}

/* Zeroes the weight gradients, because the library adds to them. */
static void clear_gradients(const struct onednn *net)
{
    for (size_t l = 0; l < net->L; l++)
        for (enum lb_slot i = 0; i < LB_SLOT_COUNT; i++) {
            void *data;
            if (slots[i].place != GRADIENTS || !net->layers[l].memory[i])
                continue;
            lb_dnnl.dnnl_memory_get_data_handle(net->layers[l].memory[i], &data);
            memset(data, 0, bytes_of(&net->layers[l], i));
        }
}

static enum lb_status backward_layer(const struct onednn *net, size_t l,
                                     const struct lb_backward_io *io, struct lb_error *err)
{
    size_t state = l * (net->n.state / net->L); /* elements before those of this layer */
    const float *dy = net->dy ? net->dy : io->dy;
    const float *dhn = net->dhn ? net->dhn : io->dhn, *dcn = net->dcn ? net->dcn : io->dcn;
    float *dx = net->dx ? net->dx : io->dx;
    float *dh0 = net->dh0 ? net->dh0 : io->dh0, *dc0 = net->dc0 ? net->dc0 : io->dc0;
    const struct layer *layer = &net->layers[l];
    LB_CHECK(set_layer_data(net, l, io->x, io->h0, io->c0, io->y, NULL, NULL, err));
    LB_CHECK(set_data(layer, LB_DX, l == 0 ? dx : net->dlower[(l - 1) % 2], err));
    LB_CHECK(set_data(layer, LB_DH0, dh0 + state, err));
    LB_CHECK(set_data(layer, LB_DC0, dc0 + state, err));
    LB_CHECK(set_data(layer, LB_DY, layer->last ? dy : net->dlower[l % 2], err));
    LB_CHECK(set_data(layer, LB_DHN, dhn + state, err));
    LB_CHECK(set_data(layer, LB_DCN, dcn + state, err));
    return run(net, l, true, err);
}

static enum lb_status onednn_backward(void *self, const struct lb_backward_io *io,
                                      struct lb_error *err)
{
    const struct onednn *net = self;
    const struct lb_counts n = net->n;
    clear_gradients(net);
    if (net->dy) {
        net->bf16->to_f32(io->dy, net->dy, n.y);
        net->bf16->to_f32(io->dhn, net->dhn, n.state);
        net->bf16->to_f32(io->dcn, net->dcn, n.state);
    }
    for (size_t l = net->L; l-- > 0;)
        LB_CHECK(backward_layer(net, l, io, err));
    if (net->dy) {
        net->bf16->from_f32(net->dx, io->dx, n.x);
        net->bf16->from_f32(net->dh0, io->dh0, n.state);
        net->bf16->from_f32(net->dc0, io->dc0, n.state);
    }
    return LB_OK;
}

/* Copies one gradient of a layer, which is plain f32 in `staging`, to the canonical array of
 * each direction. */
static void copy_gradient(const struct onednn *net, size_t l, const float *staging, size_t count,
                          void *const *to)
{
    size_t D = (size_t)net->problem.directions;
    for (size_t d = 0; d < D; d++)
        if (net->problem.dtype == LB_BF16)
            net->bf16->from_f32(staging + d * count, to[l * D + d], count);
        else
            memcpy(to[l * D + d], staging + d * count, count * sizeof(float));
}

static enum lb_status onednn_gradients(void *self, const struct lb_gradients *gradients,
                                       struct lb_error *err)
{
    const struct onednn *net = self;
    enum lb_status st = LB_OK;
    void *const *const to[LB_TENSOR_COUNT] = {[LB_W_IH] = gradients->dw_ih,
                                              [LB_W_HH] = gradients->dw_hh,
                                              [LB_BIAS] = gradients->db_ih,
                                              [LB_PEEPHOLE] = gradients->dw_cell};
    float *staging = allocate_staging(net, err);
    if (!staging)
        return LB_OOM;
    for (size_t l = 0; l < net->L; l++)
        for (enum lb_slot i = 0; i < LB_SLOT_COUNT; i++) {
            if (slots[i].place != GRADIENTS || !net->layers[l].memory[i])
                continue;
            size_t count = count_of(net, l, i);
            LB_TRY(reorder(net, &net->layers[l], i, staging, false, NULL, err));
            copy_gradient(net, l, staging, count, to[slots[i].tensor]);
            if (i == LB_DBIAS)
                copy_gradient(net, l, staging, count, gradients->db_hh);
        }
done:
    free(staging);
    return st;
}

/* The library's reorders and the staging between them are part of the time. */
static enum lb_status onednn_update(void *self, const struct lb_update_io *io, struct lb_error *err)
{
    enum lb_status st = pack(self, &io->weights, NULL, err);
    return st == LB_OK ? onednn_gradients(self, &io->gradients, err) : st;
}

static const char *onednn_describe(const void *self)
{
    return ((const struct onednn *)self)->description;
}

static void onednn_destroy(void *self)
{
    struct onednn *net = self;
    for (size_t l = 0; net->layers && l < net->L; l++)
        destroy_layer(&net->layers[l]);
    DESTROY(primitive, net->quantise);
    DESTROY(memory, net->from);
    DESTROY(memory, net->to);
    free(net->layers);
    DESTROY(stream, net->stream);
}

const struct lb_impl lb_impl_onednn = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "onednn",
    .summary = "oneDNN's LSTM primitive",
    .memory = LB_HOST,
    .traits = LB_DETERMINISTIC | LB_INSTANCES | LB_QUANTISES,
    .state_size = sizeof(struct onednn),
    .supports = onednn_supports,
    .create = onednn_create,
    .sizes = onednn_sizes,
    .prepare = onednn_prepare,
    .forward = onednn_forward,
    .backward = onednn_backward,
    .gradients = onednn_gradients,
    .describe = onednn_describe,
    .destroy = onednn_destroy,
    .update = onednn_update,
    .cells = 1u << LB_CELL_PEEPHOLE | 1u << LB_CELL_PROJECTION,
};
