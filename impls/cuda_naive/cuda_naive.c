/* cuda_naive: what a framework's generic cell does on a GPU. Per step and gate it runs one GEMM of
 * the input and one of h, then one kernel per addition, bias, activation and multiplication.
 * Nothing is hoisted out of the loop and nothing is fused. */
#include <stdlib.h>

#include "cuda/common/cell.h"
#include "device/device.h"
#include "impls/common/gpu_network.h"

/* Buffers of one layer and direction (layer_dir l*D + d). T and R as in gpu_network.h; P is the
 * size of h, which is H but for the cell projection. In training there are T+1 slots of the states
 * and T of what backward reads, in the order of the direction's own steps. In inference there are
 * two slots of the states, used in turn, and one of everything else. */
struct layer_dir {
    struct lb_gpu_weights tensors; /* gradients in R */
    void *b_ih, *b_hh;             /* [4H] R */
    void *gates;                   /* [slots, 4, B, H] R: i f g o */
    void *inner;                   /* [slots, B, H] R: tanh(c) or relu(c) */
    void *c;                       /* [slots, B, H] R */
    void *h;                       /* [slots, B, P] T */
    void *y;  /* [T, B, D*P] T, of the whole layer; NULL in the last layer: the case's own */
    void *dy; /* likewise, its gradient */

    /* Only for the cells that are named; else NULL. */
    void *vectors;     /* R, peephole and layernorm: w_cell */
    void *unprojected; /* [slots, B, H] T, projection: o tanh(c) */
    void *normalised;  /* [slots, 5, B, H] R, layernorm: of i f g o c */
    void *factors;     /* [slots, 5, B] R, layernorm: what they were multiplied by */
};

/* Scratch of one step. */
struct scratch {
    void *first, *second; /* [B, H] R */
    void *stored;         /* [B, H] T */
    void *da[4];          /* [B, H] R: gradients of the pre-activations */
    void *da_stored;      /* [B, H] T */
    void *dh, *dh_next;   /* [B, H] R */
    void *dc, *dc_next;   /* [B, H] R */
    void *dx, *dx_other;  /* [B, widest I_l] R */

    /* Only for the cells that are named; else NULL. */
    void *mask;         /* [B, H] R, recurrent-dropout: of one layer_dir */
    void *masked;       /* [B, H] T, recurrent-dropout: mask h */
    void *dh_stored;    /* [B, P] T, projection */
    void *wide;         /* [B, D*H] T, residual */
    void *mean, *along; /* [B] R, layernorm */
};

struct naive {
    struct lb_gpu_network net;    /* one stream: the case's stream; gradients in R */
    struct layer_dir *layer_dirs; /* [L*D] */
    struct scratch scratch;
    void *averages; /* [H] R, layernorm: 1/H each, by which a GEMM computes means */
};

static void carve_layer_dir(struct naive *self, struct lb_gpu_parts *parts, int64_t index)
{
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    struct layer_dir *e = &self->layer_dirs[index];
    int64_t state = p->batch * p->hidden, h_state = p->batch * lb_h_size(p);
    bool trains = lb_trains(p);
    struct lb_arena *keep = trains ? &parts->reserve : &parts->workspace;
    int64_t slots = trains ? p->seq_len : 1, states = trains ? p->seq_len + 1 : 2;
    bool top = index / p->directions + 1 == p->layers, first = index % p->directions == 0;
    e->tensors = lb_gpu_weights_of(net, index);
    e->b_ih = lb_gpu_carve_real(net, &parts->weights, 4 * p->hidden);
    e->b_hh = lb_gpu_carve_real(net, &parts->weights, 4 * p->hidden);
    e->gates = lb_gpu_carve_real(net, keep, slots * 4 * state);
    e->inner = lb_gpu_carve_real(net, keep, slots * state);
    e->c = lb_gpu_carve_real(net, keep, states * state);
    e->h = lb_gpu_carve_storage(net, keep, states * h_state);
    if (p->cell == LB_CELL_PEEPHOLE || p->cell == LB_CELL_LAYERNORM)
        e->vectors = lb_gpu_carve_real(net, &parts->weights, (int64_t)lb_cell_weight_count(p));
    if (p->cell == LB_CELL_PROJECTION)
        e->unprojected = lb_gpu_carve_storage(net, keep, slots * state);
    if (p->cell == LB_CELL_LAYERNORM) {
        e->normalised = lb_gpu_carve_real(net, keep, slots * 5 * state);
        e->factors = lb_gpu_carve_real(net, keep, slots * 5 * p->batch);
    }
    if (top)
        return;
    int64_t layer_count = p->seq_len * p->directions * h_state;
    e->y = first ? lb_gpu_carve_storage(net, keep, layer_count) : self->layer_dirs[index - 1].y;
    if (lb_has_backward(p))
        e->dy = first ? lb_gpu_carve_storage(net, &parts->workspace, layer_count)
                      : self->layer_dirs[index - 1].dy;
}

