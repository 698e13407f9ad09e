/* What a forward and a backward call of the fused implementation enqueue. */
#include "cuda/common/cell.h"
#include "impls/fused/fused.h"

static char *at(const struct lb_fused *self, const void *base, int64_t elements)
{
    return (char *)(uintptr_t)base + (size_t)elements * lb_dtype_size(self->problem->dtype);
}

static char *real_at(const struct lb_fused *self, void *base, int64_t elements)
{
    return (char *)base + (size_t)elements * lb_dtype_size(lb_fused_real(self->problem));
}

static const void *layer_input(const struct lb_fused *self, int64_t layer, const void *x)
{
    return layer == 0 ? x : self->layers[layer - 1].y;
}

/* In a wavefront layers have streams of their own, each for GEMMs and recurrence. A single layer
 * that runs in chunks has its GEMMs on stream 0 and its recurrence on stream 1. */
static int stream_index_of(const struct lb_fused *self, int64_t layer)
{
    return (int)(layer % lb_streams_count(self->streams));
}

static int recurrence_stream(const struct lb_fused *self, int64_t layer)
{
    bool beside = self->problem->layers == 1 && lb_streams_count(self->streams) > 1;
    return beside ? 1 : stream_index_of(self, layer);
}

static void *stream_of(const struct lb_fused *self, int stream_index)
{
    return lb_stream_handle(self->streams, stream_index);
}

/* Enqueues the clearing of a layer's scratch, on the stream of its recurrence and before this
 * waits for GEMMs, so that the clearing runs beside them. */
static enum lb_status clear_scratch(struct lb_fused *self, int64_t layer,
                                    const struct lb_fused_plan *plan, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    if (!plan->family->clear)
        return LB_OK;
    return plan->family->clear(&plan->kernel, (int)p->hidden, (int)p->directions,
                               self->layers[layer].scratch,
                               stream_of(self, recurrence_stream(self, layer)), err);
}

/* ---- Forward ------------------------------------------------------------------------------ */

/* Computes the pre-activations of times [first, end) and both directions in one GEMM. */
static enum lb_status input_gemm(struct lb_fused *self, int64_t layer, const void *x, int64_t first,
                                 int64_t end, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    int64_t gates = 4 * p->directions * p->hidden, row = first * p->batch;
    const struct lb_gemm g = {
        .in = p->dtype,
        .out = lb_fused_real(p),
        .math = p->math,
        .transpose_b = true,
        .m = (end - first) * p->batch,
        .n = gates,
        .k = l->input,
        .a = at(self, layer_input(self, layer, x), row * l->input),
        .lda = l->input,
        .b = l->w_ih,
        .ldb = l->input,
        .c = real_at(self, l->gates, row * gates),
        .ldc = gates,
    };
    return lb_stream_gemm(self->streams, stream_index_of(self, layer), &g, err);
}

/* Computes steps [first, end) of a layer. */
static enum lb_status forward_chunk(struct lb_fused *self, int64_t layer,
                                    const struct lb_forward_io *io, int64_t first, int64_t end,
                                    struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    const struct lb_fused_plan *plan = &self->choice.forward;
    int64_t state = layer * p->directions * p->batch * p->hidden;
    const struct lb_fused_forward_args args = {
        .pre = l->gates,
        .weights = l->w_hh,
        .bias = l->bias,
        .h0 = at(self, io->h0, state),
        .c0 = at(self, io->c0, state),
        .y = l->y ? l->y : io->y,
        .hn = at(self, io->hn, state),
        .cn = at(self, io->cn, state),
        .gates = l->gates,
        .cells = l->cells,
        .lengths = self->device_lengths,
        LB_FUSED_COMMON_ARGS(p, l->carry, l->scratch, self->fault, first, end),
    };
    if (first == 0)
        LB_CHECK(clear_scratch(self, layer, plan, err));
    LB_CHECK(input_gemm(self, layer, io->x, first, end, err));
    LB_CHECK(lb_stream_wait(self->streams, recurrence_stream(self, layer),
                            stream_index_of(self, layer), err));
    return plan->family->forward(&plan->kernel, &args,
                                 stream_of(self, recurrence_stream(self, layer)), err);
}

/* A layer's chunk follows the same chunk of the layer below. With one layer, the input GEMM of a
 * chunk runs beside the recurrence of earlier chunks. */
