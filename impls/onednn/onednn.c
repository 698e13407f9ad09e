/* onednn: oneDNN's LSTM primitive, one per layer. It supports f32 and bf16, both directions and
 * all passes; of the cells other than the standard one peephole, and projection without backward.
 *
 * `prepare` converts the weights to the format that the library asks for. With bf16, the library
 * requires cell states and all gradients in f32; converting them is part of the timed call. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/impl.h"
#include "base/arena.h"
#include "impls/onednn/layer.h"

struct onednn {
    struct lb_problem problem;
    struct lb_onednn_layer *layers; /* [L]; owned */

    /* In the harness's buffers; NULL where the pass or the dtype needs none. */
    char *lower;           /* outputs of all layers but the last, each [T, B, D*P]; dtype */
    char *hn;              /* [L*D, B, P] dtype, kept for backward */
    float *c0, *cn;        /* [L*D, B, H] */
    float *dy, *dhn, *dcn; /* f32 copies of the caller's bf16 tensors */
    float *dx, *dh0, *dc0; /* likewise */
    float *dlower[2]; /* [T, B, D*H] gradients of the outputs of two layers below the top one */
    char description[192];
};

/* The slots of each layer in the buffer of weights, and in that of weight gradients. */
static const enum lb_slot packed_slots[] = {LB_W_IH,       LB_W_HH,      LB_BIAS,     LB_PEEPHOLE,
                                            LB_PROJECTION, LB_BACK_W_IH, LB_BACK_W_HH};
static const enum lb_slot gradient_slots[] = {LB_DW_IH, LB_DW_HH, LB_DBIAS, LB_DPEEPHOLE};

enum { PACKED = 7, GRADIENTS = 4 };

struct counts {
    size_t L, x, y, state, slice; /* elements: [T, B, I], [T, B, D*P], [L*D, B, H], [D, B, H] */
    size_t h, h_slice;            /* [L*D, B, P], [D, B, P]; with a backward P is H */
    size_t size;                  /* bytes of one element in the dtype */
};

static struct counts counts_of(const struct lb_problem *p)
{
    size_t rows = (size_t)p->seq_len * (size_t)p->batch;
    size_t wide = (size_t)p->directions * (size_t)p->hidden;
    size_t h_wide = (size_t)(p->directions * lb_h_size(p));
    return (struct counts){
        .L = (size_t)p->layers,
        .x = rows * (size_t)p->input,
        .y = rows * h_wide,
        .h = (size_t)p->layers * (size_t)p->batch * h_wide,
        .h_slice = (size_t)p->batch * h_wide,
        .state = (size_t)p->layers * (size_t)p->batch * wide,
        .slice = (size_t)p->batch * wide,
        .size = lb_dtype_size(p->dtype),
    };
}

/* Converts bf16 [count] to f32, which is exact. */
static void bf16_to_f32(const uint16_t *from, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(to + i, &bits, sizeof(bits));
    }
}

/* Converts f32 [count] to bf16, rounding to nearest even. NaN stays NaN. */
static void f32_to_bf16(const float *from, uint16_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof(bits));
        uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
        to[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16) | 0x40 : rounded);
    }
}

