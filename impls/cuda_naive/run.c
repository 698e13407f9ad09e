/* What a forward and a backward call of cuda_naive enqueue. */
#include "cuda/common/cell.h"
#include "cuda/common/elementwise.h"
#include "impls/cuda_naive/cuda_naive.h"

/* One layer and direction in one call. */
struct layer_pass {
    struct lb_cuda_naive *self;
    const struct lb_gpu_network *net;
    const struct lb_problem *p;
    struct lb_naive_layer_dir *e;
    struct lb_naive_scratch *scratch;
    int64_t direction, index, input; /* input: I_l */
    int64_t state;                   /* B H */
    int64_t h_size, h_state;         /* P and B P */
    const void *x;                   /* [T, B, I_l] T */
    const void *mask;                /* [L*D, B, H] T of recurrent-dropout */
};

static struct layer_pass layer_pass_make(struct lb_cuda_naive *self, int64_t layer,
                                         int64_t direction, const void *x, const void *mask)
{
    const struct lb_problem *p = self->net.problem;
    int64_t index = layer * p->directions + direction;
    return (struct layer_pass){
        .self = self,
        .net = &self->net,
        .p = p,
        .e = &self->layer_dirs[index],
        .scratch = &self->scratch,
        .direction = direction,
        .index = index,
        .input = lb_layer_input(p, layer),
        .state = p->batch * p->hidden,
        .h_size = lb_h_size(p),
        .h_state = p->batch * lb_h_size(p),
        .mask = mask,
        .x = layer == 0 ? x : self->layer_dirs[index - direction - p->directions].y,
    };
}

static int64_t time_of(const struct layer_pass *w, int64_t s)
{
    return w->direction == 0 ? s : w->p->seq_len - 1 - s;
}

/* The buffers of the s-th step. */
static void *gate_at(const struct layer_pass *w, int64_t s, int gate)
{
    int64_t slot = lb_trains(w->p) ? s : 0;
    return lb_gpu_real_at(w->net, w->e->gates, (slot * 4 + gate) * w->state);
}

static void *inner_at(const struct layer_pass *w, int64_t s)
{
    return lb_gpu_real_at(w->net, w->e->inner, lb_trains(w->p) ? s * w->state : 0);
}

static void *c_at(const struct layer_pass *w, int64_t s)
{
    return lb_gpu_real_at(w->net, w->e->c, (lb_trains(w->p) ? s : s % 2) * w->state);
}

static void *h_at(const struct layer_pass *w, int64_t s)
{
    return lb_gpu_storage_at(w->net, w->e->h, (lb_trains(w->p) ? s : s % 2) * w->h_state);
}

/* o tanh(c) of the cell projection. */
static void *unprojected_at(const struct layer_pass *w, int64_t s)
{
    return lb_gpu_storage_at(w->net, w->e->unprojected, lb_trains(w->p) ? s * w->state : 0);
}

/* What layernorm keeps of vector `which` of i f g o c. */
static void *normalised_at(const struct layer_pass *w, int64_t s, int which)
{
    int64_t slot = lb_trains(w->p) ? s : 0;
    return lb_gpu_real_at(w->net, w->e->normalised, (slot * 5 + which) * w->state);
}

static void *factors_at(const struct layer_pass *w, int64_t s, int which)
{
    int64_t slot = lb_trains(w->p) ? s : 0;
    return lb_gpu_real_at(w->net, w->e->factors, (slot * 5 + which) * w->p->batch);
}

/* Vector number `index` [H] R of w_cell of peephole or layernorm, and its gradient. */
static const void *vector_at(const struct layer_pass *w, int index)
{
    return lb_gpu_real_at(w->net, w->e->vectors, index * w->p->hidden);
}

static void *dvector_at(const struct layer_pass *w, int index)
{
    return lb_gpu_real_at(w->net, w->e->weights.dweights[LB_W_CELL], index * w->p->hidden);
}

static const void *x_at(const struct layer_pass *w, int64_t t)
{
    return lb_gpu_storage_at(w->net, w->x, t * w->p->batch * w->input);
}