static void carve_scratch(struct naive *self, struct lb_arena *from)
{
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    struct scratch *s = &self->scratch;
    int64_t state = p->batch * p->hidden;
    int64_t y_width = p->directions * lb_h_size(p);
    int64_t widest = p->layers > 1 && y_width > p->input ? y_width : p->input;
    s->first = lb_gpu_carve_real(net, from, state);
    s->second = lb_gpu_carve_real(net, from, state);
    s->stored = lb_gpu_carve_storage(net, from, state);
    if (p->cell == LB_CELL_RECURRENT_DROPOUT) {
        s->mask = lb_gpu_carve_real(net, from, state);
        s->masked = lb_gpu_carve_storage(net, from, state);
    }
    if (p->cell == LB_CELL_LAYERNORM) {
        s->mean = lb_gpu_carve_real(net, from, p->batch);
        s->along = lb_gpu_carve_real(net, from, p->batch);
    }
    if (!lb_has_backward(p))
        return;
    if (p->cell == LB_CELL_PROJECTION)
        s->dh_stored = lb_gpu_carve_storage(net, from, state);
    if (p->cell == LB_CELL_RESIDUAL)
        s->wide = lb_gpu_carve_storage(net, from, p->batch * y_width);
    for (int k = 0; k < 4; k++)
        s->da[k] = lb_gpu_carve_real(net, from, state);
    s->da_stored = lb_gpu_carve_storage(net, from, state);
    s->dh = lb_gpu_carve_real(net, from, state);
    s->dh_next = lb_gpu_carve_real(net, from, state);
    s->dc = lb_gpu_carve_real(net, from, state);
    s->dc_next = lb_gpu_carve_real(net, from, state);
    s->dx = lb_gpu_carve_real(net, from, p->batch * widest);
    s->dx_other = lb_gpu_carve_real(net, from, p->batch * widest);
}

/* lb_gpu_carve */
static void *carve(void *state, struct lb_gpu_parts *parts)
{
    struct naive *self = state;
    const struct lb_problem *p = self->net.problem;
    void *scratch = lb_gpu_network_carve(&self->net, parts);
    if (p->cell == LB_CELL_LAYERNORM)
        self->averages = lb_gpu_carve_real(&self->net, &parts->weights, p->hidden);
    for (int64_t i = 0; i < p->layers * p->directions; i++)
        carve_layer_dir(self, parts, i);
    carve_scratch(self, &parts->workspace);
    return scratch;
}

static enum lb_status naive_create(void *state, const struct lb_problem *problem,
                                   const struct lb_exec_config *config, struct lb_error *err)
{
    struct naive *self = state;
    self->net = lb_gpu_network_make(problem, config, 1, carve);
    self->net.gradients_dtype = self->net.real;
    self->layer_dirs =
        calloc((size_t)(problem->layers * problem->directions), sizeof(*self->layer_dirs));
    return self->layer_dirs ? LB_OK : lb_fail(err, LB_OOM, "out of memory");
}

/* Sets the vector of numbers 1/H. */
static enum lb_status upload_averages(const struct naive *self, struct lb_error *err)
{
    const struct lb_gpu_network *net = &self->net;
    size_t H = (size_t)net->problem->hidden, size = lb_dtype_size(net->real);
    double average = 1 / (double)H;
    char *values = malloc(H * size);
    if (!values)
        return lb_fail(err, LB_OOM, "out of memory");
    for (size_t j = 0; j < H; j++)
        lb_store(net->real, values + j * size, &average, 1);
    enum lb_status st = lb_device_space.upload(self->averages, values, H * size, err);
    free(values);
    return st;
}

static enum lb_status naive_prepare(void *state, const struct lb_buffers *buffers,
                                    const struct lb_weights *weights, struct lb_error *err)
{
    struct naive *self = state;
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    LB_CHECK(lb_gpu_network_prepare(self, buffers, weights, err));
    for (int64_t i = 0; i < p->layers * p->directions; i++) {
        const struct layer_dir *e = &self->layer_dirs[i];
        LB_CHECK(lb_cell_convert_to_sums(p->dtype, e->b_ih, e->tensors.weights[LB_B_IH],
                                         4 * p->hidden, net->stream, err));
        LB_CHECK(lb_cell_convert_to_sums(p->dtype, e->b_hh, e->tensors.weights[LB_B_HH],
                                         4 * p->hidden, net->stream, err));
        if (e->vectors)
            LB_CHECK(lb_cell_convert_to_sums(p->dtype, e->vectors, e->tensors.weights[LB_W_CELL],
                                             (int64_t)lb_cell_weight_count(p), net->stream, err));
    }
    if (self->averages)
        LB_CHECK(upload_averages(self, err));
    return LB_OK;
}

/* One layer and direction in one call. */
struct layer_pass {
    struct naive *self;
    const struct lb_gpu_network *net;
    const struct lb_problem *p;
    struct layer_dir *e;
    struct scratch *scratch;
    int64_t direction, index, input; /* input: I_l */
    int64_t state;                   /* B H */
    int64_t h_size, h_state;         /* P and B P */
    const void *x;                   /* [T, B, I_l] T */
    const void *mask;                /* [L*D, B, H] T of recurrent-dropout */
    enum lb_status *st;              /* of the first call that failed, with its reason in err */
    struct lb_error *err;