static enum lb_status onednn_supports(const struct lb_problem *p,
                                      const struct lb_exec_config *config, struct lb_error *why)
{
    (void)config;
    if (p->dtype != LB_F32 && p->dtype != LB_BF16)
        return lb_fail(why, LB_UNSUPPORTED,
                       "dtype %s: on a CPU, oneDNN's LSTM has f32 and bf16 only",
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

/* Sets the number of threads of the OpenMP runtime that the library was loaded with. */
static enum lb_status set_threads(int threads, struct lb_error *err)
{
    void (*set)(int) = NULL;
    void *symbol = lb_shared_library_find(&lb_onednn_library, "omp_set_num_threads");
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && threads > CPU_COUNT(&cpus))
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: this process may use only %d CPUs",
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

static enum lb_status onednn_create(void *self, const struct lb_problem *problem,
                                    const struct lb_exec_config *config, struct lb_error *err)
{
    struct onednn *net = self;
    enum lb_status st = LB_OK;
    const char *kernel = "unknown", *back = NULL;
    const dnnl_version_t *version;
    LB_TRY(lb_shared_library_load(&lb_onednn_library, err));
    version = lb_dnnl.dnnl_version();
    net->problem = *problem;
    net->layers = calloc((size_t)problem->layers, sizeof(*net->layers));
    if (!net->layers)
        return lb_fail(err, LB_OOM, "out of memory");
    LB_TRY(set_threads(config->threads, err));
    for (int64_t l = 0; l < problem->layers; l++)
        LB_TRY(lb_onednn_layer_create(problem, lb_layer_input(problem, l), &net->layers[l], err));
    lb_dnnl.dnnl_primitive_desc_query(net->layers[0].forward_pd, dnnl_query_impl_info_str, 0,
                                      &kernel);
    if (net->layers[0].backward_pd)
        lb_dnnl.dnnl_primitive_desc_query(net->layers[0].backward_pd, dnnl_query_impl_info_str, 0,
                                          &back);
    /* That kernel reads memory that nobody wrote (seen in 2.6.3); in training mode it does not. */
    if (problem->cell == LB_CELL_PROJECTION && problem->pass == LB_INFER &&
        strncmp(kernel, "ref", 3) == 0)
        LB_TRY(lb_fail(err, LB_UNSUPPORTED,
                       "cell projection: this CPU gets oneDNN's kernel %.20s, whose inference with "
                       "projection is wrong",
                       kernel));
    snprintf(net->description, sizeof(net->description), "oneDNN %d.%d.%d, %s%s%s, %d thread%s",
             version->major, version->minor, version->patch, kernel, back ? ", backward " : "",
             back ? back : "", config->threads, config->threads == 1 ? "" : "s");
done:
    return st;
}

/* Lays out the slots of every layer in base. *bytes: their total size. */
static enum lb_status lay_out_slots(struct onednn *net, const enum lb_slot *list, size_t count,
                                    char *base, size_t *bytes, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_arena arena = {.base = base};
    for (size_t l = 0; l < (size_t)net->problem.layers; l++)
        for (size_t i = 0; i < count; i++) {
            struct lb_onednn_layer *layer = &net->layers[l];
            void *data = lb_arena_take(&arena, lb_onednn_bytes(layer, list[i]));
            if (base)
                LB_TRY(lb_onednn_set_data(layer, list[i], data, err));
        }
    *bytes = arena.used;
done:
    return st;
}

/* Lays out what forward keeps for backward and returns its size in bytes. */
static size_t lay_out_kept(struct onednn *net, char *base)
{
    struct counts n = counts_of(&net->problem);
    struct lb_arena arena = {.base = base};
    bool trains = lb_trains(&net->problem), converts = net->problem.dtype == LB_BF16;
    net->lower = lb_arena_take(&arena, (n.L - 1) * n.y * n.size);
    net->hn = trains ? lb_arena_take(&arena, n.h * n.size) : NULL;
    net->c0 = converts ? lb_arena_take(&arena, n.state * sizeof(float)) : NULL;
    net->cn = trains || converts ? lb_arena_take(&arena, n.state * sizeof(float)) : NULL;
    return arena.used;
}

static size_t lay_out_scratch(struct onednn *net, char *base)
{
    struct counts n = counts_of(&net->problem);
    struct lb_arena arena = {.base = base};
    if (lb_has_backward(&net->problem)) {
        for (size_t i = 0; i < 2 && i + 1 < n.L; i++)
            net->dlower[i] = lb_arena_take(&arena, n.y * sizeof(float));
        if (net->problem.dtype == LB_BF16) {
            net->dy = lb_arena_take(&arena, n.y * sizeof(float));
            net->dx = lb_arena_take(&arena, n.x * sizeof(float));
            float **const states[] = {&net->dhn, &net->dcn, &net->dh0, &net->dc0};
            for (size_t i = 0; i < 4; i++)
                *states[i] = lb_arena_take(&arena, n.state * sizeof(float));
        }
    }
    return arena.used;
}

/* Sets the addresses of all slots and arrays. With zeroed buffers, it only computes the sizes. */
static enum lb_status lay_out(struct onednn *net, const struct lb_buffers *buffers,
                              struct lb_sizes *sizes, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    bool trains = lb_trains(&net->problem);
    size_t kept_slots = 0, scratch = 0, kept;
    char *base = trains ? buffers->reserve : buffers->workspace;
    LB_TRY(lay_out_slots(net, packed_slots, PACKED, buffers->weights, &sizes->weights, err));
    LB_TRY(
        lay_out_slots(net, gradient_slots, GRADIENTS, buffers->gradients, &sizes->gradients, err));
    kept = lay_out_kept(net, base);
    if (trains)
        LB_TRY(lay_out_slots(net, (enum lb_slot[]){LB_KEPT}, 1, base ? base + kept : NULL,
                             &kept_slots, err));
    sizes->reserve = trains ? kept + kept_slots : 0;

    size_t at = trains ? 0 : kept, most = 0;
    at += lay_out_scratch(net, buffers->workspace ? (char *)buffers->workspace + at : NULL);
    static const enum lb_slot scratch_slots[] = {LB_SCRATCH, LB_BACK_SCRATCH};
    for (size_t l = 0; l < (size_t)net->problem.layers; l++)
        for (size_t i = 0; i < 2; i++) { /* primitives run one at a time and share scratch */
            scratch = lb_onednn_bytes(&net->layers[l], scratch_slots[i]);
            most = scratch > most ? scratch : most;
            if (buffers->workspace)
                LB_TRY(lb_onednn_set_data(&net->layers[l], scratch_slots[i],
                                          (char *)buffers->workspace + at, err));
        }
    sizes->workspace = at + most;
done:
    return st;
}

static enum lb_status onednn_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    return lay_out(self, &(struct lb_buffers){0}, sizes, err);
}

/* Converts one matrix of a layer, for all directions, into a slot. from: canonical matrices, one
 * per direction. */
static enum lb_status pack_matrix(const struct onednn *net, size_t l, enum lb_slot slot,
                                  int64_t columns, const void *const *from, char *staging,
                                  struct lb_error *err)
{
    const struct lb_problem *p = &net->problem;
    size_t bytes = 4 * (size_t)p->hidden * (size_t)columns * lb_dtype_size(p->dtype);
    for (size_t d = 0; d < (size_t)p->directions; d++)
        memcpy(staging + d * bytes, from[l * (size_t)p->directions + d], bytes);
    return lb_onednn_reorder(p, &net->layers[l], slot, columns,
                             p->dtype == LB_BF16 ? dnnl_bf16 : dnnl_f32, staging, true, err);
}

/* Adds the two biases of a layer and converts the sum into its slot. staging [D, 4H]. */
static enum lb_status pack_bias(const struct onednn *net, size_t l,
                                const struct lb_weights *weights, float *staging,
                                struct lb_error *err)
{
    const struct lb_problem *p = &net->problem;
    size_t gates = 4 * (size_t)p->hidden, D = (size_t)p->directions;
    for (size_t d = 0; d < D; d++)
        for (size_t j = 0; j < gates; j++) {
            double ih, hh;
            size_t at = j * lb_dtype_size(p->dtype);
            lb_load(p->dtype, (const char *)weights->b_ih[l * D + d] + at, &ih, 1);
            lb_load(p->dtype, (const char *)weights->b_hh[l * D + d] + at, &hh, 1);
            staging[d * gates + j] = (float)(ih + hh);
        }
    return lb_onednn_reorder(p, &net->layers[l], LB_BIAS, 0, dnnl_f32, staging, true, err);
}

/* Converts w_cell of a layer into its slot, if the cell has one. staging [D, 3, H] f32 or [D, P,
 * H]. */
static enum lb_status pack_cell(const struct onednn *net, size_t l,
                                const struct lb_weights *weights, char *staging,
                                struct lb_error *err)
{
    const struct lb_problem *p = &net->problem;
    size_t count = lb_cell_weight_count(p), size = lb_dtype_size(p->dtype);
    bool projects = p->cell == LB_CELL_PROJECTION;
    dnnl_data_type_t type = projects && p->dtype == LB_BF16 ? dnnl_bf16 : dnnl_f32;
    if (count == 0)
        return LB_OK;
    for (size_t d = 0; d < (size_t)p->directions; d++) {
        const char *from = weights->w_cell[l * (size_t)p->directions + d];
        float *vectors = (float *)(void *)staging + d * count;
        if (projects)
            memcpy(staging + d * count * size, from, count * size);
        for (size_t j = 0; !projects && j < count; j++) {
            double value;
            lb_load(p->dtype, from + j * size, &value, 1);
            vectors[j] = (float)value;
        }
    }
    return lb_onednn_reorder(p, &net->layers[l], projects ? LB_PROJECTION : LB_PEEPHOLE, 0, type,
                             staging, true, err);
}

/* The most columns of a canonical matrix: of w_ih of any layer, or of w_hh. */
static size_t widest_matrix(const struct lb_problem *p)
{
    int64_t last = lb_layer_input(p, p->layers - 1);
    int64_t widest = last > p->input ? last : p->input;
    return (size_t)(widest > p->hidden ? widest : p->hidden);
}

/* Allocates room for the largest matrix of a layer, in all directions; the caller frees it. */
static void *allocate_staging(const struct lb_problem *p)
{
    return malloc((size_t)(p->directions * 4 * p->hidden) * widest_matrix(p) * sizeof(float));
}

/* Converts the weights of all layers into their slots. */
static enum lb_status pack(const struct onednn *net, const struct lb_weights *weights,
                           struct lb_error *err)
{
    const struct lb_problem *p = &net->problem;
    enum lb_status st = LB_OK;
    char *staging = allocate_staging(p);
    if (!staging)
        return lb_fail(err, LB_OOM, "out of memory for weights");
    for (size_t l = 0; l < (size_t)p->layers; l++) {
        const void *const *w_ih = weights->w_ih, *const *w_hh = weights->w_hh;
        int64_t input = net->layers[l].input;
        LB_TRY(pack_matrix(net, l, LB_W_IH, input, w_ih, staging, err));
        LB_TRY(pack_matrix(net, l, LB_W_HH, lb_h_size(p), w_hh, staging, err));
        LB_TRY(pack_cell(net, l, weights, staging, err));
        LB_TRY(pack_bias(net, l, weights, (float *)(void *)staging, err));
        if (lb_has_backward(p)) {
            LB_TRY(pack_matrix(net, l, LB_BACK_W_IH, input, w_ih, staging, err));
            LB_TRY(pack_matrix(net, l, LB_BACK_W_HH, p->hidden, w_hh, staging, err));
        }
    }
done:
    free(staging);
    return st;
}

static enum lb_status onednn_prepare(void *self, const struct lb_buffers *buffers,
                                     const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_sizes sizes;
    enum lb_status st = lay_out(self, buffers, &sizes, err);
    return st == LB_OK ? pack(self, weights, err) : st;
}

/* The address of a slot's data for this call; inputs are only read. */
struct slot_data {
    enum lb_slot slot;
    const void *data;
};

static enum lb_status set_data(const struct lb_onednn_layer *layer, const struct slot_data *list,
                               size_t count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (size_t i = 0; i < count; i++)
        LB_TRY(lb_onednn_set_data(layer, list[i].slot, (void *)(uintptr_t)list[i].data, err));
done:
    return st;
}

/* Sets the arguments of layer l that both passes share. hn, cn: the caller's arrays, used when
 * the implementation keeps no copy of its own. */
static enum lb_status set_layer_data(const struct onednn *net, size_t l, const void *x,
                                     const void *h0, const void *c0, const void *y, void *hn,
                                     void *cn, struct lb_error *err)
{
    struct counts n = counts_of(&net->problem);
    size_t state = l * n.slice * n.size, h = l * n.h_slice * n.size, lower = n.y * n.size;
    const char *cells = net->c0 ? (const char *)(net->c0 + l * n.slice) : (const char *)c0 + state;
    const struct slot_data list[] = {
        {LB_X, l == 0 ? x : net->lower + (l - 1) * lower},
        {LB_H0, (const char *)h0 + h},
        {LB_C0, cells},
        {LB_Y, l == n.L - 1 ? y : net->lower + l * lower},
        {LB_HN, net->hn ? net->hn + h : (char *)hn + h},
        {LB_CN, net->cn ? (char *)(net->cn + l * n.slice) : (char *)cn + state},
    };
    return set_data(&net->layers[l], list, sizeof(list) / sizeof(list[0]), err);
}

static enum lb_status onednn_forward(void *self, const struct lb_forward_io *io,
                                     struct lb_error *err)
{
    const struct onednn *net = self;
    struct counts n = counts_of(&net->problem);
    enum lb_status st = LB_OK;
    if (net->c0)
        bf16_to_f32(io->c0, net->c0, n.state);
    for (size_t l = 0; l < n.L; l++) {
        LB_TRY(set_layer_data(net, l, io->x, io->h0, io->c0, io->y, io->hn, io->cn, err));
        LB_TRY(lb_onednn_forward(&net->layers[l], err));
    }
    if (net->hn)
        memcpy(io->hn, net->hn, n.h * n.size);
    if (net->cn && net->problem.dtype == LB_BF16)
        f32_to_bf16(net->cn, io->cn, n.state);
    else if (net->cn)
        memcpy(io->cn, net->cn, n.state * sizeof(float));
done:
    return st;
}

/* Zeroes the weight gradients, because the library adds to them. */
static void clear_gradients(const struct onednn *net)
{
    for (size_t l = 0; l < (size_t)net->problem.layers; l++)
        for (size_t i = 0; i < GRADIENTS; i++) {
            void *data;
            if (!net->layers[l].memory[gradient_slots[i]])
                continue;
            lb_dnnl.dnnl_memory_get_data_handle(net->layers[l].memory[gradient_slots[i]], &data);
            memset(data, 0, lb_onednn_bytes(&net->layers[l], gradient_slots[i]));
        }
}

static enum lb_status backward_layer(const struct onednn *net, size_t l,
                                     const struct lb_backward_io *io, struct lb_error *err)
{
    struct counts n = counts_of(&net->problem);
    enum lb_status st = LB_OK;
    const float *dy = net->dy ? net->dy : io->dy;
    const float *dhn = net->dhn ? net->dhn : io->dhn, *dcn = net->dcn ? net->dcn : io->dcn;
    float *dx = net->dx ? net->dx : io->dx;
    float *dh0 = net->dh0 ? net->dh0 : io->dh0, *dc0 = net->dc0 ? net->dc0 : io->dc0;
    const struct slot_data list[] = {
        {LB_DX, l == 0 ? dx : net->dlower[(l - 1) % 2]},
        {LB_DH0, dh0 + l * n.slice},
        {LB_DC0, dc0 + l * n.slice},
        {LB_DY, l == n.L - 1 ? dy : net->dlower[l % 2]},
        {LB_DHN, dhn + l * n.slice},
        {LB_DCN, dcn + l * n.slice},
    };
    LB_TRY(set_layer_data(net, l, io->x, io->h0, io->c0, io->y, NULL, NULL, err));
    LB_TRY(set_data(&net->layers[l], list, sizeof(list) / sizeof(list[0]), err));
    LB_TRY(lb_onednn_backward(&net->layers[l], err));
done:
    return st;
}

static enum lb_status onednn_backward(void *self, const struct lb_backward_io *io,
                                      struct lb_error *err)
{
    const struct onednn *net = self;
    struct counts n = counts_of(&net->problem);
    enum lb_status st = LB_OK;
    clear_gradients(net);
    if (net->dy) {
        bf16_to_f32(io->dy, net->dy, n.y);
        bf16_to_f32(io->dhn, net->dhn, n.state);
        bf16_to_f32(io->dcn, net->dcn, n.state);
    }
    for (size_t l = n.L; l-- > 0;)
        LB_TRY(backward_layer(net, l, io, err));
    if (net->dy) {
        f32_to_bf16(net->dx, io->dx, n.x);
        f32_to_bf16(net->dh0, io->dh0, n.state);
        f32_to_bf16(net->dc0, io->dc0, n.state);
    }
done:
    return st;
}

/* Copies one gradient of a layer, which is plain f32 in `staging`, to the canonical array of
 * each direction. */
static void copy_gradient(const struct onednn *net, size_t l, const float *staging, size_t count,
                          void *const *to)
{
    size_t D = (size_t)net->problem.directions;
    for (size_t d = 0; d < D; d++)
        if (net->problem.dtype == LB_BF16)
            f32_to_bf16(staging + d * count, to[l * D + d], count);
        else
            memcpy(to[l * D + d], staging + d * count, count * sizeof(float));
}

static enum lb_status onednn_gradients(void *self, const struct lb_gradients *gradients,
                                       struct lb_error *err)
{
    const struct onednn *net = self;
    const struct lb_problem *p = &net->problem;
    enum lb_status st = LB_OK;
    size_t H = (size_t)p->hidden;
    float *staging = allocate_staging(p);
    if (!staging)
        return lb_fail(err, LB_OOM, "out of memory for gradients");
    for (size_t l = 0; l < (size_t)p->layers; l++) {
        const struct lb_onednn_layer *layer = &net->layers[l];
        int64_t input = layer->input;
        LB_TRY(lb_onednn_reorder(p, layer, LB_DW_IH, input, dnnl_f32, staging, false, err));
        copy_gradient(net, l, staging, 4 * H * (size_t)input, gradients->dw_ih);
        LB_TRY(lb_onednn_reorder(p, layer, LB_DW_HH, p->hidden, dnnl_f32, staging, false, err));
        copy_gradient(net, l, staging, 4 * H * H, gradients->dw_hh);
        LB_TRY(lb_onednn_reorder(p, layer, LB_DBIAS, 0, dnnl_f32, staging, false, err));
        copy_gradient(net, l, staging, 4 * H, gradients->db_ih);
        copy_gradient(net, l, staging, 4 * H, gradients->db_hh);
        if (p->cell != LB_CELL_PEEPHOLE)
            continue;
        LB_TRY(lb_onednn_reorder(p, layer, LB_DPEEPHOLE, 0, dnnl_f32, staging, false, err));
        copy_gradient(net, l, staging, 3 * H, gradients->dw_cell);
    }
done:
    free(staging);
    return st;
}

/* The library's reorders and the staging between them are part of the time. */
static enum lb_status onednn_update(void *self, const struct lb_update_io *io, struct lb_error *err)
{
    enum lb_status st = pack(self, &io->weights, err);
    return st == LB_OK ? onednn_gradients(self, &io->gradients, err) : st;
}

static const char *onednn_describe(const void *self)
{
    return ((const struct onednn *)self)->description;
}

static void onednn_destroy(void *self)
{
    struct onednn *net = self;
    for (size_t l = 0; net->layers && l < (size_t)net->problem.layers; l++)
        lb_onednn_layer_destroy(&net->layers[l]);
    free(net->layers);
}

const struct lb_impl lb_impl_onednn = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "onednn",
    .summary = "oneDNN's LSTM primitive",
    .memory = LB_HOST,
    .traits = LB_DETERMINISTIC,
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