/* One gate's rows of w_ih or w_hh. */
static const void *rows_of(const struct layer_pass *w, const void *weights, int gate,
                           int64_t columns)
{
    return lb_gpu_storage_at(w->net, weights, gate * w->p->hidden * columns);
}

static enum lb_status elementwise(const struct layer_pass *w, enum lb_elementwise_op op, void *to,
                                  const void *a, const void *b, struct lb_error *err)
{
    return lb_elementwise(w->net->real, op, to, a, b, w->state, w->net->stream, err);
}

/* Convert `count` elements from T to R, and from R to T. */
static enum lb_status to_sums(const struct layer_pass *w, void *to, const void *from, int64_t count,
                              struct lb_error *err)
{
    return lb_cell_convert_to_sums(w->p->dtype, to, from, count, w->net->stream, err);
}

static enum lb_status to_storage(const struct layer_pass *w, void *to, const void *from,
                                 int64_t count, struct lb_error *err)
{
    return lb_cell_convert_to_storage(w->p->dtype, to, from, count, w->net->stream, err);
}

/* to [B, H] = from [B, H] op vector, which is [B] with per_row, else [H]. */
static enum lb_status broadcast(const struct layer_pass *w, enum lb_elementwise_op op, bool per_row,
                                void *to, const void *from, const void *vector,
                                struct lb_error *err)
{
    return lb_elementwise_broadcast(w->net->real, op, per_row, to, from, vector, w->p->batch,
                                    w->p->hidden, w->net->stream, err);
}

/* Copies batch rows that have not ended at time t from `from` to `to`, and the others from `other`,
 * or sets them to zero where other is NULL. All are [B, columns]. */
static enum lb_status keep_columns(const struct layer_pass *w, enum lb_dtype dtype, int64_t columns,
                                   int64_t t, void *to, const void *from, const void *other,
                                   struct lb_error *err)
{
    const struct lb_elementwise_select select = {
        .rows = w->p->batch,
        .columns = columns,
        .step = t,
        .lengths = w->net->lengths,
        .to = to,
        .to_stride = columns,
        .from = from,
        .from_stride = columns,
        .other = other,
    };
    return w->p->ragged ? lb_elementwise_select_rows(dtype, &select, w->net->stream, err) : LB_OK;
}

/* The same for [B, H]. */
static enum lb_status keep_running(const struct layer_pass *w, enum lb_dtype dtype, int64_t t,
                                   void *to, const void *from, const void *other,
                                   struct lb_error *err)
{
    return keep_columns(w, dtype, w->p->hidden, t, to, from, other, err);
}

/* ---- Parts of cells other than the standard one --------------------------------------------- */

/* to [B] R = the mean of each row of from [B, H] R. */
static enum lb_status row_means(const struct layer_pass *w, void *to, const void *from,
                                struct lb_error *err)
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
    return lb_stream_gemm(w->net->streams, 0, &g, err);
}

/* v [B, H] R = LN(v), vector `which` of i f g o c. Uses scratch->second. */
static enum lb_status layernorm_forward(const struct layer_pass *w, int64_t s, int which, void *v,
                                        struct lb_error *err)
{
    struct lb_naive_scratch *x = w->scratch;
    void *normalised = normalised_at(w, s, which), *factors = factors_at(w, s, which);
    enum lb_status st = LB_OK;
    LB_TRY(row_means(w, x->mean, v, err));
    LB_TRY(broadcast(w, LB_OP_SUBTRACT, true, normalised, v, x->mean, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->second, normalised, normalised, err));
    LB_TRY(row_means(w, x->mean, x->second, err));
    LB_TRY(lb_elementwise(w->net->real, LB_OP_INVERSE_ROOT, factors, x->mean, NULL, w->p->batch,
                          w->net->stream, err));
    LB_TRY(broadcast(w, LB_OP_MULTIPLY, true, normalised, normalised, factors, err));
    LB_TRY(broadcast(w, LB_OP_MULTIPLY, false, v, normalised, vector_at(w, which), err));
    LB_TRY(lb_elementwise_add_bias(w->net->real, v, v, vector_at(w, 5 + which), w->p->batch,
                                   w->p->hidden, w->net->stream, err));
done:
    return st;
}

