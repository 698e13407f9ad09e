/* cuda_step: the well-known optimised loop. One input GEMM for all steps, then per step one
 * recurrent GEMM of all gates and one fused pointwise kernel. Layers overlap in a wavefront, and
 * two directions run at the same time. Each weight gradient is one GEMM at the end. */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cuda/common/cell.h"
#include "impls/common/gpu_network.h"

/* Buffers of one layer and direction (layer_dir l*D + d). T and R as in gpu_network.h.
 * In training h and c have T+1 slots in the order of time: the state before time t is slot t in the
 * forward direction and slot t+1 in the reverse direction. In inference h has two slots, used in
 * turn, and c has one. */
struct layer_dir {
    struct lb_gpu_weights tensors; /* gradients in T */
    void *bias;                    /* [4H] R, b_ih + b_hh */
    void *gates; /* [steps, B, 4H] R: pre-activations; training replaces them by the gates */
    void *h;     /* [slots, B, H] T */
    void *c;     /* [slots, B, H] R */
    void *y;     /* [T, B, D*H] T, of the whole layer; NULL in the last layer: the case's own */

    void *dgates;  /* [T, B, 4H] T: gradients of the pre-activations */
    void *dh, *dc; /* [B, H] R, of the step that comes next */
    void *dy;      /* [T, B, D*H] T, of the whole layer; NULL in the last layer */
    void *sums;    /* [LB_CELL_PARTS, 4H] R */
};

struct step {
    struct lb_gpu_network net; /* gradients in T */
    int64_t chunk;             /* steps that layers run apart in the wavefront; T: no wavefront */
    struct layer_dir *layer_dirs; /* [L*D] */
    int64_t *active;              /* [T] rows that still run at time t: lengths descend */
    char description[160];
};

enum {
    CHUNKS = 8 /* per sequence in a wavefront: a layer starts when the layer below has finished an
                  eighth */
};

static void carve_layer_dir(struct step *self, struct lb_gpu_parts *parts, int64_t index)
{
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    struct layer_dir *e = &self->layer_dirs[index];
    const struct layer_dir *beside = index % p->directions > 0 ? e - 1 : NULL;
    bool trains = lb_trains(p), top = index / p->directions + 1 == p->layers;
    bool bottom = index < p->directions;
    struct lb_arena *keep = trains ? &parts->reserve : &parts->workspace;
    int64_t state = p->batch * p->hidden, gates = 4 * p->hidden;
    int64_t layer_count = p->seq_len * p->directions * state;
    e->tensors = lb_gpu_weights_of(net, index);
    e->bias = lb_gpu_carve_real(net, &parts->weights, gates);
    /* In inference, layers that run one after the other on a stream share one buffer. */
    if (!trains && !bottom && p->directions == 2)
        e->gates = self->layer_dirs[index % 2].gates;
    else
        e->gates = lb_gpu_carve_real(
            net, keep, (trains || bottom ? p->seq_len : self->chunk) * p->batch * gates);
    e->h = lb_gpu_carve_storage(net, keep, (trains ? p->seq_len + 1 : 2) * state);
    e->c = lb_gpu_carve_real(net, keep, (trains ? p->seq_len + 1 : 1) * state);
    if (!top)
        e->y = beside ? beside->y : lb_gpu_carve_storage(net, keep, layer_count);
    if (!lb_has_backward(p))
        return;
    if (!top)
        e->dy = beside ? beside->dy : lb_gpu_carve_storage(net, &parts->workspace, layer_count);
    e->dgates = lb_gpu_carve_storage(net, &parts->workspace, p->seq_len * p->batch * gates);
    e->dh = lb_gpu_carve_real(net, &parts->workspace, state);
    e->dc = lb_gpu_carve_real(net, &parts->workspace, state);
    e->sums = lb_gpu_carve_real(net, &parts->workspace, LB_CELL_PARTS * gates);
}

/* Lays out all buffers (lb_gpu_carve). Returns the scratch of the network. */
static void *carve(void *state, struct lb_gpu_parts *parts)
{
    struct step *self = state;
    const struct lb_problem *p = self->net.problem;
    void *scratch = lb_gpu_network_carve(&self->net, parts);
    for (int64_t i = 0; i < p->layers * p->directions; i++)
        carve_layer_dir(self, parts, i);
    return scratch;
}