    /* Of a step (step_of), as in struct layer_dir: what backward reads, and the states. */
    int64_t t;
    const void *x_t; /* [B, I_l] T */
    void *gates[4], *inner, *unprojected, *normalised[5], *factors[5];
    void *c_prev, *c, *h_prev, *h;
};

/* Enqueues what the call does, unless an earlier call of the pass failed. */
#define ENQUEUE(w, call)       \
    do {                       \
        if (*(w)->st == LB_OK) \
            *(w)->st = (call); \
    } while (0)

static struct layer_pass layer_pass_make(struct naive *self, int64_t index, const void *x,
                                         const void *mask, enum lb_status *st, struct lb_error *err)
{
    const struct lb_problem *p = self->net.problem;
    int64_t layer = index / p->directions, h_size = lb_h_size(p);
    return (struct layer_pass){
        .self = self,
        .net = &self->net,
        .p = p,
        .e = &self->layer_dirs[index],
        .scratch = &self->scratch,
        .direction = index % p->directions,
        .index = index,
        .input = lb_layer_input(p, layer),
        .state = p->batch * p->hidden,
        .h_size = h_size,
        .h_state = p->batch * h_size,
        .mask = mask,
        .x = layer == 0 ? x : self->layer_dirs[(layer - 1) * p->directions].y,
        .st = st,
        .err = err,
    };
}

/* The pass at its s-th step, with the places of struct layer_dir that the step uses. */
static struct layer_pass step_of(const struct layer_pass *pass, int64_t s)
{
    struct layer_pass w = *pass;
    const struct lb_gpu_network *net = w.net;
    const struct layer_dir *e = w.e;
    bool trains = lb_trains(w.p);
    int64_t slot = trains ? s : 0, before = trains ? s : s % 2, after = trains ? s + 1 : 1 - s % 2;
    w.t = w.direction == 0 ? s : w.p->seq_len - 1 - s;
    w.x_t = lb_gpu_storage_at(net, w.x, w.t * w.p->batch * w.input);
    for (int gate = 0; gate < 4; gate++)
        w.gates[gate] = lb_gpu_real_at(net, e->gates, (slot * 4 + gate) * w.state);
    w.inner = lb_gpu_real_at(net, e->inner, slot * w.state);
    w.c_prev = lb_gpu_real_at(net, e->c, before * w.state);
    w.c = lb_gpu_real_at(net, e->c, after * w.state);
    w.h_prev = lb_gpu_storage_at(net, e->h, before * w.h_state);
    w.h = lb_gpu_storage_at(net, e->h, after * w.h_state);
    if (e->unprojected)
        w.unprojected = lb_gpu_storage_at(net, e->unprojected, slot * w.state);
    for (int which = 0; e->normalised && which < 5; which++) {
        w.normalised[which] = lb_gpu_real_at(net, e->normalised, (slot * 5 + which) * w.state);
        w.factors[which] = lb_gpu_real_at(net, e->factors, (slot * 5 + which) * w.p->batch);
    }
    return w;
}

/* Vector number `index` [H] R of w_cell of peephole or layernorm, and its gradient. */
static const void *vector_at(const struct layer_pass *w, int index)
{
    return lb_gpu_real_at(w->net, w->e->vectors, index * w->p->hidden);
}

static void *dvector_at(const struct layer_pass *w, int index)
{
    return lb_gpu_real_at(w->net, w->e->tensors.dweights[LB_W_CELL], index * w->p->hidden);
}

/* One gate's rows of w_ih or w_hh. */
static const void *rows_of(const struct layer_pass *w, const void *weights, int gate,
                           int64_t columns)
{
    return lb_gpu_storage_at(w->net, weights, gate * w->p->hidden * columns);
}

/* to [count] R = op(a, b), and the same for [B, H]. */
static void elements(const struct layer_pass *w, enum lb_elementwise_op op, void *to, const void *a,
                     const void *b, int64_t count)
{
    ENQUEUE(w, lb_elementwise(w->net->real, op, to, a, b, count, w->net->stream, w->err));
}

static void elementwise(const struct layer_pass *w, enum lb_elementwise_op op, void *to,
                        const void *a, const void *b)
{
    elements(w, op, to, a, b, w->state);
}

/* Convert `count` elements from T to R, and from R to T. */
static void to_sums(const struct layer_pass *w, void *to, const void *from, int64_t count)
{
    ENQUEUE(w, lb_cell_convert_to_sums(w->p->dtype, to, from, count, w->net->stream, w->err));
}

static void to_storage(const struct layer_pass *w, void *to, const void *from, int64_t count)
{
    ENQUEUE(w, lb_cell_convert_to_storage(w->p->dtype, to, from, count, w->net->stream, w->err));
}