/* d [B, H] R, the gradient of LN(v), becomes that of v; rows that have ended are zero. Adds what it
 * contributes to the gradients of gain and bias. other [B, H] R is scratch. */
static enum lb_status layernorm_backward(const struct layer_pass *w, int64_t s, int which, void *d,
                                         void *other, struct lb_error *err)
{
    struct lb_naive_scratch *x = w->scratch;
    const void *normalised = normalised_at(w, s, which);
    enum lb_status st = LB_OK;
    LB_TRY(keep_running(w, w->net->real, time_of(w, s), d, d, NULL, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, other, d, normalised, err));
    LB_TRY(lb_elementwise_add_row_sums(w->net->real, dvector_at(w, which), other, w->p->batch,
                                       w->p->hidden, w->net->stream, err));
    LB_TRY(lb_elementwise_add_row_sums(w->net->real, dvector_at(w, 5 + which), d, w->p->batch,
                                       w->p->hidden, w->net->stream, err));
    LB_TRY(broadcast(w, LB_OP_MULTIPLY, false, d, d, vector_at(w, which), err));
    LB_TRY(row_means(w, x->mean, d, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, other, d, normalised, err));
    LB_TRY(row_means(w, x->along, other, err));
    LB_TRY(broadcast(w, LB_OP_MULTIPLY, true, other, normalised, x->along, err));
    LB_TRY(broadcast(w, LB_OP_SUBTRACT, true, d, d, x->mean, err));
    LB_TRY(elementwise(w, LB_OP_SUBTRACT, d, d, other, err));
    LB_TRY(broadcast(w, LB_OP_MULTIPLY, true, d, d, factors_at(w, s, which), err));
done:
    return st;
}

/* to [B, H] R += vector `index` of the peepholes times from [B, H] R; other [B, H] R is scratch. */
static enum lb_status add_peephole(const struct layer_pass *w, int index, void *to,
                                   const void *from, void *other, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(broadcast(w, LB_OP_MULTIPLY, false, other, from, vector_at(w, index), err));
    LB_TRY(elementwise(w, LB_OP_ADD, to, to, other, err));
done:
    return st;
}

/* Adds to the gradient of a peephole: the sum over rows of da c; other [B, H] R is scratch. */
static enum lb_status add_peephole_gradient(const struct layer_pass *w, int index, const void *da,
                                            const void *c, void *other, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, other, da, c, err));
    LB_TRY(lb_elementwise_add_row_sums(w->net->real, dvector_at(w, index), other, w->p->batch,
                                       w->p->hidden, w->net->stream, err));
done:
    return st;
}

/* What w_hh multiplies in step s: h, or for recurrent-dropout scratch->masked, which is set to
 * mask h here. Uses scratch->first. */
static enum lb_status recurrent_operand(const struct layer_pass *w, int64_t s, const void **operand,
                                        struct lb_error *err)
{
    struct lb_naive_scratch *x = w->scratch;
    enum lb_status st = LB_OK;
    *operand = h_at(w, s);
    if (!x->mask)
        return LB_OK;
    *operand = x->masked;
    LB_TRY(to_sums(w, x->first, h_at(w, s), w->state, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->first, x->first, x->mask, err));
    LB_TRY(to_storage(w, x->masked, x->first, w->state, err));
done:
    return st;
}

/* Sets scratch->mask to the mask of the layer_dir. */
static enum lb_status load_mask(const struct layer_pass *w, struct lb_error *err)
{
    if (!w->scratch->mask)
        return LB_OK;
    return to_sums(w, w->scratch->mask, lb_gpu_storage_at(w->net, w->mask, w->index * w->state),
                   w->state, err);
}

/* h of step s + 1 = w_hr times the unprojected o tanh(c) of step s. Uses scratch->second. */
static enum lb_status project(const struct layer_pass *w, int64_t s, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    const struct lb_gemm g = {.out = w->net->real,
                              .transpose_b = true,
                              .m = p->batch,
                              .n = w->h_size,
                              .k = p->hidden,
                              .a = unprojected_at(w, s),
                              .b = w->e->weights.w_cell,
                              .c = w->scratch->second};
    enum lb_status st = LB_OK;
    LB_TRY(lb_gpu_gemm(w->net, 0, g, err));
    LB_TRY(to_storage(w, h_at(w, s + 1), w->scratch->second, w->h_state, err));
done:
    return st;
}