static enum lb_status step_create(void *state, const struct lb_problem *problem,
                                  const struct lb_exec_config *config, struct lb_error *err)
{
    struct step *self = state;
    const struct lb_problem *p = problem;
    bool wavefront = p->directions == 1 && p->layers > 1;
    int64_t streams = wavefront ? p->layers : p->directions;
    self->net = lb_gpu_network_make(
        p, config, streams < LB_STREAMS_MAX ? (int)streams : LB_STREAMS_MAX, carve);
    self->chunk = wavefront ? (p->seq_len + CHUNKS - 1) / CHUNKS : p->seq_len;
    self->layer_dirs = calloc((size_t)(p->layers * p->directions), sizeof(*self->layer_dirs));
    self->active = calloc((size_t)p->seq_len, sizeof(*self->active));
    if (!self->layer_dirs || !self->active)
        return lb_fail(err, LB_OOM, "out of memory");
    snprintf(self->description, sizeof(self->description),
             "one input GEMM of all steps, then a cuBLAS GEMM and a fused cell per step; "
             "%d stream%s",
             self->net.stream_count, self->net.stream_count == 1 ? "" : "s");
    if (wavefront)
        lb_append(self->description, sizeof(self->description),
                  "; layers in a wavefront, %lld steps apart", (long long)self->chunk);
    return LB_OK;
}

static enum lb_status step_prepare(void *state, const struct lb_buffers *buffers,
                                   const struct lb_weights *weights, struct lb_error *err)
{
    struct step *self = state;
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    LB_CHECK(lb_gpu_network_prepare(self, buffers, weights, err));
    for (int64_t i = 0; i < p->layers * p->directions; i++) {
        const struct layer_dir *e = &self->layer_dirs[i];
        const void *const *weights_there = e->tensors.weights;
        LB_CHECK(lb_cell_add(p->dtype, e->bias, weights_there[LB_B_IH], weights_there[LB_B_HH],
                             4 * p->hidden, net->stream, err));
    }
    for (int64_t t = 0, n = p->batch; t < p->seq_len; t++) {
        while (p->ragged && n > 0 && buffers->lengths[n - 1] <= t)
            n--;
        self->active[t] = n;
    }
    return LB_OK;
}

/* Index of a layer_dir's stream: its layer in a wavefront, else its direction. */
static int stream_of(const struct step *self, int64_t layer, int64_t direction)
{
    int64_t index = self->net.problem->directions == 2 ? direction : layer;
    return (int)(index % self->net.stream_count);
}

/* One layer and direction in one call. */
struct layer_pass {
    struct step *self;
    const struct lb_gpu_network *net;
    const struct lb_problem *p;
    struct layer_dir *e;
    int64_t layer, direction, index; /* index of the layer_dir */
    int stream_index;
    void *stream;
    const void *x;  /* [T, B, I_l] T, the layer's input */
    void *y;        /* [T, B, D*H] T, the layer's output; NULL in backward */
    const void *dy; /* [T, B, D*H] T; NULL in forward */
};

static struct layer_pass layer_pass_make(struct step *self, int64_t layer, int64_t direction,
                                         const void *x)
{
    const struct lb_problem *p = self->net.problem;
    int stream_index = stream_of(self, layer, direction);
    return (struct layer_pass){
        .self = self,
        .net = &self->net,
        .p = p,
        .e = &self->layer_dirs[layer * p->directions + direction],
        .layer = layer,
        .direction = direction,
        .index = layer * p->directions + direction,
        .stream_index = stream_index,
        .stream = lb_stream_handle(self->net.streams, stream_index),
        .x = layer == 0 ? x : self->layer_dirs[(layer - 1) * p->directions].y,
    };
}

/* The time of the s-th step in the direction's own order. */
static int64_t time_of(const struct layer_pass *w, int64_t s)
{
    return w->direction == 0 ? s : w->p->seq_len - 1 - s;
}

/* Slots of the states before and after the s-th step. */
static int64_t h_slot(const struct layer_pass *w, int64_t s)
{
    if (!lb_trains(w->p))
        return s % 2;
    return w->direction == 0 ? s : w->p->seq_len - s;
}

static int64_t c_slot(const struct layer_pass *w, int64_t s)
{
    return lb_trains(w->p) ? h_slot(w, s) : 0;
}

/* ---- Forward ------------------------------------------------------------------------------ */

/* Computes pre = x w_ih' of times first to first + steps - 1 into gates, from index `slot` on. */
static enum lb_status input_gemm(const struct layer_pass *w, int64_t first, int64_t steps,
                                 int64_t slot, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    int64_t input = lb_layer_input(p, w->layer);
    const struct lb_gemm g = {
        .out = w->net->real,
        .transpose_b = true,
        .m = steps * p->batch,
        .n = 4 * p->hidden,
        .k = input,
        .a = lb_gpu_storage_at(w->net, w->x, first * p->batch * input),
        .b = w->e->tensors.weights[LB_W_IH],
        .c = lb_gpu_real_at(w->net, w->e->gates, slot * p->batch * 4 * p->hidden),
    };
    return lb_gpu_gemm(w->net, w->stream_index, g, err);
}