/* to [B, H] R = from [B, H] op vector, which is [B] with per_row, else [H]. */
static void broadcast(const struct layer_pass *w, enum lb_elementwise_op op, bool per_row, void *to,
                      const void *from, const void *vector)
{
    ENQUEUE(w, lb_elementwise_broadcast(w->net->real, op, per_row, to, from, vector, w->p->batch,
                                        w->p->hidden, w->net->stream, w->err));
}

/* to [H] R += the sums of from [B, H] R over its rows. */
static void add_row_sums(const struct layer_pass *w, void *to, const void *from)
{
    ENQUEUE(w, lb_elementwise_add_row_sums(w->net->real, to, from, w->p->batch, w->p->hidden,
                                           w->net->stream, w->err));
}

/* to [B, n] R = a [B, k] T b' [k, n], where b is stored [n, k] T. */
static void forward_gemm(const struct layer_pass *w, void *to, const void *a, int64_t k,
                         const void *b, int64_t n)
{
    const struct lb_gemm g = {.out = w->net->real,
                              .transpose_b = true,
                              .m = w->p->batch,
                              .n = n,
                              .k = k,
                              .a = a,
                              .b = b,
                              .c = to};
    ENQUEUE(w, lb_gpu_gemm(w->net, 0, g, w->err));
}

/* Of a gradient a [B, k] T: to [B, n] R (+)= a b [k, n] T, or, of weights, to [k, n] R (+)= a' b
 * [B, n] T. */
static void backward_gemm(const struct layer_pass *w, bool of_weights, void *to, const void *a,
                          int64_t k, const void *b, int64_t n, bool accumulate)
{
    const struct lb_gemm g = {.out = w->net->real,
                              .transpose_a = of_weights,
                              .accumulate = accumulate,
                              .m = of_weights ? k : w->p->batch,
                              .n = n,
                              .k = of_weights ? w->p->batch : k,
                              .a = a,
                              .b = b,
                              .c = to};
    ENQUEUE(w, lb_gpu_gemm(w->net, 0, g, w->err));
}

static void copy(const struct layer_pass *w, void *to, const void *from, size_t bytes)
{
    ENQUEUE(w, lb_stream_copy(w->net->streams, 0, to, from, bytes, w->err));
}

/* Copies batch rows that have not ended at the step's time from `from` to `to`, and the others from
 * `other`, or sets them to zero where other is NULL. All are [B, columns] of rows so many elements
 * apart. */
static void select_rows(const struct layer_pass *w, enum lb_dtype dtype, int64_t columns, void *to,
                        int64_t to_stride, const void *from, int64_t from_stride, const void *other)
{
    const struct lb_elementwise_select select = {.rows = w->p->batch,
                                                 .columns = columns,
                                                 .step = w->t,
                                                 .lengths = w->net->lengths,
                                                 .to = to,
                                                 .to_stride = to_stride,
                                                 .from = from,
                                                 .from_stride = from_stride,
                                                 .other = other};
    ENQUEUE(w, lb_elementwise_select_rows(dtype, &select, w->net->stream, w->err));
}

/* The same where all rows follow one another, as [B, H] R or as [B, P] of R or T; nothing where no
 * row ends early. */
static void keep_columns(const struct layer_pass *w, enum lb_dtype dtype, int64_t columns, void *to,
                         const void *from, const void *other)
{
    if (w->p->ragged)
        select_rows(w, dtype, columns, to, columns, from, columns, other);
}

static void keep_running(const struct layer_pass *w, void *to, const void *from, const void *other)
{
    keep_columns(w, w->net->real, w->p->hidden, to, from, other);
}

/* ---- Parts of cells other than the standard one --------------------------------------------- */

/* to [B] R = the mean of each row of from [B, H] R. */
static void row_means(const struct layer_pass *w, void *to, const void *from)
{
    const struct lb_gemm g = {.in = w->net->real,
                              .out = w->net->real,
                              .math = LB_IEEE,
                              .m = w->p->batch,
                              .n = 1,
                              .k = w->p->hidden,
                              .a = from,
                              .lda = w->p->hidden,
                              .b = w->self->averages,
                              .ldb = 1,
                              .c = to,
                              .ldc = 1};
    ENQUEUE(w, lb_stream_gemm(w->net->streams, 0, &g, w->err));
}

/* v [B, H] R = LN(v), vector `which` of i f g o c. Uses scratch->second. */
static void layernorm_forward(const struct layer_pass *w, int which, void *v)
{
    struct scratch *x = w->scratch;
    void *normalised = w->normalised[which], *factors = w->factors[which];
    row_means(w, x->mean, v);
    broadcast(w, LB_OP_SUBTRACT, true, normalised, v, x->mean);
    elementwise(w, LB_OP_MULTIPLY, x->second, normalised, normalised);
    row_means(w, x->mean, x->second);
    elements(w, LB_OP_INVERSE_ROOT, factors, x->mean, NULL, w->p->batch);
    broadcast(w, LB_OP_MULTIPLY, true, normalised, normalised, factors);
    broadcast(w, LB_OP_MULTIPLY, false, v, normalised, vector_at(w, which));
    broadcast(w, LB_OP_ADD, false, v, v, vector_at(w, 5 + which));
}

