/* cpu_ref: the oracle behind the interface of an implementation. It takes any size and dtype,
 * computes in double, and runs on one thread. int8 has code of its own. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "api/impl.h"
#include "api/int8.h"
#include "device/weight_packing.h"
#include "reference/oracle.h"

/* The oracle's arrays lie in the harness's buffers: the weights in `weights`, the results of
 * forward that backward reads in `reserve`, and everything else in `workspace`. */
struct cpu_ref {
    struct lb_problem problem;
    struct lb_oracle oracle;
    struct lb_buffers buffers; /* for int8 */
    double *staging;           /* the canonical weights of one layer_dir, in the workspace */
    double *gradients;         /* of all layer_dirs: see lb_gradient_offset */
};

/* ---- int8, by the scheme of api/int8.h: quantised operands, sums in whole numbers, the cell in
 * f32 */

/* The quantised weights of one layer and direction, one after the other in the buffer of weights.
 * A row of w is a row of w_ih beside the same row of w_hh. */
struct quantised {
    size_t input;
    float *scale; /* [4H] of a sum */
    float *bias;  /* [4H] */
    int8_t *w;    /* [4H, I_l + H] */
};

static size_t bytes_of(const struct lb_problem *p, size_t input)
{
    size_t gates = 4 * (size_t)p->hidden, row = input + (size_t)p->hidden;
    return gates * (2 * sizeof(float) + row);
}

static struct quantised quantised_of(const struct lb_problem *p, void *base, size_t layer_dir)
{
    size_t D = (size_t)p->directions, H = (size_t)p->hidden, I = (size_t)p->input;
    size_t first = layer_dir < D ? layer_dir : D;
    struct quantised q = {.input = layer_dir < D ? I : D * H};
    char *at = (char *)base + first * bytes_of(p, I) + (layer_dir - first) * bytes_of(p, D * H);
    q.scale = (float *)(void *)at;
    q.bias = q.scale + 4 * H;
    q.w = (int8_t *)(q.bias + 4 * H);
    return q;
}

static size_t int8_weight_bytes(const struct lb_problem *p)
{
    size_t D = (size_t)p->directions, later = (size_t)(p->layers - 1) * D;
    return D * bytes_of(p, (size_t)p->input) + later * bytes_of(p, D * (size_t)p->hidden);
}

/* The outputs of two layers, and one row of operands. */
static size_t int8_workspace_bytes(const struct lb_problem *p)
{
    size_t wide = (size_t)(p->directions * p->hidden), I = (size_t)p->input;
    size_t y = (size_t)(p->seq_len * p->batch) * wide;
    return (p->layers > 1 ? 2 * y * sizeof(float) : 0) + (wide > I ? wide : I) + (size_t)p->hidden;
}

/* Quantises the weights of all layers and directions into buffers->weights. */
static void int8_prepare(const struct lb_problem *p, const struct lb_buffers *buffers,
                         const struct lb_weights *weights)
{
    size_t H = (size_t)p->hidden;
    for (size_t ld = 0; ld < lb_layer_dir_count(p); ld++) {
        struct quantised q = quantised_of(p, buffers->weights, ld);
        float x_max = ld < (size_t)p->directions ? buffers->x_max : 1;
        const float *b_ih = weights->b_ih[ld], *b_hh = weights->b_hh[ld];
        for (size_t g = 0; g < 4 * H; g++) {
            const float *w_ih = (const float *)weights->w_ih[ld] + g * q.input;
            const float *w_hh = (const float *)weights->w_hh[ld] + g * H;
            float most = lb_int8_channel(w_ih, q.input, x_max, w_hh, H);
            float factor = lb_int8_factor(most);
            int8_t *row = q.w + g * (q.input + H);
            for (size_t i = 0; i < q.input; i++)
                row[i] = lb_int8_round(w_ih[i] * x_max, factor);
            for (size_t i = 0; i < H; i++)
                row[q.input + i] = lb_int8_round(w_hh[i], factor);
            q.scale[g] = most / (127 * 127);
            q.bias[g] = b_ih[g] + b_hh[g];
        }
    }
}

static float sigmoid(float v)
{
    return 1 / (1 + expf(-v));
}

