/* What a forward and a backward call of cuda_naive enqueue. */
#include "cuda/common/cell.h"
#include "cuda/common/elementwise.h"
#include "impls/cuda_naive/cuda_naive.h"

/* One layer and direction in one call. */
struct layer_pass {
    struct lb_cuda_naive *self;
    const struct lb_problem *p;
    struct lb_naive_layer_dir *e;
    struct lb_naive_scratch *scratch;
    int64_t direction, index, input; /* input: I_l */
    int64_t state;                   /* B H */
    const void *x;                   /* [T, B, I_l] T */
};

static struct layer_pass layer_pass_make(struct lb_cuda_naive *self, int64_t layer,
                                         int64_t direction, const void *x)
{
    const struct lb_problem *p = self->net.problem;
    int64_t index = layer * p->directions + direction;
    return (struct layer_pass){
        .self = self,
        .p = p,
        .e = &self->layer_dirs[index],
        .scratch = &self->scratch,
        .direction = direction,
        .index = index,
        .input = lb_layer_input(p, layer),
        .state = p->batch * p->hidden,
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
    return lb_gpu_real_at(&w->self->net, w->e->gates, (slot * 4 + gate) * w->state);
}

static void *inner_at(const struct layer_pass *w, int64_t s)
{
    return lb_gpu_real_at(&w->self->net, w->e->inner, lb_trains(w->p) ? s * w->state : 0);
}

static void *c_at(const struct layer_pass *w, int64_t s)
{
    return lb_gpu_real_at(&w->self->net, w->e->c, (lb_trains(w->p) ? s : s % 2) * w->state);
}

static void *h_at(const struct layer_pass *w, int64_t s)
{
    return lb_gpu_storage_at(&w->self->net, w->e->h, (lb_trains(w->p) ? s : s % 2) * w->state);
}

static const void *x_at(const struct layer_pass *w, int64_t t)
{
    return lb_gpu_storage_at(&w->self->net, w->x, t * w->p->batch * w->input);
}

/* One gate's rows of w_ih or w_hh. */
static const void *rows_of(const struct layer_pass *w, const void *weights, int gate,
                           int64_t columns)
{
    return lb_gpu_storage_at(&w->self->net, weights, gate * w->p->hidden * columns);
}

static enum lb_status elementwise(const struct layer_pass *w, enum lb_elementwise_op op, void *to,
                                  const void *a, const void *b, struct lb_error *err)
{
    return lb_elementwise(w->self->net.real, op, to, a, b, w->state, w->self->net.stream, err);
}

/* Copies batch rows that have not ended at time t from `from` to `to`, and the others from `other`,
 * or sets them to zero where other is NULL. All are [B, H]. */
static enum lb_status keep_running(const struct layer_pass *w, enum lb_dtype dtype, int64_t t,
                                   void *to, const void *from, const void *other,
                                   struct lb_error *err)
{
    const struct lb_elementwise_select select = {
        .rows = w->p->batch,
        .columns = w->p->hidden,
        .step = t,
        .lengths = w->self->net.lengths,
        .to = to,
        .to_stride = w->p->hidden,
        .from = from,
        .from_stride = w->p->hidden,
        .other = other,
    };
    return w->p->ragged ? lb_elementwise_select_rows(dtype, &select, w->self->net.stream, err)
                        : LB_OK;
}

/* ---- Forward ------------------------------------------------------------------------------- */

/* to [B, H] R = from [B, columns] T times the transposed rows [H, columns] of one gate. */
static enum lb_status gate_gemm(const struct layer_pass *w, void *to, const void *from,
                                const void *rows, int64_t columns, struct lb_error *err)
{
    const struct lb_gemm g = {.in = w->p->dtype,
                              .out = w->self->net.real,
                              .math = w->p->math,
                              .transpose_b = true,
                              .m = w->p->batch,
                              .n = w->p->hidden,
                              .k = columns,
                              .a = from,
                              .lda = columns,
                              .b = rows,
                              .ldb = columns,
                              .c = to,
                              .ldc = w->p->hidden};
    return lb_stream_gemm(w->self->net.streams, 0, &g, err);
}

static enum lb_status forward_gate(const struct layer_pass *w, int64_t s, int gate,
                                   struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct lb_cuda_naive *self = w->self;
    void *sum = w->scratch->first, *other = w->scratch->second;
    enum lb_status st = LB_OK;
    enum lb_elementwise_op act = p->act == LB_ACT_RELU ? LB_OP_RELU : LB_OP_TANH;
    LB_TRY(gate_gemm(w, sum, x_at(w, time_of(w, s)), rows_of(w, w->e->weights.w_ih, gate, w->input),
                     w->input, err));
    LB_TRY(gate_gemm(w, other, h_at(w, s), rows_of(w, w->e->weights.w_hh, gate, p->hidden),
                     p->hidden, err));
    LB_TRY(elementwise(w, LB_OP_ADD, sum, sum, other, err));
    LB_TRY(lb_elementwise_add_bias(self->net.real, sum, sum,
                                   lb_gpu_real_at(&self->net, w->e->b_ih, gate * p->hidden),
                                   p->batch, p->hidden, self->net.stream, err));
    LB_TRY(lb_elementwise_add_bias(self->net.real, sum, sum,
                                   lb_gpu_real_at(&self->net, w->e->b_hh, gate * p->hidden),
                                   p->batch, p->hidden, self->net.stream, err));
    LB_TRY(elementwise(w, gate == 2 ? act : LB_OP_SIGMOID, gate_at(w, s, gate), sum, NULL, err));
done:
    return st;
}

/* Writes h to y [T, B, D*H] at time t, and zero to batch rows past their end. */
static enum lb_status write_y(const struct layer_pass *w, int64_t s, void *y, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    int64_t width = p->directions * p->hidden, t = time_of(w, s);
    const struct lb_elementwise_select select = {
        .rows = p->batch,
        .columns = p->hidden,
        .step = t,
        .lengths = w->self->net.lengths,
        .to = lb_gpu_storage_at(&w->self->net, y, t * p->batch * width + w->direction * p->hidden),
        .to_stride = width,
        .from = h_at(w, s + 1),
        .from_stride = p->hidden,
    };
    return lb_elementwise_select_rows(p->dtype, &select, w->self->net.stream, err);
}

static enum lb_status forward_step(const struct layer_pass *w, int64_t s, void *y,
                                   struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    enum lb_status st = LB_OK;
    enum lb_elementwise_op act = p->act == LB_ACT_RELU ? LB_OP_RELU : LB_OP_TANH;
    void *first = w->scratch->first, *second = w->scratch->second, *c = c_at(w, s + 1);
    int64_t t = time_of(w, s);
    for (int gate = 0; gate < 4; gate++)
        LB_TRY(forward_gate(w, s, gate, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, first, gate_at(w, s, 1), c_at(w, s), err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, second, gate_at(w, s, 0), gate_at(w, s, 2), err));
    LB_TRY(elementwise(w, LB_OP_ADD, c, first, second, err));
    LB_TRY(elementwise(w, act, inner_at(w, s), c, NULL, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, first, gate_at(w, s, 3), inner_at(w, s), err));
    LB_TRY(lb_cell_convert_to_storage(p->dtype, h_at(w, s + 1), first, w->state,
                                      w->self->net.stream, err));
    LB_TRY(keep_running(w, w->self->net.real, t, c, c, c_at(w, s), err));
    LB_TRY(keep_running(w, p->dtype, t, h_at(w, s + 1), h_at(w, s + 1), h_at(w, s), err));
    LB_TRY(write_y(w, s, y, err));
done:
    return st;
}

static enum lb_status forward_layer_dir(const struct layer_pass *w, const struct lb_forward_io *io,
                                        struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct lb_cuda_naive *self = w->self;
    enum lb_status st = LB_OK;
    int64_t at = w->index * w->state;
    size_t bytes = lb_gpu_storage(&self->net, w->state);
    LB_TRY(lb_gpu_start_state(&self->net, 0, w->index, io, h_at(w, 0), c_at(w, 0), err));
    for (int64_t s = 0; s < p->seq_len; s++)
        LB_TRY(forward_step(w, s, w->e->y ? w->e->y : io->y, err));
    LB_TRY(lb_stream_copy(self->net.streams, 0, lb_gpu_storage_at(&self->net, io->hn, at),
                          h_at(w, p->seq_len), bytes, err));
    LB_TRY(lb_cell_convert_to_storage(p->dtype, lb_gpu_storage_at(&self->net, io->cn, at),
                                      c_at(w, p->seq_len), w->state, self->net.stream, err));
done:
    return st;
}

enum lb_status lb_naive_forward(void *state, const struct lb_forward_io *io, struct lb_error *err)
{
    struct lb_cuda_naive *self = state;
    enum lb_status st = LB_OK;
    for (int64_t l = 0; l < self->net.problem->layers; l++) {
        for (int64_t d = 0; d < self->net.problem->directions; d++) {
            struct layer_pass w = layer_pass_make(self, l, d, io->x);
            LB_TRY(forward_layer_dir(&w, io, err));
        }
    }
done:
    return st;
}

/* ---- Backward ------------------------------------------------------------------------------ */

/* Computes the gradients of the pre-activations, da [4] of scratch, and of c. scratch->first is the
 * gradient of h. */
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
                       err)); /* the complete gradient of c */
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->da[0], x->second, g, err));
    LB_TRY(elementwise(w, LB_OP_SIGMOID_SLOPE, x->da[0], x->da[0], i, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->da[1], x->second, c_at(w, s), err));
    LB_TRY(elementwise(w, LB_OP_SIGMOID_SLOPE, x->da[1], x->da[1], f, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->da[2], x->second, i, err));
    LB_TRY(elementwise(w, slope, x->da[2], x->da[2], g, err));
    LB_TRY(elementwise(w, LB_OP_MULTIPLY, x->dc_next, x->second, f, err));
    if (!w->p->ragged) { /* no row has ended: all of dc is replaced */
        LB_TRY(lb_stream_copy(w->self->net.streams, 0, x->dc, x->dc_next,
                              lb_gpu_real(&w->self->net, w->state), err));
        goto done;
    }
    LB_TRY(keep_running(w, w->self->net.real, t, x->dc, x->dc_next, x->dc, err));
    for (int gate = 0; gate < 4; gate++)
        LB_TRY(keep_running(w, w->self->net.real, t, x->da[gate], x->da[gate], NULL, err));
