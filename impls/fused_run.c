/* fused: what is enqueued, forward and backward. */
#include "cell.h"
#include "fused_impl.h"

static const char *at(const struct lb_fused *self, const void *base, int64_t elements)
{
    return (const char *)base + (size_t)elements * lb_dtype_size(self->problem->dtype);
}

static const void *layer_input(const struct lb_fused *self, int64_t layer, const void *x)
{
    return layer == 0 ? x : self->layers[layer - 1].y;
}

/* ---- Forward ------------------------------------------------------------------------------ */

/* Pre-activations of all steps and both directions, one product. */
static enum lb_status input_product(struct lb_fused *self, int64_t layer, const void *x,
                                    struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    const struct lb_gemm g = {
        .in = p->dtype,
        .out = lb_fused_real(p),
        .math = p->math,
        .transpose_b = true,
        .m = p->seq_len * p->batch,
        .n = 4 * p->directions * p->hidden,
        .k = l->input,
        .a = layer_input(self, layer, x),
        .lda = l->input,
        .b = l->w_ih,
        .ldb = l->input,
        .c = l->gates,
        .ldc = 4 * p->directions * p->hidden,
    };
    return lb_lane_gemm(self->lanes, 0, &g, err);
}

enum lb_status lb_fused_run_forward(void *state, const struct lb_forward_io *io,
                                    struct lb_error *err)
{
    struct lb_fused *self = state;
    const struct lb_problem *p = self->problem;
    enum lb_status st = LB_OK;
    const struct lb_fused_plan *forward = &self->choice.forward;
    int64_t states = p->directions * p->batch * p->hidden;
    for (int64_t i = 0; i < p->layers; i++) {
        const struct lb_fused_layer *l = &self->layers[i];
        const struct lb_fused_forward_args args = {
            .pre = l->gates,
            .weights = l->w_hh,
            .bias = l->bias,
            .h0 = at(self, io->h0, i * states),
            .c0 = at(self, io->c0, i * states),
            .lengths = self->device_lengths,
            .y = l->y ? l->y : io->y,
            .hn = (void *)at(self, io->hn, i * states),
            .cn = (void *)at(self, io->cn, i * states),
            .gates = l->gates,
            .cells = l->cells,
            .carry = l->carry,
            .scratch = l->scratch,
            .fault = self->fault,
            .seq_len = (int)p->seq_len,
            .batch = (int)p->batch,
            .hidden = (int)p->hidden,
            .directions = (int)p->directions,
            .to = (int)p->seq_len,
        };
        LB_TRY(input_product(self, i, io->x, err));
        LB_TRY(forward->family->forward(p, forward, &args, self->stream, err));
    }
done:
    return st;
}

/* ---- Backward ----------------------------------------------------------------------------- */

/* c [m, n] = dgates' b over rows of dgates and of b that go together. */
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

/* dx = dgates w_ih and dw_ih = dgates' x, both directions in one product each; db. */
static enum lb_status input_gradients(struct lb_fused *self, int64_t layer,
                                      const struct lb_backward_io *io, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    enum lb_status st = LB_OK;
    int64_t gates = 4 * p->directions * p->hidden, rows = p->seq_len * p->batch;
    const struct lb_gemm dx = {
        .in = p->dtype,
        .out = p->dtype,
        .math = p->math,
        .m = rows,
        .n = l->input,
        .k = gates,
        .a = l->dgates,
        .lda = gates,
        .b = l->w_ih,
        .ldb = l->input,
        .c = layer > 0 ? self->layers[layer - 1].dy : io->dx,
        .ldc = l->input,
    };
    struct lb_gemm dw = over_rows(self, l->dgates, gates, layer_input(self, layer, io->x), l->input,
                                  l->input, rows, l->dw_ih);
    LB_TRY(lb_lane_gemm(self->lanes, 0, &dx, err));
    LB_TRY(lb_lane_gemm(self->lanes, 0, &dw, err));
    LB_TRY(lb_cell_column_sums(p->dtype, l->db, NULL, l->dgates, rows, gates, self->sums,
                               self->stream, err));
done:
    return st;
}