/* scratch->first: from [B, P] R, the gradient of h, to [B, H] R, that of o tanh(c). Adds what it
 * contributes to the gradient of w_hr. */
static enum lb_status project_backward(const struct layer_pass *w, int64_t s, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    void *dh = w->scratch->dh_stored;
    struct lb_gemm g = {.out = w->net->real,
                        .m = p->batch,
                        .n = p->hidden,
                        .k = w->h_size,
                        .a = dh,
                        .b = w->e->weights.w_cell,
                        .c = w->scratch->first};
    enum lb_status st = LB_OK;
    LB_TRY(to_storage(w, dh, w->scratch->first, w->h_state, err));
    LB_TRY(keep_columns(w, p->dtype, w->h_size, time_of(w, s), dh, dh, NULL, err));
    LB_TRY(lb_gpu_gemm(w->net, 0, g, err));
    g.transpose_a = g.accumulate = true;
    g.m = w->h_size;
    g.k = p->batch;
    g.b = unprojected_at(w, s);
    g.c = w->e->weights.dweights[LB_W_CELL];
    LB_TRY(lb_gpu_gemm(w->net, 0, g, err));
done:
    return st;
}

/* Adds the layer's input at time t to h [B, H] T of step s + 1: scratch->stored becomes the sum.
 * Uses scratch->first and second. */
static enum lb_status add_skip(const struct layer_pass *w, int64_t s, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct lb_naive_scratch *x = w->scratch;
    enum lb_status st = LB_OK;
    const struct lb_elementwise_select own_columns = {
        .rows = p->batch,
        .columns = p->hidden,
        .to = x->stored,
        .to_stride = p->hidden,
        .from = lb_gpu_storage_at(w->net, x_at(w, time_of(w, s)), w->direction * p->hidden),
        .from_stride = w->input,
    };
    LB_TRY(lb_elementwise_select_rows(p->dtype, &own_columns, w->net->stream, err));
    LB_TRY(to_sums(w, x->first, x->stored, w->state, err));
    LB_TRY(to_sums(w, x->second, h_at(w, s + 1), w->state, err));
    LB_TRY(elementwise(w, LB_OP_ADD, x->first, x->first, x->second, err));
    LB_TRY(to_storage(w, x->stored, x->first, w->state, err));
done:
    return st;
}

/* dx [B, I_l] R += dy [B, D*H] T at time t: the input of the layer is also a part of its output. */
static enum lb_status add_skip_gradient(const struct layer_pass *w, int64_t t, const void *dy,
                                        struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct lb_naive_scratch *x = w->scratch;
    int64_t count = p->batch * w->input;
    enum lb_status st = LB_OK;
    const struct lb_elementwise_select running = {
        .rows = p->batch,
        .columns = w->input,
        .step = t,
        .lengths = w->net->lengths,
        .to = x->wide,
        .to_stride = w->input,
        .from = lb_gpu_storage_at(w->net, dy, t * count),
        .from_stride = w->input,
    };
    LB_TRY(lb_elementwise_select_rows(p->dtype, &running, w->net->stream, err));
    LB_TRY(to_sums(w, x->dx_other, x->wide, count, err));
    LB_TRY(lb_elementwise(w->net->real, LB_OP_ADD, x->dx, x->dx, x->dx_other, count, w->net->stream,
                          err));
done:
    return st;
}

/* ---- Forward ------------------------------------------------------------------------------- */

/* to [B, H] R = from [B, columns] T times the transposed rows [H, columns] of one gate. */
static enum lb_status gate_gemm(const struct layer_pass *w, void *to, const void *from,
                                const void *rows, int64_t columns, struct lb_error *err)
{
    const struct lb_gemm g = {.out = w->net->real,
                              .transpose_b = true,
                              .m = w->p->batch,
                              .n = w->p->hidden,
                              .k = columns,
                              .a = from,
                              .b = rows,
                              .c = to};
    return lb_gpu_gemm(w->net, 0, g, err);
}