enum lb_status lb_fused_run_forward(void *state, const struct lb_forward_io *io,
                                    struct lb_error *err)
{
    struct lb_fused *self = state;
    const struct lb_problem *p = self->problem;
    LB_CHECK(lb_streams_fork(self->streams, err));
    for (int64_t first = 0; first < p->seq_len; first += self->chunk) {
        int64_t end = first + self->chunk < p->seq_len ? first + self->chunk : p->seq_len;
        for (int64_t i = 0; i < p->layers; i++) {
            if (i > 0)
                LB_CHECK(lb_stream_wait(self->streams, stream_index_of(self, i),
                                        stream_index_of(self, i - 1), err));
            LB_CHECK(forward_chunk(self, i, io, first, end, err));
        }
    }
    return lb_streams_join(self->streams, err);
}

/* ---- Backward ----------------------------------------------------------------------------- */

/* Returns the GEMM c [m, n] = dgates' b, whose depth is `rows` rows of dgates and of b. */
static struct lb_gemm over_rows(const struct lb_fused *self, const void *dgates, int64_t m,
                                const void *b, int64_t n, int64_t ldb, int64_t rows, void *c)
{
    const struct lb_problem *p = self->problem;
    return (struct lb_gemm){
        .in = p->dtype,
        .out = lb_fused_real(p),
        .math = p->math,
        .transpose_a = true,
        .m = m,
        .n = n,
        .k = rows,
        .a = dgates,
        .lda = 4 * p->directions * p->hidden,
        .b = b,
        .ldb = ldb,
        .c = c,
        .ldc = n,
    };
}

/* Computes dx = dgates w_ih of times [first, end) and both directions in one GEMM. The layer below
 * waits for it. */
static enum lb_status input_gradient(struct lb_fused *self, int64_t layer,
                                     const struct lb_backward_io *io, int64_t first, int64_t end,
                                     struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    int64_t gates = 4 * p->directions * p->hidden, row = first * p->batch;
    void *dx = layer > 0 ? self->layers[layer - 1].dy : io->dx;
    const struct lb_gemm g = {
        .in = p->dtype,
        .out = p->dtype,
        .math = p->math,
        .m = (end - first) * p->batch,
        .n = l->input,
        .k = gates,
        .a = at(self, l->dgates, row * gates),
        .lda = gates,
        .b = l->w_ih,
        .ldb = l->input,
        .c = at(self, dx, row * l->input),
        .ldc = l->input,
    };
    return lb_stream_gemm(self->streams, stream_index_of(self, layer), &g, err);
}

/* Returns the first batch row after `row` that is shorter, or the batch size. */
static int64_t same_length(const struct lb_fused *self, int64_t row)
{
    int64_t end = row + 1;
    while (end < self->problem->batch &&
           (!self->lengths || self->lengths[end] == self->lengths[row]))
        end++;
    return end;
}

/* Computes times [first, end) of dw_hh of a direction: dgates of each step times h before it, which
 * is h0 at a row's first step and after that y of the neighbouring time. Past a row's end dgates is
 * zero in one direction and y in the other, so that only the GEMM of the first steps in reverse
 * depends on lengths. Later times come first; in direction 1 there are no chunks. */
static enum lb_status recurrent_gradient(struct lb_fused *self, int64_t layer, int64_t direction,
                                         const struct lb_backward_io *io, int64_t first,
                                         int64_t end, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    int stream_index = stream_index_of(self, layer);
    int64_t h = p->hidden, width = p->directions * h, batch = p->batch;
    const void *y = at(self, l->y ? l->y : io->y, direction * h);
    const void *h0 = at(self, io->h0, (layer * p->directions + direction) * batch * h);
    const void *dgates = at(self, l->dgates, direction * 4 * h);
    void *dw = real_at(self, l->dw_hh, direction * 4 * h * h);
    bool begun = end < p->seq_len;
    for (int64_t row = 0, next; first == 0 && row < batch; row = next) {
        next = direction == 0 ? batch : same_length(self, row);
        int64_t length = self->lengths ? self->lengths[row] : p->seq_len;
        int64_t time = direction == 0 ? 0 : length - 1;
        struct lb_gemm g = over_rows(self, at(self, dgates, (time * batch + row) * 4 * width),
                                     4 * h, at(self, h0, row * h), h, h, next - row, dw);
        g.accumulate = begun || row > 0;
        LB_CHECK(lb_stream_gemm(self->streams, stream_index, &g, err));
    }
    int64_t time = first > 0 ? first : 1; /* the later of two neighbouring times */
    int64_t of_dgates = direction == 0 ? time : time - 1, of_y = 2 * time - 1 - of_dgates;
    struct lb_gemm g =
        over_rows(self, at(self, dgates, of_dgates * batch * 4 * width), 4 * h,
                  at(self, y, of_y * batch * width), h, width, (end - time) * batch, dw);
    g.accumulate = begun || first == 0;
    return lb_stream_gemm(self->streams, stream_index, &g, err);
}