/* First row after `row` that is shorter than it. */
static int64_t same_length(const struct lb_fused *self, int64_t row)
{
    int64_t end = row + 1;
    while (end < self->problem->batch &&
           (!self->lengths || self->lengths[end] == self->lengths[row]))
        end++;
    return end;
}

/* dw_hh = dgates' h, h that before each step: h0 at a row's first step, which is time 0 forward and
 * the row's end in reverse, else y of the step before. Where y is past a row's end it is zero. */
static enum lb_status recurrent_gradient(struct lb_fused *self, int64_t layer, int64_t direction,
                                         const struct lb_backward_io *io, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    enum lb_status st = LB_OK;
    int64_t h = p->hidden, wide = p->directions * h, batch = p->batch;
    const void *y = at(self, l->y ? l->y : io->y, direction * h);
    const void *h0 = at(self, io->h0, (layer * p->directions + direction) * batch * h);
    const void *dgates = at(self, l->dgates, direction * 4 * h);
    char *dw = (char *)l->dw_hh + (size_t)(direction * 4 * h * h) * lb_dtype_size(lb_fused_real(p));
    for (int64_t row = 0, end; row < batch; row = end) {
        end = direction == 0 ? batch : same_length(self, row);
        int64_t length = self->lengths ? self->lengths[row] : p->seq_len;
        int64_t first = direction == 0 ? 0 : length - 1;
        struct lb_gemm g = over_rows(self, at(self, dgates, (first * batch + row) * 4 * wide),
                                     4 * h, at(self, h0, row * h), h, h, end - row, dw);
        g.accumulate = row > 0;
        LB_TRY(lb_lane_gemm(self->lanes, 0, &g, err));
    }
    int64_t later = direction == 0 ? 1 : 0; /* of the two neighbouring times, that of dgates */
    struct lb_gemm g =
        over_rows(self, at(self, dgates, later * batch * 4 * wide), 4 * h,
                  at(self, y, (1 - later) * batch * wide), h, wide, (p->seq_len - 1) * batch, dw);
    g.accumulate = true;
    LB_TRY(lb_lane_gemm(self->lanes, 0, &g, err));
done:
    return st;
}

enum lb_status lb_fused_run_backward(void *state, const struct lb_backward_io *io,
                                     struct lb_error *err)
{
    struct lb_fused *self = state;
    const struct lb_problem *p = self->problem;
    enum lb_status st = LB_OK;
    const struct lb_fused_plan *backward = &self->choice.backward;
    int64_t states = p->directions * p->batch * p->hidden;
    for (int64_t i = p->layers - 1; i >= 0; i--) {
        const struct lb_fused_layer *l = &self->layers[i];
        const struct lb_fused_backward_args args = {
            .gates = l->gates,
            .cells = l->cells,
            .weights = l->w_hh_t,
            .c0 = at(self, io->c0, i * states),
            .lengths = self->device_lengths,
            .dy = l->dy ? l->dy : io->dy,
            .dhn = at(self, io->dhn, i * states),
            .dcn = at(self, io->dcn, i * states),
            .dgates = l->dgates,
            .dh0 = (void *)at(self, io->dh0, i * states),
            .dc0 = (void *)at(self, io->dc0, i * states),
            .carry = l->carry,
            .scratch = l->scratch,
            .fault = self->fault,
            .seq_len = (int)p->seq_len,
            .batch = (int)p->batch,
            .hidden = (int)p->hidden,
            .directions = (int)p->directions,
            .to = (int)p->seq_len,
        };
        LB_TRY(backward->family->backward(p, backward, &args, self->stream, err));
        LB_TRY(input_gradients(self, i, io, err));
        for (int64_t d = 0; d < p->directions; d++)
            LB_TRY(recurrent_gradient(self, i, d, io, err));
    }
done:
    return st;
}