/* Computes the s-th step, whose pre-activations are at index `slot` of gates. */
static enum lb_status forward_step(const struct layer_pass *w, const struct lb_forward_io *io,
                                   int64_t s, int64_t slot, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct step *self = w->self;
    int64_t state = p->batch * p->hidden, t = time_of(w, s);
    bool last = s + 1 == p->seq_len;
    void *pre = lb_gpu_real_at(&self->net, w->e->gates, slot * p->batch * 4 * p->hidden);
    const void *h_prev = lb_gpu_storage_at(&self->net, w->e->h, h_slot(w, s) * state);
    const struct lb_gemm g = {.out = self->net.real,
                              .transpose_b = true,
                              .accumulate = true,
                              .m = self->active[t],
                              .n = 4 * p->hidden,
                              .k = p->hidden,
                              .a = h_prev,
                              .b = w->e->tensors.weights[LB_W_HH],
                              .c = pre};
    LB_CHECK(lb_gpu_gemm(&self->net, w->stream_index, g, err));

    int64_t y_at = t * p->batch * p->directions * p->hidden + w->direction * p->hidden;
    const struct lb_cell_forward cell = {
        .batch = p->batch,
        .hidden = p->hidden,
        .step = t,
        .lengths = self->net.lengths,
        .act = p->act,
        .pre = pre,
        .bias = w->e->bias,
        .c_prev = lb_gpu_real_at(&self->net, w->e->c, c_slot(w, s) * state),
        .h_prev = h_prev,
        .c = lb_gpu_real_at(&self->net, w->e->c, c_slot(w, s + 1) * state),
        .h = lb_gpu_storage_at(&self->net, w->e->h, h_slot(w, s + 1) * state),
        .y = lb_gpu_storage_at(&self->net, w->y, y_at),
        .y_stride = p->directions * p->hidden,
        .gates = lb_trains(p) ? pre : NULL,
        .hn = last ? lb_gpu_storage_at(&self->net, io->hn, w->index * state) : NULL,
        .cn = last ? lb_gpu_storage_at(&self->net, io->cn, w->index * state) : NULL,
    };
    return lb_cell_forward_step(p->dtype, &cell, w->stream, err);
}

/* Computes steps first to first + steps - 1 of a layer_dir, with the input GEMM that they need. */
static enum lb_status forward_chunk(struct step *self, const struct lb_forward_io *io,
                                    int64_t layer, int64_t direction, int64_t first, int64_t steps,
                                    struct lb_error *err)
{
    const struct lb_problem *p = self->net.problem;
    struct layer_pass w = layer_pass_make(self, layer, direction, io->x);
    bool whole = layer == 0 || steps == p->seq_len; /* the input GEMM covers all times at once */
    bool own_slot = whole || lb_trains(p);
    w.y = w.e->y ? w.e->y : io->y;
    if (first == 0)
        LB_CHECK(lb_gpu_start_state(
            &self->net, w.stream_index, w.index, io,
            lb_gpu_storage_at(&self->net, w.e->h, h_slot(&w, 0) * p->batch * p->hidden),
            lb_gpu_real_at(&self->net, w.e->c, c_slot(&w, 0) * p->batch * p->hidden), err));
    if (!whole)
        LB_CHECK(input_gemm(&w, first, steps, own_slot ? first : 0, err));
    else if (first == 0)
        LB_CHECK(input_gemm(&w, 0, p->seq_len, 0, err));
    for (int64_t s = first; s < first + steps; s++)
        LB_CHECK(forward_step(&w, io, s, own_slot ? time_of(&w, s) : s - first, err));
    return LB_OK;
}