/* One row of one step: operand [I_l + H] is [x_q h_q]; h and c [H] become those of the step. */
static void step(const struct quantised *q, size_t H, const int8_t *operand, float *h, float *c)
{
    for (size_t j = 0; j < H; j++) {
        float a[4];
        for (size_t gate = 0; gate < 4; gate++) {
            size_t g = gate * H + j, row = q->input + H;
            int32_t sum = 0;
            for (size_t k = 0; k < row; k++)
                sum += operand[k] * q->w[g * row + k];
            a[gate] = (float)sum * q->scale[g] + q->bias[g];
        }
        c[j] = sigmoid(a[1]) * c[j] + sigmoid(a[0]) * tanhf(a[2]);
        h[j] = sigmoid(a[3]) * tanhf(c[j]);
    }
}

/* All steps of a layer and direction. in [T, B, I_l]; y [T, B, D*H] from this direction's first
 * unit on; h and c [B, H] begin as h0 and c0, and end as hn and cn. */
static void run_layer_dir(const struct lb_problem *p, const struct quantised *q, float x_factor,
                          size_t d, const int32_t *lengths, const float *in, float *y, float *h,
                          float *c, int8_t *operand)
{
    size_t T = (size_t)p->seq_len, B = (size_t)p->batch, H = (size_t)p->hidden;
    size_t wide = (size_t)p->directions * H;
    for (size_t i = 0; i < T; i++)
        for (size_t b = 0; b < B; b++) {
            size_t t = d == 0 ? i : T - 1 - i, row = t * B + b;
            if (lengths && t >= (size_t)lengths[b]) {
                memset(y + row * wide, 0, H * sizeof(*y));
                continue;
            }
            for (size_t k = 0; k < q->input; k++)
                operand[k] = lb_int8_round(in[row * q->input + k], x_factor);
            for (size_t k = 0; k < H; k++)
                operand[q->input + k] = lb_int8_round(h[b * H + k], 127);
            step(q, H, operand, h + b * H, c + b * H);
            memcpy(y + row * wide, h + b * H, H * sizeof(*y));
        }
}

static void int8_forward(const struct lb_problem *p, const struct lb_buffers *buffers,
                         const struct lb_forward_io *io)
{
    size_t D = (size_t)p->directions, L = (size_t)p->layers, H = (size_t)p->hidden;
    size_t state = (size_t)p->batch * H, count = (size_t)(p->seq_len * p->batch) * D * H;
    float *outputs[2] = {buffers->workspace, (float *)buffers->workspace + count};
    int8_t *operand = (int8_t *)(outputs[0] + (L > 1 ? 2 * count : 0));
    memcpy(io->hn, io->h0, L * D * state * sizeof(float));
    memcpy(io->cn, io->c0, L * D * state * sizeof(float));
    for (size_t ld = 0; ld < L * D; ld++) {
        struct quantised q = quantised_of(p, buffers->weights, ld);
        size_t l = ld / D;
        float *y = l == L - 1 ? io->y : outputs[l % 2];
        run_layer_dir(p, &q, lb_int8_factor(l == 0 ? buffers->x_max : 1), ld % D, buffers->lengths,
                      l == 0 ? io->x : outputs[(l - 1) % 2], y + ld % D * H,
                      (float *)io->hn + ld * state, (float *)io->cn + ld * state, operand);
    }
}

/* ---- The other types ---------------------------------------------------------------------- */

/* Number of weights of one layer_dir, with both biases. */
static size_t weights_count(const struct lb_problem *p, size_t layer_dir)
{
    size_t count = 0;
    for (int w = 0; w < LB_WEIGHT_COUNT; w++)
        count += lb_weight_elements(p, layer_dir, (enum lb_weight)w);
    return count;
}

static enum lb_status cpu_ref_supports(const struct lb_problem *problem,
                                       const struct lb_exec_config *config, struct lb_error *why)
{
    if (config->threads > 1)
        return lb_fail(why, LB_UNSUPPORTED, "threads %d: cpu_ref runs on one thread",
                       config->threads);
    if (problem->math != LB_IEEE)
        return lb_fail(why, LB_UNSUPPORTED, "math %s: cpu_ref computes in double precision",
                       lb_math_name(problem->math));
    return LB_OK;
}