/* recurrent [B, P] T: what w_hh multiplies. */
static enum lb_status forward_gate(const struct layer_pass *w, int64_t s, int gate,
                                   const void *recurrent, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    void *sum = w->scratch->first, *other = w->scratch->second;
    enum lb_status st = LB_OK;
    enum lb_elementwise_op act = p->act == LB_ACT_RELU ? LB_OP_RELU : LB_OP_TANH;
    LB_TRY(gate_gemm(w, sum, x_at(w, time_of(w, s)), rows_of(w, w->e->weights.w_ih, gate, w->input),
                     w->input, err));
    LB_TRY(gate_gemm(w, other, recurrent, rows_of(w, w->e->weights.w_hh, gate, w->h_size),
                     w->h_size, err));
    LB_TRY(elementwise(w, LB_OP_ADD, sum, sum, other, err));
    LB_TRY(lb_elementwise_add_bias(w->net->real, sum, sum,
                                   lb_gpu_real_at(w->net, w->e->b_ih, gate * p->hidden), p->batch,
                                   p->hidden, w->net->stream, err));
    LB_TRY(lb_elementwise_add_bias(w->net->real, sum, sum,
                                   lb_gpu_real_at(w->net, w->e->b_hh, gate * p->hidden), p->batch,
                                   p->hidden, w->net->stream, err));
    if (p->cell == LB_CELL_PEEPHOLE && gate != 2) /* gate o looks at the new c */
        LB_TRY(
            add_peephole(w, gate == 3 ? 2 : gate, sum, c_at(w, gate == 3 ? s + 1 : s), other, err));
    if (p->cell == LB_CELL_LAYERNORM)
        LB_TRY(layernorm_forward(w, s, gate, sum, err));
    LB_TRY(elementwise(w, gate == 2 ? act : LB_OP_SIGMOID, gate_at(w, s, gate), sum, NULL, err));
done:
    return st;
}

/* Writes h to y [T, B, D*H] at time t, and zero to batch rows past their end. */
static enum lb_status write_y(const struct layer_pass *w, int64_t s, void *y, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    int64_t width = p->directions * w->h_size, t = time_of(w, s);
    bool skips = p->cell == LB_CELL_RESIDUAL && w->index >= p->directions;
    const struct lb_elementwise_select select = {
        .rows = p->batch,
        .columns = w->h_size,
        .step = t,
        .lengths = w->net->lengths,
        .to = lb_gpu_storage_at(w->net, y, t * p->batch * width + w->direction * w->h_size),
        .to_stride = width,
        .from = skips ? w->scratch->stored : h_at(w, s + 1),
        .from_stride = w->h_size,
    };
    enum lb_status st = LB_OK;
    if (skips)
        LB_TRY(add_skip(w, s, err));
    LB_TRY(lb_elementwise_select_rows(p->dtype, &select, w->net->stream, err));
done:
    return st;
}

static enum lb_status forward_step(const struct layer_pass *w, int64_t s, void *y,
                                   struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    enum lb_status st = LB_OK;
    enum lb_elementwise_op act = p->act == LB_ACT_RELU ? LB_OP_RELU : LB_OP_TANH;
    void *first = w->scratch->first, *second = w->scratch->second, *c = c_at(w, s + 1);
    int64_t t = time_of(w, s);
    bool projects = p->cell == LB_CELL_PROJECTION;
    const void *recurrent;
    LB_TRY(recurrent_operand(w, s, &recurrent, err));
    for (int gate = 0; gate < 3; gate++)
        LB_TRY(forward_gate(w, s, gate, recurrent, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, first, gate_at(w, s, 1), c_at(w, s), err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, second, gate_at(w, s, 0), gate_at(w, s, 2), err));
    LB_TRY(elementwise(w, LB_OP_ADD, c, first, second, err));
    if (p->cell == LB_CELL_LAYERNORM)
        LB_TRY(layernorm_forward(w, s, 4, c, err));
    LB_TRY(forward_gate(w, s, 3, recurrent, err));
    LB_TRY(elementwise(w, act, inner_at(w, s), c, NULL, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, first, gate_at(w, s, 3), inner_at(w, s), err));
    LB_TRY(to_storage(w, projects ? unprojected_at(w, s) : h_at(w, s + 1), first, w->state, err));
    if (projects)
        LB_TRY(project(w, s, err));
    LB_TRY(keep_running(w, w->net->real, t, c, c, c_at(w, s), err));
    LB_TRY(
        keep_columns(w, p->dtype, w->h_size, t, h_at(w, s + 1), h_at(w, s + 1), h_at(w, s), err));
    LB_TRY(write_y(w, s, y, err));
done:
    return st;
}