/* d [B, H] R, the gradient of LN(v), becomes that of v; rows that have ended are zero. Adds what it
 * contributes to the gradients of gain and bias. other [B, H] R is scratch. */
static void layernorm_backward(const struct layer_pass *w, int which, void *d, void *other)
{
    struct scratch *x = w->scratch;
    const void *normalised = w->normalised[which];
    keep_running(w, d, d, NULL);
    elementwise(w, LB_OP_MULTIPLY, other, d, normalised);
    add_row_sums(w, dvector_at(w, which), other);
    add_row_sums(w, dvector_at(w, 5 + which), d);
    broadcast(w, LB_OP_MULTIPLY, false, d, d, vector_at(w, which));
    row_means(w, x->mean, d);
    elementwise(w, LB_OP_MULTIPLY, other, d, normalised);
    row_means(w, x->along, other);
    broadcast(w, LB_OP_MULTIPLY, true, other, normalised, x->along);
    broadcast(w, LB_OP_SUBTRACT, true, d, d, x->mean);
    elementwise(w, LB_OP_SUBTRACT, d, d, other);
    broadcast(w, LB_OP_MULTIPLY, true, d, d, w->factors[which]);
}

/* to [B, H] R += vector `index` of the peepholes times from [B, H] R; other [B, H] R is scratch. */
static void add_peephole(const struct layer_pass *w, int index, void *to, const void *from,
                         void *other)
{
    broadcast(w, LB_OP_MULTIPLY, false, other, from, vector_at(w, index));
    elementwise(w, LB_OP_ADD, to, to, other);
}

/* What w_hh multiplies: h, or for recurrent-dropout scratch->masked, which is set to
 * mask h here. Uses scratch->first. */
static const void *recurrent_operand(const struct layer_pass *w)
{
    struct scratch *x = w->scratch;
    if (!x->mask)
        return w->h_prev;
    to_sums(w, x->first, w->h_prev, w->state);
    elementwise(w, LB_OP_MULTIPLY, x->first, x->first, x->mask);
    to_storage(w, x->masked, x->first, w->state);
    return x->masked;
}

/* Sets scratch->mask to the mask of the layer_dir. */
static void load_mask(const struct layer_pass *w)
{
    if (w->scratch->mask)
        to_sums(w, w->scratch->mask, lb_gpu_storage_at(w->net, w->mask, w->index * w->state),
                w->state);
}

/* h = w_hr times the unprojected o tanh(c). Uses scratch->second. */
static void project(const struct layer_pass *w)
{
    forward_gemm(w, w->scratch->second, w->unprojected, w->p->hidden,
                 w->e->tensors.weights[LB_W_CELL], w->h_size);
    to_storage(w, w->h, w->scratch->second, w->h_state);
}

/* scratch->first: from [B, P] R, the gradient of h, to [B, H] R, that of o tanh(c). Adds what it
 * contributes to the gradient of w_hr. */
static void project_backward(const struct layer_pass *w)
{
    const struct lb_gpu_weights *tensors = &w->e->tensors;
    void *dh = w->scratch->dh_stored;
    to_storage(w, dh, w->scratch->first, w->h_state);
    keep_columns(w, w->p->dtype, w->h_size, dh, dh, NULL);
    backward_gemm(w, false, w->scratch->first, dh, w->h_size, tensors->weights[LB_W_CELL],
                  w->p->hidden, false);
    backward_gemm(w, true, tensors->dweights[LB_W_CELL], dh, w->h_size, w->unprojected,
                  w->p->hidden, true);
}

/* Whether the layer's input is added to its output. */
static bool skips(const struct layer_pass *w)
{
    return w->p->cell == LB_CELL_RESIDUAL && w->index >= w->p->directions;
}

/* Adds the layer's input to h [B, H] T: scratch->stored becomes the sum.
 * Uses scratch->first and second. */
static void add_skip(const struct layer_pass *w)
{
    struct scratch *x = w->scratch;
    const void *own_columns = lb_gpu_storage_at(w->net, w->x_t, w->direction * w->p->hidden);
    select_rows(w, w->p->dtype, w->p->hidden, x->stored, w->p->hidden, own_columns, w->input, NULL);
    to_sums(w, x->first, x->stored, w->state);
    to_sums(w, x->second, w->h, w->state);
    elementwise(w, LB_OP_ADD, x->first, x->first, x->second);
    to_storage(w, x->stored, x->first, w->state);
}

/* dx [B, I_l] R += dy [B, D*H] T at time t: the input of the layer is also a part of its output. */
static void add_skip_gradient(const struct layer_pass *w, const void *dy)
{
    struct scratch *x = w->scratch;
    int64_t count = w->p->batch * w->input;
    select_rows(w, w->p->dtype, w->input, x->wide, w->input,
                lb_gpu_storage_at(w->net, dy, w->t * count), w->input, NULL);
    to_sums(w, x->dx_other, x->wide, count);
    elements(w, LB_OP_ADD, x->dx, x->dx, x->dx_other, count);
}