static enum lb_status cpu_ref_create(void *self, const struct lb_problem *problem,
                                     const struct lb_exec_config *config, struct lb_error *err)
{
    struct cpu_ref *ref = self;
    (void)config;
    (void)err;
    ref->problem = *problem;
    return LB_OK;
}

/* Whether backward reads what forward wrote to the array. */
static bool is_kept(size_t offset)
{
    return offset == offsetof(struct lb_oracle, y) || offset == offsetof(struct lb_oracle, gates) ||
           offset == offsetof(struct lb_oracle, cells) ||
           offset == offsetof(struct lb_oracle, kept) || offset == offsetof(struct lb_oracle, norm);
}

/* Sets the pointers to all arrays but the weights. With zeroed buffers it only computes the sizes,
 * in elements. */
static void lay_out(struct cpu_ref *ref, const struct lb_buffers *buffers, size_t *reserve,
                    size_t *workspace)
{
    const struct lb_problem *p = &ref->problem;
    struct lb_lstm_array arrays[LB_LSTM_ARRAYS];
    lb_lstm_arrays(p, arrays);
    *reserve = *workspace = 0;
    for (size_t i = 0; i < LB_LSTM_ARRAYS; i++) {
        bool kept = lb_trains(p) && is_kept(arrays[i].offset);
        double *base = kept ? buffers->reserve : buffers->workspace;
        size_t *used = kept ? reserve : workspace;
        double *array = base && arrays[i].count > 0 ? base + *used : NULL;
        if (arrays[i].offset == offsetof(struct lb_oracle, weights))
            continue;
        memcpy((char *)&ref->oracle + arrays[i].offset, &array, sizeof(array));
        *used += arrays[i].count;
    }
    /* Only prepare uses staging, so it may overlap all other arrays. */
    size_t first = weights_count(p, 0), last = weights_count(p, lb_layer_dir_count(p) - 1);
    size_t staging = first > last ? first : last;
    ref->staging = buffers->workspace;
    *workspace = *workspace > staging ? *workspace : staging;
}

static enum lb_status cpu_ref_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    size_t gradients = lb_has_backward(p) ? lb_gradient_offset(p, lb_layer_dir_count(p)) : 0;
    size_t reserve, workspace;
    (void)err;
    if (p->dtype == LB_INT8) {
        sizes->weights = int8_weight_bytes(p);
        sizes->workspace = int8_workspace_bytes(p);
        return LB_OK;
    }
    lay_out(ref, &(struct lb_buffers){0}, &reserve, &workspace);
    sizes->weights = lb_lstm_counts(p).weights * sizeof(double);
    sizes->gradients = gradients * sizeof(double);
    sizes->reserve = reserve * sizeof(double);
    sizes->workspace = workspace * sizeof(double);
    return LB_OK;
}

static enum lb_status cpu_ref_prepare(void *self, const struct lb_buffers *buffers,
                                      const struct lb_weights *weights, struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    const void *const *const tables[] = {weights->w_ih, weights->w_hh, weights->b_ih, weights->b_hh,
                                         weights->w_cell};
    size_t reserve, workspace;
    (void)err;
    ref->buffers = *buffers;
    if (p->dtype == LB_INT8) {
        int8_prepare(p, buffers, weights);
        return LB_OK;
    }
    ref->oracle =
        (struct lb_oracle){.problem = *p, .lengths = buffers->lengths, .weights = buffers->weights};
    ref->gradients = buffers->gradients;
    lay_out(ref, buffers, &reserve, &workspace);

    for (size_t ld = 0; ld < lb_layer_dir_count(p); ld++) {
        double *at = ref->staging;
        for (int w = 0; w < LB_WEIGHT_COUNT; w++) {
            size_t count = lb_weight_elements(p, ld, (enum lb_weight)w);
            if (count > 0)
                lb_load(p->dtype, tables[w][ld], at, count);
            at += count;
        }
        lb_oracle_pack(&ref->oracle, ld, ref->staging);
    }
    return LB_OK;
}

/* Loads an input [count] of a call into the oracle's array. */
static void load(const struct cpu_ref *ref, const void *from, const double *to, size_t count)
{
    if (count > 0)
        lb_load(ref->problem.dtype, from, (double *)(uintptr_t)to, count);
}