static enum lb_status forward_layer_dir(const struct layer_pass *w, const struct lb_forward_io *io,
                                        struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    enum lb_status st = LB_OK;
    int64_t h_first = w->index * w->h_state, c_first = w->index * w->state;
    size_t bytes = lb_gpu_storage(w->net, w->h_state);
    LB_TRY(load_mask(w, err));
    LB_TRY(lb_gpu_start_state(w->net, 0, w->index, io, h_at(w, 0), c_at(w, 0), err));
    for (int64_t s = 0; s < p->seq_len; s++)
        LB_TRY(forward_step(w, s, w->e->y ? w->e->y : io->y, err));
    LB_TRY(lb_stream_copy(w->net->streams, 0, lb_gpu_storage_at(w->net, io->hn, h_first),
                          h_at(w, p->seq_len), bytes, err));
    LB_TRY(to_storage(w, lb_gpu_storage_at(w->net, io->cn, c_first), c_at(w, p->seq_len), w->state,
                      err));
done:
    return st;
}

enum lb_status lb_naive_forward(void *state, const struct lb_forward_io *io, struct lb_error *err)
{
    struct lb_cuda_naive *self = state;
    enum lb_status st = LB_OK;
    for (int64_t l = 0; l < self->net.problem->layers; l++) {
        for (int64_t d = 0; d < self->net.problem->directions; d++) {
            struct layer_pass w = layer_pass_make(self, l, d, io->x, io->mask);
            LB_TRY(forward_layer_dir(&w, io, err));
        }
    }
done:
    return st;
}

/* ---- Backward ------------------------------------------------------------------------------ */

/* Computes the gradients of the pre-activations, da [4] of scratch, and of c. scratch->first is the
 * gradient of o tanh(c). */
static enum lb_status backward_cell(const struct layer_pass *w, int64_t s, struct lb_error *err)
{
    struct lb_naive_scratch *x = w->scratch;
    enum lb_status st = LB_OK;
    bool relu = w->p->act == LB_ACT_RELU;
    enum lb_elementwise_op slope = relu ? LB_OP_RELU_SLOPE : LB_OP_TANH_SLOPE;
    int64_t t = time_of(w, s);
    const void *i = gate_at(w, s, 0), *f = gate_at(w, s, 1);
    const void *g = gate_at(w, s, 2), *o = gate_at(w, s, 3);
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->da[3], x->first, inner_at(w, s), err));
    LB_TRY(elementwise(w, LB_OP_SIGMOID_SLOPE, x->da[3], x->da[3], o, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->second, x->first, o, err));
    LB_TRY(elementwise(w, slope, x->second, x->second, inner_at(w, s), err));
    LB_TRY(elementwise(w, LB_OP_ADD, x->second, x->second, x->dc,
                       err)); /* the complete gradient of c, but for the peephole of o */
    if (w->p->cell == LB_CELL_PEEPHOLE)
        LB_TRY(add_peephole(w, 2, x->second, x->da[3], x->dc_next, err));
    if (w->p->cell == LB_CELL_LAYERNORM)
        LB_TRY(layernorm_backward(w, s, 4, x->second, x->dc_next, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->da[0], x->second, g, err));
    LB_TRY(elementwise(w, LB_OP_SIGMOID_SLOPE, x->da[0], x->da[0], i, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->da[1], x->second, c_at(w, s), err));
    LB_TRY(elementwise(w, LB_OP_SIGMOID_SLOPE, x->da[1], x->da[1], f, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->da[2], x->second, i, err));
    LB_TRY(elementwise(w, slope, x->da[2], x->da[2], g, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->dc_next, x->second, f, err));
    for (int gate = 0; w->p->cell == LB_CELL_PEEPHOLE && gate < 2; gate++)
        LB_TRY(add_peephole(w, gate, x->dc_next, x->da[gate], x->second, err));
    if (!w->p->ragged) { /* no row has ended: all of dc is replaced */
        LB_TRY(lb_stream_copy(w->net->streams, 0, x->dc, x->dc_next, lb_gpu_real(w->net, w->state),
                              err));
        goto done;
    }
    LB_TRY(keep_running(w, w->net->real, t, x->dc, x->dc_next, x->dc, err));
    for (int gate = 0; gate < 4; gate++)
        LB_TRY(keep_running(w, w->net->real, t, x->da[gate], x->da[gate], NULL, err));