done:
    return st;
}

/* c [m, n] R (+)= a b, where a is da_stored [B, H] T, transposed or not. */
static enum lb_status da_gemm(const struct layer_pass *w, bool transpose, void *c, const void *b,
                              int64_t columns, bool accumulate, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    const struct lb_gemm g = {.in = p->dtype,
                              .out = w->self->net.real,
                              .math = p->math,
                              .transpose_a = transpose,
                              .accumulate = accumulate,
                              .m = transpose ? p->hidden : p->batch,
                              .n = columns,
                              .k = transpose ? p->batch : p->hidden,
                              .a = w->scratch->da_stored,
                              .lda = p->hidden,
                              .b = b,
                              .ldb = columns,
                              .c = c,
                              .ldc = columns};
    return lb_stream_gemm(w->self->net.streams, 0, &g, err);
}

/* Adds what one gate's gradient contributes to dx, dh and the weights. */
static enum lb_status backward_gate(const struct layer_pass *w, int64_t s, int gate,
                                    struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct lb_cuda_naive *self = w->self;
    struct lb_naive_scratch *x = w->scratch;
    struct lb_naive_layer_dir *e = w->e;
    enum lb_status st = LB_OK;
    int64_t rows = gate * p->hidden;
    LB_TRY(lb_cell_convert_to_storage(p->dtype, x->da_stored, x->da[gate], w->state,
                                      self->net.stream, err));
    LB_TRY(da_gemm(w, false, x->dx, rows_of(w, e->weights.w_ih, gate, w->input), w->input, gate > 0,
                   err));
    LB_TRY(da_gemm(w, false, x->dh_next, rows_of(w, e->weights.w_hh, gate, p->hidden), p->hidden,
                   gate > 0, err));
    LB_TRY(da_gemm(w, true,
                   lb_gpu_real_at(&self->net, e->weights.dweights[LB_W_IH], rows * w->input),
                   x_at(w, time_of(w, s)), w->input, true, err));
    LB_TRY(da_gemm(w, true,
                   lb_gpu_real_at(&self->net, e->weights.dweights[LB_W_HH], rows * p->hidden),
                   h_at(w, s), p->hidden, true, err));
    LB_TRY(lb_elementwise_add_row_sums(
        self->net.real, lb_gpu_real_at(&self->net, e->weights.dweights[LB_B_IH], rows), x->da[gate],
        p->batch, p->hidden, self->net.stream, err));
done:
    return st;
}