static enum lb_status cpu_ref_forward(void *self, const struct lb_forward_io *io,
                                      struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    struct lb_lstm_counts n = lb_lstm_counts(p);
    size_t last = n.y / (size_t)p->layers;
    (void)err;
    if (p->dtype == LB_INT8) {
        int8_forward(p, &ref->buffers, io);
        return LB_OK;
    }
    load(ref, io->x, ref->oracle.x, n.x);
    load(ref, io->h0, ref->oracle.h0, n.h);
    load(ref, io->c0, ref->oracle.c0, n.state);
    load(ref, io->mask, ref->oracle.mask, n.mask);
    lb_oracle_forward(&ref->oracle);
    lb_store(p->dtype, io->y, ref->oracle.y + n.y - last, last);
    lb_store(p->dtype, io->hn, ref->oracle.hn, n.h);
    lb_store(p->dtype, io->cn, ref->oracle.cn, n.state);
    return LB_OK;
}

static enum lb_status cpu_ref_backward(void *self, const struct lb_backward_io *io,
                                       struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    struct lb_lstm_counts n = lb_lstm_counts(p);
    (void)err;
    /* The workspace may have been overwritten since forward. */
    load(ref, io->x, ref->oracle.x, n.x);
    load(ref, io->h0, ref->oracle.h0, n.h);
    load(ref, io->c0, ref->oracle.c0, n.state);
    load(ref, io->mask, ref->oracle.mask, n.mask);
    load(ref, io->dy, ref->oracle.dy, n.between);
    load(ref, io->dhn, ref->oracle.dhn, n.h);
    load(ref, io->dcn, ref->oracle.dcn, n.state);
    lb_oracle_backward(&ref->oracle);
    lb_store(p->dtype, io->dx, ref->oracle.dx, n.x);
    lb_store(p->dtype, io->dh0, ref->oracle.dh0, n.h);
    lb_store(p->dtype, io->dc0, ref->oracle.dc0, n.state);
    for (size_t ld = 0; ld < lb_layer_dir_count(p); ld++)
        lb_oracle_weight_gradients(&ref->oracle, ld, NULL,
                                   ref->gradients + lb_gradient_offset(p, ld));
    return LB_OK;
}

static enum lb_status cpu_ref_gradients(void *self, const struct lb_gradients *gradients,
                                        struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    void *const *const tables[] = {gradients->dw_ih, gradients->dw_hh, gradients->db_ih,
                                   gradients->db_hh, gradients->dw_cell};
    const double *at = ref->gradients;
    (void)err;
    for (size_t ld = 0; ld < lb_layer_dir_count(p); ld++)
        for (int w = 0; w < LB_WEIGHT_COUNT; w++) {
            size_t count = lb_weight_elements(p, ld, (enum lb_weight)w);
            if (count > 0)
                lb_store(p->dtype, tables[w][ld], at, count);
            at += w == LB_B_IH ? 0 : count; /* both biases have one gradient */
        }
    return LB_OK;
}

static const char *cpu_ref_describe(const void *self)
{
    const struct cpu_ref *ref = self;
    return ref->problem.dtype == LB_INT8 ? "plain C, s8 weights per channel, s8 activations static"
                                         : "plain C, computed in double";
}

static void cpu_ref_destroy(void *self)
{
    (void)self; /* it owns nothing */
}

const struct lb_impl lb_impl_cpu_ref = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "cpu_ref",
    .summary = "the definition in plain C, computed in double: the oracle",
    .memory = LB_HOST,
    .traits = LB_DETERMINISTIC | LB_REFERENCE | LB_INSTANCES | LB_QUANTISES | LB_QUANTISES_PLAINLY,
    .state_size = sizeof(struct cpu_ref),
    .supports = cpu_ref_supports,
    .create = cpu_ref_create,
    .sizes = cpu_ref_sizes,
    .prepare = cpu_ref_prepare,
    .forward = cpu_ref_forward,
    .backward = cpu_ref_backward,
    .gradients = cpu_ref_gradients,
    .describe = cpu_ref_describe,
    .destroy = cpu_ref_destroy,
    .cells = 1u << LB_CELL_LAYERNORM | 1u << LB_CELL_RECURRENT_DROPOUT | 1u << LB_CELL_PROJECTION |
             1u << LB_CELL_PEEPHOLE | 1u << LB_CELL_RESIDUAL,
};