/* Computes what is summed over all steps: dw_ih and dw_hh by adding times [first, end), of which
 * the last come first, and db in the end. */
static enum lb_status weight_gradients(struct lb_fused *self, int64_t layer,
                                       const struct lb_backward_io *io, int64_t first, int64_t end,
                                       struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    int64_t gates = 4 * p->directions * p->hidden, row = first * p->batch;
    int stream_index = stream_index_of(self, layer);
    struct lb_gemm dw = over_rows(self, at(self, l->dgates, row * gates), gates,
                                  at(self, layer_input(self, layer, io->x), row * l->input),
                                  l->input, l->input, (end - first) * p->batch, l->dw_ih);
    dw.accumulate = end < p->seq_len;
    LB_CHECK(lb_stream_gemm(self->streams, stream_index, &dw, err));
    if (first == 0)
        LB_CHECK(lb_cell_column_sums(p->dtype, l->db, NULL, l->dgates, p->seq_len * p->batch, gates,
                                     l->sums, stream_of(self, stream_index), err));
    for (int64_t d = 0; d < p->directions; d++)
        LB_CHECK(recurrent_gradient(self, layer, d, io, first, end, err));
    return LB_OK;
}

/* Computes steps end - 1 down to first of a layer. */
static enum lb_status backward_chunk(struct lb_fused *self, int64_t layer,
                                     const struct lb_backward_io *io, int64_t first, int64_t end,
                                     struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    const struct lb_fused_plan *plan = &self->choice.backward;
    int64_t state = layer * p->directions * p->batch * p->hidden;
    const struct lb_fused_backward_args args = {
        .gates = l->gates,
        .cells = l->cells,
        .weights = l->w_hh_t,
        .c0 = at(self, io->c0, state),
        .dy = l->dy ? l->dy : io->dy,
        .dhn = at(self, io->dhn, state),
        .dcn = at(self, io->dcn, state),
        .dgates = l->dgates,
        .dh0 = at(self, io->dh0, state),
        .dc0 = at(self, io->dc0, state),
        .lengths = self->device_lengths,
        LB_FUSED_COMMON_ARGS(p, l->carry, l->scratch, self->fault, first, end),
    };
    if (end == p->seq_len)
        LB_CHECK(clear_scratch(self, layer, plan, err));
    LB_CHECK(plan->family->backward(&plan->kernel, &args,
                                    stream_of(self, recurrence_stream(self, layer)), err));
    LB_CHECK(lb_stream_wait(self->streams, stream_index_of(self, layer),
                            recurrence_stream(self, layer), err));
    return input_gradient(self, layer, io, first, end, err);
}

enum lb_status lb_fused_run_backward(void *state, const struct lb_backward_io *io,
                                     struct lb_error *err)
{
    struct lb_fused *self = state;
    const struct lb_problem *p = self->problem;
    bool wavefront = p->layers > 1 && self->chunk < p->seq_len;
    int64_t first = (p->seq_len - 1) / self->chunk * self->chunk;
    LB_CHECK(lb_streams_fork(self->streams, err));
    for (; first >= 0; first -= self->chunk) {
        int64_t end = first + self->chunk < p->seq_len ? first + self->chunk : p->seq_len;
        for (int64_t i = p->layers - 1; i >= 0; i--) {
            if (i + 1 < p->layers)
                LB_CHECK(lb_stream_wait(self->streams, stream_index_of(self, i),
                                        stream_index_of(self, i + 1), err));
            LB_CHECK(backward_chunk(self, i, io, first, end, err));
            if (!wavefront) /* layers share dgates */
                LB_CHECK(weight_gradients(self, i, io, first, end, err));
        }
    }
    for (int64_t i = p->layers - 1; wavefront && i >= 0; i--)
        LB_CHECK(weight_gradients(self, i, io, 0, p->seq_len, err));
    return lb_streams_join(self->streams, err);
}