/* ---- Forward ------------------------------------------------------------------------------- */

static enum lb_elementwise_op activation(const struct layer_pass *w)
{
    return w->p->act == LB_ACT_RELU ? LB_OP_RELU : LB_OP_TANH;
}

/* recurrent [B, P] T: what w_hh multiplies. */
static void forward_gate(const struct layer_pass *w, int gate, const void *recurrent)
{
    const struct layer_dir *e = w->e;
    void *sum = w->scratch->first, *other = w->scratch->second;
    int64_t rows = gate * w->p->hidden;
    forward_gemm(w, sum, w->x_t, w->input, rows_of(w, e->tensors.weights[LB_W_IH], gate, w->input),
                 w->p->hidden);
    forward_gemm(w, other, recurrent, w->h_size,
                 rows_of(w, e->tensors.weights[LB_W_HH], gate, w->h_size), w->p->hidden);
    elementwise(w, LB_OP_ADD, sum, sum, other);
    broadcast(w, LB_OP_ADD, false, sum, sum, lb_gpu_real_at(w->net, e->b_ih, rows));
    broadcast(w, LB_OP_ADD, false, sum, sum, lb_gpu_real_at(w->net, e->b_hh, rows));
    if (w->p->cell == LB_CELL_PEEPHOLE && gate != 2) /* gate o looks at the new c */
        add_peephole(w, gate == 3 ? 2 : gate, sum, gate == 3 ? w->c : w->c_prev, other);
    if (w->p->cell == LB_CELL_LAYERNORM)
        layernorm_forward(w, gate, sum);
    elementwise(w, gate == 2 ? activation(w) : LB_OP_SIGMOID, w->gates[gate], sum, NULL);
}

/* Writes h to y [T, B, D*H] at time t, and zero to batch rows past their end. */
static void write_y(const struct layer_pass *w, void *y)
{
    int64_t width = w->p->directions * w->h_size;
    void *to = lb_gpu_storage_at(w->net, y, w->t * w->p->batch * width + w->direction * w->h_size);
    if (skips(w))
        add_skip(w);
    select_rows(w, w->p->dtype, w->h_size, to, width, skips(w) ? w->scratch->stored : w->h,
                w->h_size, NULL);
}

static void forward_step(const struct layer_pass *w, void *y)
{
    const struct lb_problem *p = w->p;
    void *first = w->scratch->first, *second = w->scratch->second, *c = w->c;
    bool projects = p->cell == LB_CELL_PROJECTION;
    const void *recurrent = recurrent_operand(w);
    for (int gate = 0; gate < 3; gate++)
        forward_gate(w, gate, recurrent);
    elementwise(w, LB_OP_MULTIPLY, first, w->gates[1], w->c_prev);
    elementwise(w, LB_OP_MULTIPLY, second, w->gates[0], w->gates[2]);
    elementwise(w, LB_OP_ADD, c, first, second);
    if (p->cell == LB_CELL_LAYERNORM)
        layernorm_forward(w, 4, c);
    forward_gate(w, 3, recurrent);
    elementwise(w, activation(w), w->inner, c, NULL);
    elementwise(w, LB_OP_MULTIPLY, first, w->gates[3], w->inner);
    to_storage(w, projects ? w->unprojected : w->h, first, w->state);
    if (projects)
        project(w);
    keep_running(w, c, c, w->c_prev);
    keep_columns(w, p->dtype, w->h_size, w->h, w->h, w->h_prev);
    write_y(w, y);
}

static enum lb_status naive_forward(void *state, const struct lb_forward_io *io,
                                    struct lb_error *err)
{
    struct naive *self = state;
    const struct lb_problem *p = self->net.problem;
    enum lb_status st = LB_OK;
    for (int64_t i = 0; i < p->layers * p->directions; i++) {
        const struct layer_pass pass = layer_pass_make(self, i, io->x, io->mask, &st, err);
        struct layer_pass w = step_of(&pass, 0);
        load_mask(&w);
        ENQUEUE(&w, lb_gpu_start_state(w.net, 0, i, io, w.h_prev, w.c_prev, err));
        for (int64_t s = 0; s < p->seq_len; s++) {
            w = step_of(&pass, s);
            forward_step(&w, w.e->y ? w.e->y : io->y);
        }
        copy(&w, lb_gpu_storage_at(w.net, io->hn, i * w.h_state), w.h,
             lb_gpu_storage(w.net, w.h_state));
        to_storage(&w, lb_gpu_storage_at(w.net, io->cn, i * w.state), w.c, w.state);
    }
    return st;
}

/* ---- Backward ------------------------------------------------------------------------------ */

/* Computes the gradients of the pre-activations, da [4] of scratch, and of c. scratch->first is the
 * gradient of o tanh(c). */