done:
    return st;
}

/* c [m, n] R (+)= a b, where a is da_stored [B, H] T, transposed or not. */
static enum lb_status da_gemm(const struct layer_pass *w, bool transpose, void *c, const void *b,
                              int64_t columns, bool accumulate, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    const struct lb_gemm g = {.out = w->net->real,
                              .transpose_a = transpose,
                              .accumulate = accumulate,
                              .m = transpose ? p->hidden : p->batch,
                              .n = columns,
                              .k = transpose ? p->batch : p->hidden,
                              .a = w->scratch->da_stored,
                              .b = b,
                              .c = c};
    return lb_gpu_gemm(w->net, 0, g, err);
}

/* Adds what one gate's gradient contributes to dx, dh and the weights. recurrent [B, P] T: what
 * w_hh multiplied. */
static enum lb_status backward_gate(const struct layer_pass *w, int64_t s, int gate,
                                    const void *recurrent, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct lb_naive_scratch *x = w->scratch;
    struct lb_naive_layer_dir *e = w->e;
    enum lb_status st = LB_OK;
    int64_t rows = gate * p->hidden;
    if (p->cell == LB_CELL_PEEPHOLE && gate != 2)
        LB_TRY(add_peephole_gradient(w, gate == 3 ? 2 : gate, x->da[gate],
                                     c_at(w, gate == 3 ? s + 1 : s), x->second, err));
    if (p->cell == LB_CELL_LAYERNORM)
        LB_TRY(layernorm_backward(w, s, gate, x->da[gate], x->second, err));
    LB_TRY(to_storage(w, x->da_stored, x->da[gate], w->state, err));
    LB_TRY(da_gemm(w, false, x->dx, rows_of(w, e->weights.w_ih, gate, w->input), w->input, gate > 0,
                   err));
    LB_TRY(da_gemm(w, false, x->dh_next, rows_of(w, e->weights.w_hh, gate, w->h_size), w->h_size,
                   gate > 0, err));
    LB_TRY(da_gemm(w, true, lb_gpu_real_at(w->net, e->weights.dweights[LB_W_IH], rows * w->input),
                   x_at(w, time_of(w, s)), w->input, true, err));
    LB_TRY(da_gemm(
        w, true, lb_gpu_real_at(w->net, e->weights.dweights[LB_W_HH], gate * p->hidden * w->h_size),
        recurrent, w->h_size, true, err));
    LB_TRY(lb_elementwise_add_row_sums(w->net->real,
                                       lb_gpu_real_at(w->net, e->weights.dweights[LB_B_IH], rows),
                                       x->da[gate], p->batch, p->hidden, w->net->stream, err));
done:
    return st;
}

/* Stores dx [B, I_l] R at time t of to [T, B, I_l] T; the second direction adds to the first. dy
 * [T, B, D*P] T is the gradient of the layer's output. */
static enum lb_status write_dx(const struct layer_pass *w, int64_t t, const void *dy, void *to,
                               struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    enum lb_status st = LB_OK;
    int64_t count = p->batch * w->input;
    void *stored = lb_gpu_storage_at(w->net, to, t * count), *dx = w->scratch->dx;
    if (p->cell == LB_CELL_RESIDUAL && w->index >= p->directions && w->direction == 0)
        LB_TRY(add_skip_gradient(w, t, dy, err));
    if (w->direction == 1) {
        LB_TRY(to_sums(w, w->scratch->dx_other, stored, count, err));
        LB_TRY(lb_elementwise(w->net->real, LB_OP_ADD, dx, dx, w->scratch->dx_other, count,
                              w->net->stream, err));
    }
    LB_TRY(to_storage(w, stored, dx, count, err));
done:
    return st;
}