/* Stores dx [B, I_l] R at time t of to [T, B, I_l] T; the second direction adds to the first. */
static enum lb_status write_dx(const struct layer_pass *w, int64_t t, void *to,
                               struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct lb_cuda_naive *self = w->self;
    enum lb_status st = LB_OK;
    int64_t count = p->batch * w->input;
    void *stored = lb_gpu_storage_at(&self->net, to, t * count), *dx = w->scratch->dx;
    if (w->direction == 1) {
        LB_TRY(lb_cell_convert_to_sums(p->dtype, w->scratch->dx_other, stored, count,
                                       self->net.stream, err));
        LB_TRY(lb_elementwise(self->net.real, LB_OP_ADD, dx, dx, w->scratch->dx_other, count,
                              self->net.stream, err));
    }
    LB_TRY(lb_cell_convert_to_storage(p->dtype, stored, dx, count, self->net.stream, err));
done:
    return st;
}

static enum lb_status backward_step(const struct layer_pass *w, int64_t s, const void *dy, void *dx,
                                    struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct lb_cuda_naive *self = w->self;
    struct lb_naive_scratch *x = w->scratch;
    enum lb_status st = LB_OK;
    int64_t t = time_of(w, s), width = p->directions * p->hidden;
    const struct lb_elementwise_select incoming = {
        .rows = p->batch,
        .columns = p->hidden,
        .step = t,
        .lengths = self->net.lengths,
        .to = x->stored,
        .to_stride = p->hidden,
        .from = lb_gpu_storage_at(&self->net, dy, t * p->batch * width + w->direction * p->hidden),
        .from_stride = width,
    };
    LB_TRY(lb_elementwise_select_rows(p->dtype, &incoming, self->net.stream, err));
    LB_TRY(lb_cell_convert_to_sums(p->dtype, x->first, x->stored, w->state, self->net.stream, err));
    LB_TRY(
        elementwise(w, LB_OP_ADD, x->first, x->first, x->dh, err)); /* the complete gradient of h */
    LB_TRY(backward_cell(w, s, err));
    for (int gate = 0; gate < 4; gate++)
        LB_TRY(backward_gate(w, s, gate, err));
    LB_TRY(write_dx(w, t, dx, err));
    if (p->ragged)
        LB_TRY(keep_running(w, self->net.real, t, x->dh, x->dh_next, x->dh, err));
    else
        LB_TRY(lb_stream_copy(self->net.streams, 0, x->dh, x->dh_next,
                              lb_gpu_real(&self->net, w->state), err));
done:
    return st;
}

static enum lb_status backward_layer_dir(const struct layer_pass *w,
                                         const struct lb_backward_io *io, void *dx,
                                         struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct lb_cuda_naive *self = w->self;
    struct lb_naive_scratch *x = w->scratch;
    enum lb_status st = LB_OK;
    LB_TRY(lb_gpu_start_gradients(&self->net, 0, w->index, io, x->dh, x->dc, err));
    for (int64_t s = p->seq_len - 1; s >= 0; s--)
        LB_TRY(backward_step(w, s, w->e->dy ? w->e->dy : io->dy, dx, err));
    LB_TRY(lb_stream_copy(self->net.streams, 0, w->e->weights.dweights[LB_B_HH],
                          w->e->weights.dweights[LB_B_IH], lb_gpu_real(&self->net, 4 * p->hidden),
                          err));
    LB_TRY(lb_gpu_finish_gradients(&self->net, 0, w->index, io, x->dh, x->dc, err));
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
            struct layer_pass w = layer_pass_make(self, l, d, io->x);
            LB_TRY(backward_layer_dir(&w, io, dx, err));
        }
    }
done:
    return st;
}