static void backward_cell(const struct layer_pass *w)
{
    struct scratch *x = w->scratch;
    enum lb_elementwise_op slope = w->p->act == LB_ACT_RELU ? LB_OP_RELU_SLOPE : LB_OP_TANH_SLOPE;
    const void *i = w->gates[0], *f = w->gates[1];
    const void *g = w->gates[2], *o = w->gates[3];
    elementwise(w, LB_OP_MULTIPLY, x->da[3], x->first, w->inner);
    elementwise(w, LB_OP_SIGMOID_SLOPE, x->da[3], x->da[3], o);
    elementwise(w, LB_OP_MULTIPLY, x->second, x->first, o);
    elementwise(w, slope, x->second, x->second, w->inner);
    /* the complete gradient of c, but for the peephole of o */
    elementwise(w, LB_OP_ADD, x->second, x->second, x->dc);
    if (w->p->cell == LB_CELL_PEEPHOLE)
        add_peephole(w, 2, x->second, x->da[3], x->dc_next);
    if (w->p->cell == LB_CELL_LAYERNORM)
        layernorm_backward(w, 4, x->second, x->dc_next);
    elementwise(w, LB_OP_MULTIPLY, x->da[0], x->second, g);
    elementwise(w, LB_OP_SIGMOID_SLOPE, x->da[0], x->da[0], i);
    elementwise(w, LB_OP_MULTIPLY, x->da[1], x->second, w->c_prev);
    elementwise(w, LB_OP_SIGMOID_SLOPE, x->da[1], x->da[1], f);
    elementwise(w, LB_OP_MULTIPLY, x->da[2], x->second, i);
    elementwise(w, slope, x->da[2], x->da[2], g);
    elementwise(w, LB_OP_MULTIPLY, x->dc_next, x->second, f);
    for (int gate = 0; w->p->cell == LB_CELL_PEEPHOLE && gate < 2; gate++)
        add_peephole(w, gate, x->dc_next, x->da[gate], x->second);
    if (w->p->ragged)
        keep_running(w, x->dc, x->dc_next, x->dc);
    else
        copy(w, x->dc, x->dc_next, lb_gpu_real(w->net, w->state));
    for (int gate = 0; gate < 4; gate++)
        keep_running(w, x->da[gate], x->da[gate], NULL);
}

/* Adds what one gate's gradient contributes to dx, dh and the weights. recurrent [B, P] T: what
 * w_hh multiplied. */
static void backward_gate(const struct layer_pass *w, int gate, const void *recurrent)
{
    const struct lb_problem *p = w->p;
    struct scratch *x = w->scratch;
    const struct lb_gpu_weights *tensors = &w->e->tensors;
    int64_t rows = gate * p->hidden;
    if (p->cell == LB_CELL_PEEPHOLE && gate != 2) {
        elementwise(w, LB_OP_MULTIPLY, x->second, x->da[gate], gate == 3 ? w->c : w->c_prev);
        add_row_sums(w, dvector_at(w, gate == 3 ? 2 : gate), x->second);
    }
    if (p->cell == LB_CELL_LAYERNORM)
        layernorm_backward(w, gate, x->da[gate], x->second);
    to_storage(w, x->da_stored, x->da[gate], w->state);
    backward_gemm(w, false, x->dx, x->da_stored, p->hidden,
                  rows_of(w, tensors->weights[LB_W_IH], gate, w->input), w->input, gate > 0);
    backward_gemm(w, false, x->dh_next, x->da_stored, p->hidden,
                  rows_of(w, tensors->weights[LB_W_HH], gate, w->h_size), w->h_size, gate > 0);
    backward_gemm(w, true, lb_gpu_real_at(w->net, tensors->dweights[LB_W_IH], rows * w->input),
                  x->da_stored, p->hidden, w->x_t, w->input, true);
    backward_gemm(w, true, lb_gpu_real_at(w->net, tensors->dweights[LB_W_HH], rows * w->h_size),
                  x->da_stored, p->hidden, recurrent, w->h_size, true);
    add_row_sums(w, lb_gpu_real_at(w->net, tensors->dweights[LB_B_IH], rows), x->da[gate]);
}

/* Stores dx [B, I_l] R at time t of to [T, B, I_l] T; the second direction adds to the first. dy
 * [T, B, D*P] T is the gradient of the layer's output. */
static void write_dx(const struct layer_pass *w, const void *dy, void *to)
{
    int64_t count = w->p->batch * w->input;
    void *stored = lb_gpu_storage_at(w->net, to, w->t * count), *dx = w->scratch->dx;
    if (skips(w) && w->direction == 0)
        add_skip_gradient(w, dy);
    if (w->direction == 1) {
        to_sums(w, w->scratch->dx_other, stored, count);
        elements(w, LB_OP_ADD, dx, dx, w->scratch->dx_other, count);
    }
    to_storage(w, stored, dx, count);
}