static enum lb_status backward_step(const struct layer_pass *w, int64_t s, const void *dy, void *dx,
                                    struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct lb_naive_scratch *x = w->scratch;
    enum lb_status st = LB_OK;
    int64_t t = time_of(w, s), width = p->directions * w->h_size;
    const void *recurrent;
    const struct lb_elementwise_select incoming = {
        .rows = p->batch,
        .columns = w->h_size,
        .step = t,
        .lengths = w->net->lengths,
        .to = x->stored,
        .to_stride = w->h_size,
        .from = lb_gpu_storage_at(w->net, dy, t * p->batch * width + w->direction * w->h_size),
        .from_stride = width,
    };
    LB_TRY(recurrent_operand(w, s, &recurrent, err));
    LB_TRY(lb_elementwise_select_rows(p->dtype, &incoming, w->net->stream, err));
    LB_TRY(to_sums(w, x->first, x->stored, w->h_state, err));
    LB_TRY(lb_elementwise(w->net->real, LB_OP_ADD, x->first, x->first, x->dh, w->h_state,
                          w->net->stream, err)); /* the complete gradient of h */
    if (p->cell == LB_CELL_PROJECTION)
        LB_TRY(project_backward(w, s, err));
    LB_TRY(backward_cell(w, s, err));
    for (int gate = 0; gate < 4; gate++)
        LB_TRY(backward_gate(w, s, gate, recurrent, err));
    if (x->mask)
        LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->dh_next, x->dh_next, x->mask, err));
    LB_TRY(write_dx(w, t, dy, dx, err));
    if (p->ragged)
        LB_TRY(keep_columns(w, w->net->real, w->h_size, t, x->dh, x->dh_next, x->dh, err));
    else
        LB_TRY(lb_stream_copy(w->net->streams, 0, x->dh, x->dh_next,
                              lb_gpu_real(w->net, w->h_state), err));
done:
    return st;
}

static enum lb_status backward_layer_dir(const struct layer_pass *w,
                                         const struct lb_backward_io *io, void *dx,
                                         struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct lb_naive_scratch *x = w->scratch;
    enum lb_status st = LB_OK;
    LB_TRY(load_mask(w, err));
    LB_TRY(lb_gpu_start_gradients(w->net, 0, w->index, io, x->dh, x->dc, err));
    for (int64_t s = p->seq_len - 1; s >= 0; s--)
        LB_TRY(backward_step(w, s, w->e->dy ? w->e->dy : io->dy, dx, err));
    LB_TRY(lb_stream_copy(w->net->streams, 0, w->e->weights.dweights[LB_B_HH],
                          w->e->weights.dweights[LB_B_IH], lb_gpu_real(w->net, 4 * p->hidden),
                          err));
    LB_TRY(lb_gpu_finish_gradients(w->net, 0, w->index, io, x->dh, x->dc, err));
done:
    return st;
}

enum lb_status lb_naive_backward(void *state, const struct lb_backward_io *io, struct lb_error *err)
{
    struct lb_cuda_naive *self = state;
    const struct lb_problem *p = self->net.problem;
    enum lb_status st = LB_OK;
    LB_TRY(lb_stream_zero(self->net.streams, 0, self->net.gradients,
                          lb_packed_bytes(p, self->net.real), err));
    for (int64_t l = p->layers - 1; l >= 0; l--) {
        void *dx = l > 0 ? self->layer_dirs[(l - 1) * p->directions].dy : io->dx;
        for (int64_t d = 0; d < p->directions; d++) {
            struct layer_pass w = layer_pass_make(self, l, d, io->x, io->mask);
            LB_TRY(backward_layer_dir(&w, io, dx, err));
        }
    }
done:
    return st;
}