static enum lb_status cuda_step_forward(void *state, const struct lb_forward_io *io,
                                        struct lb_error *err)
{
    struct step *self = state;
    const struct lb_problem *p = self->net.problem;
    LB_CHECK(lb_streams_fork(self->net.streams, err));
    for (int64_t first = 0; first < p->seq_len; first += self->chunk) {
        int64_t left = p->seq_len - first, steps = self->chunk < left ? self->chunk : left;
        for (int64_t l = 0; l < p->layers; l++) {
            if (p->directions == 2 && l > 0) { /* a layer needs both directions below it */
                LB_CHECK(lb_stream_wait(self->net.streams, 0, 1, err));
                LB_CHECK(lb_stream_wait(self->net.streams, 1, 0, err));
            } else if (l > 0) {
                LB_CHECK(lb_stream_wait(self->net.streams, stream_of(self, l, 0),
                                        stream_of(self, l - 1, 0), err));
            }
            for (int64_t d = 0; d < p->directions; d++)
                LB_CHECK(forward_chunk(self, io, l, d, first, steps, err));
        }
    }
    return lb_streams_join(self->net.streams, err);
}

/* ---- Backward ----------------------------------------------------------------------------- */

static enum lb_status backward_step(const struct layer_pass *w, int64_t s, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct step *self = w->self;
    int64_t state = p->batch * p->hidden, gates = 4 * p->hidden, t = time_of(w, s);
    int64_t dy_at = t * p->batch * p->directions * p->hidden + w->direction * p->hidden;
    void *dgates = lb_gpu_storage_at(&self->net, w->e->dgates, t * p->batch * gates);
    const struct lb_cell_backward cell = {
        .batch = p->batch,
        .hidden = p->hidden,
        .step = t,
        .lengths = self->net.lengths,
        .act = p->act,
        .gates = lb_gpu_real_at(&self->net, w->e->gates, t * p->batch * gates),
        .c_prev = lb_gpu_real_at(&self->net, w->e->c, c_slot(w, s) * state),
        .c = lb_gpu_real_at(&self->net, w->e->c, c_slot(w, s + 1) * state),
        .dy = lb_gpu_storage_at(&self->net, w->dy, dy_at),
        .dy_stride = p->directions * p->hidden,
        .dh = w->e->dh,
        .dc = w->e->dc,
        .dgates = dgates,
    };
    /* A batch row past its end keeps dh, which is dhn until its last step. */
    const struct lb_gemm g = {.out = self->net.real,
                              .m = self->active[t],
                              .n = p->hidden,
                              .k = gates,
                              .a = dgates,
                              .b = w->e->tensors.weights[LB_W_HH],
                              .c = w->e->dh};
    LB_CHECK(lb_cell_backward_step(p->dtype, &cell, w->stream, err));
    return lb_gpu_gemm(&self->net, w->stream_index, g, err);
}

/* Computes dx = dgates w_ih of times first to first + steps - 1, or adds it to dx. */
static enum lb_status input_gradient(const struct layer_pass *w, void *dx, int64_t first,
                                     int64_t steps, bool accumulate, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    int64_t input = lb_layer_input(p, w->layer);
    const struct lb_gemm g = {
        .out = p->dtype,
        .accumulate = accumulate,
        .m = steps * p->batch,
        .n = input,
        .k = 4 * p->hidden,
        .a = lb_gpu_storage_at(w->net, w->e->dgates, first * p->batch * 4 * p->hidden),
        .b = w->e->tensors.weights[LB_W_IH],
        .c = lb_gpu_storage_at(w->net, dx, first * p->batch * input),
    };
    return lb_gpu_gemm(w->net, w->stream_index, g, err);
}

/* Computes steps first + steps - 1 down to first of a layer_dir. */
static enum lb_status backward_chunk(struct step *self, const struct lb_backward_io *io,
                                     int64_t layer, int64_t direction, int64_t first, int64_t steps,
                                     struct lb_error *err)
{
    struct layer_pass w = layer_pass_make(self, layer, direction, io->x);
    w.dy = w.e->dy ? w.e->dy : io->dy;
    if (first + steps == self->net.problem->seq_len)
        LB_CHECK(
            lb_gpu_start_gradients(&self->net, w.stream_index, w.index, io, w.e->dh, w.e->dc, err));
    for (int64_t s = first + steps - 1; s >= first; s--)
        LB_CHECK(backward_step(&w, s, err));
    return LB_OK;
}

/* Computes the gradient of a chunk's input, which is dy of the layer below or dx. Stream 0 adds the
 * gradients of both directions. */
static enum lb_status pass_gradient_down(struct step *self, const struct lb_backward_io *io,
                                         int64_t layer, int64_t first, int64_t steps,
                                         struct lb_error *err)
{
    const struct lb_problem *p = self->net.problem;
    void *dx = layer > 0 ? self->layer_dirs[(layer - 1) * p->directions].dy : io->dx;
    struct layer_pass w = layer_pass_make(self, layer, 0, io->x);
    LB_CHECK(input_gradient(&w, dx, first, steps, false, err));
    if (p->directions == 2) {
        LB_CHECK(lb_stream_wait(self->net.streams, 0, 1, err));
        w.e = &self->layer_dirs[layer * 2 + 1];
        LB_CHECK(input_gradient(&w, dx, first, steps, true, err));
        LB_CHECK(lb_stream_wait(self->net.streams, 1, 0, err));
    }
    return LB_OK;
}