static void backward_step(const struct layer_pass *w, const void *dy, void *dx)
{
    const struct lb_problem *p = w->p;
    struct scratch *x = w->scratch;
    int64_t width = p->directions * w->h_size;
    const void *recurrent = recurrent_operand(w);
    select_rows(w, p->dtype, w->h_size, x->stored, w->h_size,
                lb_gpu_storage_at(w->net, dy, w->t * p->batch * width + w->direction * w->h_size),
                width, NULL);
    to_sums(w, x->first, x->stored, w->h_state);
    elements(w, LB_OP_ADD, x->first, x->first, x->dh, w->h_state); /* the complete dh */
    if (p->cell == LB_CELL_PROJECTION)
        project_backward(w);
    backward_cell(w);
    for (int gate = 0; gate < 4; gate++)
        backward_gate(w, gate, recurrent);
    if (x->mask)
        elementwise(w, LB_OP_MULTIPLY, x->dh_next, x->dh_next, x->mask);
    write_dx(w, dy, dx);
    if (p->ragged)
        keep_columns(w, w->net->real, w->h_size, x->dh, x->dh_next, x->dh);
    else
        copy(w, x->dh, x->dh_next, lb_gpu_real(w->net, w->h_state));
}

static void backward_layer_dir(const struct layer_pass *w, const struct lb_backward_io *io,
                               void *dx)
{
    struct scratch *x = w->scratch;
    void *const *dweights = w->e->tensors.dweights;
    load_mask(w);
    ENQUEUE(w, lb_gpu_start_gradients(w->net, 0, w->index, io, x->dh, x->dc, w->err));
    for (int64_t s = w->p->seq_len - 1; s >= 0; s--) {
        const struct layer_pass step = step_of(w, s);
        backward_step(&step, w->e->dy ? w->e->dy : io->dy, dx);
    }
    copy(w, dweights[LB_B_HH], dweights[LB_B_IH], lb_gpu_real(w->net, 4 * w->p->hidden));
    ENQUEUE(w, lb_gpu_finish_gradients(w->net, 0, w->index, io, x->dh, x->dc, w->err));
}

static enum lb_status naive_backward(void *state, const struct lb_backward_io *io,
                                     struct lb_error *err)
{
    struct naive *self = state;
    const struct lb_problem *p = self->net.problem;
    enum lb_status st =
        lb_device()->fill(self->net.gradients, 0, lb_packed_bytes(p, self->net.real), err);
    for (int64_t l = p->layers - 1; l >= 0; l--) {
        void *dx = l > 0 ? self->layer_dirs[(l - 1) * p->directions].dy : io->dx;
        for (int64_t d = 0; d < p->directions; d++) {
            const struct layer_pass w =
                layer_pass_make(self, l * p->directions + d, io->x, io->mask, &st, err);
            backward_layer_dir(&w, io, dx);
        }
    }
    return st;
}

/* ---- The implementation -------------------------------------------------------------------- */

static const char *naive_describe(const void *state)
{
    static const char *const texts[LB_CELL_COUNT] = {
        [LB_CELL_STANDARD] =
            "8 cuBLAS GEMMs and 23 pointwise kernels per step, nothing hoisted, nothing fused",
        [LB_CELL_LAYERNORM] = "18 GEMMs and 53 pointwise kernels per step, nothing fused: a layer "
                              "normalisation takes 2 GEMMs and 6 kernels",
        [LB_CELL_RECURRENT_DROPOUT] =
            "8 cuBLAS GEMMs and 26 pointwise kernels per step, of which 3 "
            "apply the mask; nothing fused",
        [LB_CELL_PROJECTION] = "9 cuBLAS GEMMs, of which one is the projection, and 24 pointwise "
                               "kernels per step, nothing fused",
        [LB_CELL_PEEPHOLE] = "8 cuBLAS GEMMs and 29 pointwise kernels per step, of which 6 are of "
                             "the peepholes; nothing fused",
        [LB_CELL_RESIDUAL] =
            "8 cuBLAS GEMMs and 23 pointwise kernels per step, and 5 more from the "
            "second layer on, which add the input; nothing fused",
    };
    return texts[((const struct naive *)state)->net.problem->cell];
}

static void naive_destroy(void *state)
{
    struct naive *self = state;
    lb_gpu_network_destroy(&self->net);
    free(self->layer_dirs);
}

const struct lb_impl lb_impl_cuda_naive = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "cuda_naive",
    .summary = "a framework's generic cell: cuBLAS GEMMs per gate, one kernel per operation",
    .memory = LB_DEVICE,
    .traits = LB_DETERMINISTIC | LB_CAPTURABLE | LB_INSTANCES | LB_PLANS_ALONE,
    .state_size = sizeof(struct naive),
    .supports = lb_gpu_network_supports,
    .create = naive_create,
    .sizes = lb_gpu_network_sizes,
    .prepare = naive_prepare,
    .forward = naive_forward,
    .backward = naive_backward,
    .gradients = lb_gpu_network_gradients,
    .describe = naive_describe,
    .destroy = naive_destroy,
    .cells = 1u << LB_CELL_LAYERNORM | 1u << LB_CELL_RECURRENT_DROPOUT | 1u << LB_CELL_PROJECTION |
             1u << LB_CELL_PEEPHOLE | 1u << LB_CELL_RESIDUAL,
};