/* Computes dweights [4H, columns] = dgates' `from` over all steps; from is [T*B, columns] T. */
static enum lb_status weight_gemm(const struct layer_pass *w, enum lb_weight which,
                                  const void *from, int64_t columns, struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    const struct lb_gemm g = {.out = p->dtype,
                              .transpose_a = true,
                              .m = 4 * p->hidden,
                              .n = columns,
                              .k = p->seq_len * p->batch,
                              .a = w->e->dgates,
                              .b = from,
                              .c = w->e->tensors.dweights[which]};
    return lb_gpu_gemm(w->net, w->stream_index, g, err);
}

/* Computes the weight gradients of one layer_dir and the gradients of its initial state. */
static enum lb_status finish_layer_dir(const struct layer_pass *w, const struct lb_backward_io *io,
                                       struct lb_error *err)
{
    const struct lb_problem *p = w->p;
    struct step *self = w->self;
    int64_t state = p->batch * p->hidden;
    /* The state before each step, ordered by time. */
    const void *h_prev = lb_gpu_storage_at(&self->net, w->e->h, w->direction * state);
    LB_CHECK(weight_gemm(w, LB_W_IH, w->x, lb_layer_input(p, w->layer), err));
    LB_CHECK(weight_gemm(w, LB_W_HH, h_prev, p->hidden, err));
    LB_CHECK(lb_cell_column_sums(p->dtype, w->e->tensors.dweights[LB_B_IH],
                                 w->e->tensors.dweights[LB_B_HH], w->e->dgates,
                                 p->seq_len * p->batch, 4 * p->hidden, w->e->sums, w->stream, err));
    return lb_gpu_finish_gradients(&self->net, w->stream_index, w->index, io, w->e->dh, w->e->dc,
                                   err);
}

static enum lb_status cuda_step_backward(void *state, const struct lb_backward_io *io,
                                         struct lb_error *err)
{
    struct step *self = state;
    const struct lb_problem *p = self->net.problem;
    int64_t first = (p->seq_len - 1) / self->chunk * self->chunk;
    LB_CHECK(lb_streams_fork(self->net.streams, err));
    for (; first >= 0; first -= self->chunk) {
        int64_t left = p->seq_len - first, steps = self->chunk < left ? self->chunk : left;
        for (int64_t l = p->layers - 1; l >= 0; l--) {
            if (p->directions == 1 && l + 1 < p->layers)
                LB_CHECK(lb_stream_wait(self->net.streams, stream_of(self, l, 0),
                                        stream_of(self, l + 1, 0), err));
            for (int64_t d = 0; d < p->directions; d++)
                LB_CHECK(backward_chunk(self, io, l, d, first, steps, err));
            LB_CHECK(pass_gradient_down(self, io, l, first, steps, err));
        }
    }
    for (int64_t l = 0; l < p->layers; l++) {
        for (int64_t d = 0; d < p->directions; d++) {
            struct layer_pass w = layer_pass_make(self, l, d, io->x);
            LB_CHECK(finish_layer_dir(&w, io, err));
        }
    }
    return lb_streams_join(self->net.streams, err);
}

/* ---- The implementation -------------------------------------------------------------------- */

static const char *step_describe(const void *state)
{
    const struct step *self = state;
    return self->description;
}

static void step_destroy(void *state)
{
    struct step *self = state;
    lb_gpu_network_destroy(&self->net);
    free(self->active);
    free(self->layer_dirs);
}

const struct lb_impl lb_impl_cuda_step = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "cuda_step",
    .summary = "cuBLAS: one input GEMM, then one recurrent GEMM and one fused cell per step",
    .memory = LB_DEVICE,
    .traits = LB_DETERMINISTIC | LB_CAPTURABLE | LB_INSTANCES | LB_PLANS_ALONE,
    .state_size = sizeof(struct step),
    .supports = lb_gpu_network_supports,
    .create = step_create,
    .sizes = lb_gpu_network_sizes,
    .prepare = step_prepare,
    .forward = cuda_step_forward,
    .backward = cuda_step_backward,
    .gradients = lb_gpu_network_gradients,
    .describe = step_describe,
    .destroy = step_destroy,
};
