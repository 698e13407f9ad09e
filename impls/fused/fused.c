/* fused: the project's own kernels. One GEMM multiplies the inputs of all steps of a layer; one of
 * several families of kernels then runs its recurrence, both directions at the same time.
 * cuda/README.md describes them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "cuda/common/cell.h"
#include "impls/fused/fused.h"

static const char *variant_of(const struct lb_exec_config *config)
{
    return config->variant ? config->variant : lb_fused_variants[0];
}

static enum lb_status fused_supports(const struct lb_problem *problem,
                                     const struct lb_exec_config *config, struct lb_error *why)
{
    struct lb_fused_choice choice;
    return lb_fused_choose(problem, lb_device_known(NULL), variant_of(config), &choice, why);
}

size_t lb_fused_weight_bytes(const struct lb_problem *problem, const struct lb_fused_plan *plan)
{
    return plan->family->layout(problem, plan).elements * lb_dtype_size(problem->dtype);
}

size_t lb_fused_scratch_bytes(const struct lb_problem *problem, const struct lb_fused_plan *plan)
{
    const struct lb_fused_family *family = plan->family;
    return family && family->scratch_bytes ? family->scratch_bytes(problem, plan) : 0;
}

enum { TEXT_SIZE = sizeof(((struct lb_fused *)0)->description) };

static void describe_plan(struct lb_fused *self, const struct lb_fused_plan *plan,
                          const char *machine)
{
    char tiles[200];
    plan->family->describe(self->net.problem, plan, tiles, sizeof(tiles));
    lb_append(self->description, TEXT_SIZE, "%s: %s; %s %.2f us per step%s%s", plan->family->name,
              tiles, plan->tuned ? "tuned," : "expected", plan->step_ns / 1e3,
              plan->tuned ? "" : " on ", plan->tuned ? "" : machine);
}

/* machine: of the expected times, "h100" */
static void describe(struct lb_fused *self, const char *machine)
{
    const struct lb_fused_choice *c = &self->choice;
    self->description[0] = '\0';
    describe_plan(self, &c->forward, machine);
    lb_append(self->description, TEXT_SIZE, ", chosen of %d", c->fitting);
    if (c->others[0] && !c->forward.tuned)
        lb_append(self->description, TEXT_SIZE, " (%s)", c->others);
    if (lb_has_backward(self->net.problem)) {
        lb_append(self->description, TEXT_SIZE, "; backward ");
        describe_plan(self, &c->backward, machine);
    }
    if (self->chunk < self->net.problem->seq_len)
        lb_append(self->description, TEXT_SIZE,
                  self->net.problem->layers > 1
                      ? "; layers in a wavefront, %lld steps apart"
                      : "; GEMMs beside the recurrence, in chunks of %lld steps",
                  (long long)self->chunk);
    if (c->note[0])
        lb_append(self->description, TEXT_SIZE, "; %s", c->note);
}

/* Replaces a pass's predicted plan by a measured one. Where the file of measurements cannot be
 * used, the description says why and the predicted plan stays. */
static enum lb_status use_tuned(struct lb_fused *self, const struct lb_fused_view *view,
                                const char *variant, bool backward, struct lb_error *err)
{
    struct lb_fused_choice *c = &self->choice;
    struct lb_error why;
    enum lb_status st =
        lb_fused_tune(view, variant, backward, backward ? &c->backward : &c->forward, &why);
    if (st == LB_INVALID || st == LB_IO)
        snprintf(c->note, sizeof(c->note), "%.*s", (int)sizeof(c->note) - 1, why.text);
    else if (st != LB_OK && st != LB_ABSENT)
        return lb_fail(err, st, "tuning: %.400s", why.text);
    return LB_OK;
}

/* Readies a pass's plan, or the next best one that the device does not refuse. The first reason for
 * a refusal is noted, or is the error where it refuses all. */
static enum lb_status ready_best(struct lb_fused *self, const struct lb_fused_view *view,
                                 const char *variant, bool backward, struct lb_error *err)
{
    struct lb_fused_choice *c = &self->choice;
    struct lb_fused_plan *plan = backward ? &c->backward : &c->forward;
    struct lb_fused_plan plans[LB_FUSED_FAMILIES_MAX * LB_FUSED_PLANS_MAX];
    const struct lb_fused_family *refused = plan->family;
    struct lb_error ignored;
    enum lb_status st = plan->family->ready(plan, err);
    int count = st == LB_UNSUPPORTED ? lb_fused_plans(view, variant, backward, plans, NULL) : 0;
    for (; st == LB_UNSUPPORTED && count > 0; count--) {
        int best = 0;
        for (int i = 1; i < count; i++)
            best = plans[i].step_ns < plans[best].step_ns ? i : best;
        *plan = plans[best];
        plans[best] = plans[count - 1];
        st = plan->family->ready(plan, &ignored);
        if (st == LB_OK)
            snprintf(c->note, sizeof(c->note), "%s was refused: %.150s", refused->name, err->text);
        else if (st != LB_UNSUPPORTED)
            *err = ignored;
    }
    return st;
}

static int stream_count(const struct lb_fused *self)
{
    const struct lb_problem *p = self->net.problem;
    if (self->chunk == p->seq_len)
        return 1;
    if (p->layers == 1)
        return 2; /* GEMMs and the recurrence */
    return p->layers < LB_STREAMS_MAX ? (int)p->layers : LB_STREAMS_MAX;
}

static void carve_layer(struct lb_fused *self, struct lb_gpu_parts *parts, int64_t i)
{
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    const struct lb_fused_plan *forward = &self->choice.forward, *backward = &self->choice.backward;
    struct lb_fused_layer *l = &self->layers[i];
    bool trains = lb_trains(p), top = i + 1 == p->layers, apart = self->chunk < p->seq_len;
    struct lb_arena *keep = trains ? &parts->reserve : &parts->workspace;
    struct lb_arena *weights = &parts->weights, *work = &parts->workspace;
    int64_t width = p->directions * p->hidden, rows = 4 * width;
    int64_t cells = p->seq_len * p->batch * width;
    size_t directions = (size_t)p->directions;
    l->w_ih = lb_gpu_carve_storage(net, weights, rows * l->input);
    l->bias = lb_gpu_carve_real(net, weights, rows);
    l->w_hh = lb_arena_take(weights, directions * lb_fused_weight_bytes(p, forward));
    /* The state that one launch of a layer leaves for the next, and the buffers through which
     * blocks exchange data. */
    size_t sent = lb_fused_scratch_bytes(p, forward), back = lb_fused_scratch_bytes(p, backward);
    l->carry = lb_gpu_carve_real(net, work, 2 * p->batch * width);
    l->scratch = lb_arena_take(work, sent > back ? sent : back);
    /* In inference, layers that follow each other share one buffer of pre-activations and two of
     * outputs. */
    l->gates =
        trains || apart || i == 0 ? lb_gpu_carve_real(net, keep, 4 * cells) : self->layers[0].gates;
    l->cells = trains ? lb_gpu_carve_real(net, keep, cells) : NULL;
    if (!top)
        l->y = trains || apart || i < 2 ? lb_gpu_carve_storage(net, keep, cells)
                                        : self->layers[i - 2].y;
    if (!lb_has_backward(p))
        return;
    l->w_hh_t = lb_arena_take(weights, directions * lb_fused_weight_bytes(p, backward));
    l->dgates =
        apart || i == 0 ? lb_gpu_carve_storage(net, work, 4 * cells) : self->layers[0].dgates;
    l->sums =
        apart || i == 0 ? lb_gpu_carve_real(net, work, LB_CELL_PARTS * rows) : self->layers[0].sums;
    if (!top)
        l->dy = lb_gpu_carve_storage(net, work, cells);
    l->dw_ih = lb_gpu_carve_real(net, &parts->gradients, rows * l->input);
    l->dw_hh = lb_gpu_carve_real(net, &parts->gradients, rows * p->hidden);
    l->db = lb_gpu_carve_storage(net, &parts->gradients, rows);
}

/* lb_gpu_carve */
static void *carve(void *state, struct lb_gpu_parts *parts)
{
    struct lb_fused *self = state;
    void *scratch = lb_gpu_network_carve(&self->net, parts);
    self->fault = lb_arena_take(&parts->weights, sizeof(*self->fault));
    for (int64_t i = 0; i < self->net.problem->layers; i++)
        carve_layer(self, parts, i);
    return scratch;
}

/* Works without a device too, for --explain. Where a device is known, only plans that it can run
 * are kept. */
static enum lb_status fused_create(void *state, const struct lb_problem *problem,
                                   const struct lb_exec_config *config, struct lb_error *err)
{
    struct lb_fused *self = state;
    const struct lb_device_info *device = lb_device_known(NULL);
    const char *variant = variant_of(config);
    bool present = device && !device->modelled;
    struct lb_fused_view view;
    struct lb_problem timed = *problem; /* what is chosen and tuned for */
    if (config->forward_only)
        timed.pass = LB_FORWARD;
    const int passes = lb_has_backward(problem) ? 2 : 1;
    const int timed_passes = lb_has_backward(&timed) ? 2 : 1;
    self->net = lb_gpu_network_make(problem, config, 1, carve);
    self->net.canonical = false;
    LB_CHECK(lb_fused_choose(&timed, device, variant, &self->choice, err));
    LB_CHECK(lb_fused_view_make(&timed, device, &view, err));
    view.graph = config->graph;
    for (int pass = 0; present && pass < timed_passes; pass++)
        LB_CHECK(use_tuned(self, &view, variant, pass == 1, err));
    for (int pass = 0; present && pass < passes; pass++)
        LB_CHECK(ready_best(self, &view, variant, pass == 1, err));
    self->chunk = lb_fused_chunk(&view, &self->choice);
    self->net.stream_count = stream_count(self);
    self->layers = calloc((size_t)problem->layers, sizeof(*self->layers));
    if (!self->layers)
        return lb_fail(err, LB_OOM, "out of memory");
    for (int64_t i = 0; i < problem->layers; i++)
        self->layers[i].input = lb_layer_input(problem, i);
    describe(self, view.machine.label);
    return LB_OK;
}

/* ---- Weights: between the canonical layout, [4H, columns] with gate after gate, and those of the
 * kernels (cuda/fused/common/weight_layout.h) ------------------------------------------------- */

/* Enqueues the packing of direction d's w_hh in the order of a plan; to: of all directions. */
static enum lb_status pack_recurrent(const struct lb_fused *self, const struct lb_fused_plan *plan,
                                     const void *w_hh, int64_t d, void *to, struct lb_error *err)
{
    const struct lb_problem *p = self->net.problem;
    const struct lb_weight_layout layout = plan->family->layout(p, plan);
    char *packed = (char *)to + (size_t)d * lb_fused_weight_bytes(p, plan);
    return lb_fused_pack(p->dtype, &layout, w_hh, packed, self->net.stream, err);
}

/* Enqueues the packing of all weights. */
static enum lb_status pack(const struct lb_fused *self, const struct lb_weights *weights,
                           struct lb_error *err)
{
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    const struct lb_weight_layout biases = lb_weight_layout_by_unit(p->hidden, 1);
    for (int64_t e = 0; e < p->layers * p->directions; e++) {
        const struct lb_fused_layer *l = &self->layers[e / p->directions];
        const struct lb_weight_layout input = lb_weight_layout_by_unit(p->hidden, l->input);
        int64_t d = e % p->directions, row = d * 4 * p->hidden;
        LB_CHECK(lb_fused_pack(p->dtype, &input, weights->w_ih[e],
                               lb_gpu_storage_at(net, l->w_ih, row * l->input), net->stream, err));
        LB_CHECK(lb_fused_pack_biases(p->dtype, &biases, weights->b_ih[e], weights->b_hh[e],
                                      lb_gpu_real_at(net, l->bias, row), net->stream, err));
        LB_CHECK(pack_recurrent(self, &self->choice.forward, weights->w_hh[e], d, l->w_hh, err));
        if (l->w_hh_t)
            LB_CHECK(
                pack_recurrent(self, &self->choice.backward, weights->w_hh[e], d, l->w_hh_t, err));
    }
    return LB_OK;
}

/* Enqueues the unpacking of all gradients of the last backward. */
static enum lb_status unpack(const struct lb_fused *self, const struct lb_gradients *gradients,
                             struct lb_error *err)
{
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    const struct lb_weight_layout recurrent = lb_weight_layout_by_unit(p->hidden, p->hidden);
    const struct lb_weight_layout biases = lb_weight_layout_by_unit(p->hidden, 1);
    for (int64_t e = 0; e < p->layers * p->directions; e++) {
        const struct lb_fused_layer *l = &self->layers[e / p->directions];
        const struct lb_weight_layout input = lb_weight_layout_by_unit(p->hidden, l->input);
        int64_t row = e % p->directions * 4 * p->hidden;
        LB_CHECK(lb_fused_unpack(p->dtype, true, &input,
                                 lb_gpu_real_at(net, l->dw_ih, row * l->input), gradients->dw_ih[e],
                                 NULL, net->stream, err));
        LB_CHECK(lb_fused_unpack(p->dtype, true, &recurrent,
                                 lb_gpu_real_at(net, l->dw_hh, row * p->hidden),
                                 gradients->dw_hh[e], NULL, net->stream, err));
        LB_CHECK(lb_fused_unpack(p->dtype, false, &biases, lb_gpu_storage_at(net, l->db, row),
                                 gradients->db_ih[e], gradients->db_hh[e], net->stream, err));
    }
    return LB_OK;
}

static enum lb_status fused_update(void *state, const struct lb_update_io *io, struct lb_error *err)
{
    LB_CHECK(unpack(state, &io->gradients, err));
    return pack(state, &io->weights, err);
}

/* Uploads all weights from the canonical layout, or, where weights is NULL, downloads the gradients
 * of the last backward to it, rounded once, by way of canonical tensors on the device. */
static enum lb_status exchange(const struct lb_fused *self, const struct lb_weights *weights,
                               const struct lb_gradients *gradients, struct lb_error *err)
{
    const struct lb_problem *p = self->net.problem;
    enum lb_status st = LB_OK;
    size_t layer_dirs = lb_layer_dir_count(p);
    void *buffer = NULL, **table = lb_needed(malloc(LB_WEIGHT_COUNT * layer_dirs * sizeof(*table)));
    LB_TRY(lb_device_space.allocate(lb_packed_bytes(p, p->dtype), &buffer, err));
    lb_packed_table(p, p->dtype, buffer, table);
    const struct lb_weights weights_there = lb_weights_of(table, layer_dirs);
    const struct lb_gradients gradients_there = lb_gradients_of(table, layer_dirs);
    if (weights) {
        LB_TRY(lb_packed_upload(p, &lb_device_space, buffer, weights, err));
        LB_TRY(pack(self, &weights_there, err));
        LB_TRY(lb_device()->synchronize(err));
    } else {
        LB_TRY(unpack(self, &gradients_there, err));
        LB_TRY(lb_packed_download(p, &lb_device_space, p->dtype, buffer, gradients, err));
    }
done:
    lb_device_space.release(buffer);
    free(table);
    return st;
}

static enum lb_status fused_gradients(void *state, const struct lb_gradients *gradients,
                                      struct lb_error *err)
{
    return exchange(state, NULL, gradients, err);
}

static enum lb_status fused_prepare(void *state, const struct lb_buffers *buffers,
                                    const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_fused *self = state;
    const struct lb_fused_fault none = {0};
    self->lengths = buffers->lengths;
    LB_CHECK(lb_gpu_network_prepare(self, buffers, weights, err));
    LB_CHECK(exchange(self, weights, NULL, err));
    return lb_device_space.upload(self->fault, &none, sizeof(none), err);
}

/* ---- Calls --------------------------------------------------------------------------------- */

static const void *layer_input(const struct lb_fused *self, int64_t layer, const void *x)
{
    return layer == 0 ? x : self->layers[layer - 1].y;
}

/* In a wavefront layers have streams of their own, each for GEMMs and recurrence. A single layer
 * that runs in chunks has its GEMMs on stream 0 and its recurrence on stream 1. */
static int stream_index_of(const struct lb_fused *self, int64_t layer)
{
    return (int)(layer % self->net.stream_count);
}

static int recurrence_stream(const struct lb_fused *self, int64_t layer)
{
    bool beside = self->net.problem->layers == 1 && self->net.stream_count > 1;
    return beside ? 1 : stream_index_of(self, layer);
}

static void *stream_of(const struct lb_fused *self, int stream_index)
{
    return lb_stream_handle(self->net.streams, stream_index);
}

/* Enqueues the clearing of a layer's scratch, on the stream of its recurrence and before this
 * waits for GEMMs, so that the clearing runs beside them. */
static enum lb_status clear_scratch(struct lb_fused *self, int64_t layer,
                                    const struct lb_fused_plan *plan, struct lb_error *err)
{
    const struct lb_problem *p = self->net.problem;
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
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    int64_t gates = 4 * p->directions * p->hidden, row = first * p->batch;
    const struct lb_gemm g = {
        .out = net->real,
        .transpose_b = true,
        .m = (end - first) * p->batch,
        .n = gates,
        .k = l->input,
        .a = lb_gpu_storage_at(net, layer_input(self, layer, x), row * l->input),
        .b = l->w_ih,
        .c = lb_gpu_real_at(net, l->gates, row * gates),
    };
    return lb_gpu_gemm(net, stream_index_of(self, layer), g, err);
}

/* Computes steps [first, end) of a layer. */
static enum lb_status forward_chunk(struct lb_fused *self, int64_t layer,
                                    const struct lb_forward_io *io, int64_t first, int64_t end,
                                    struct lb_error *err)
{
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    const struct lb_fused_plan *plan = &self->choice.forward;
    int64_t state = layer * p->directions * p->batch * p->hidden;
    const struct lb_fused_forward_args args = {
        .pre = l->gates,
        .weights = l->w_hh,
        .bias = l->bias,
        .h0 = lb_gpu_storage_at(net, io->h0, state),
        .c0 = lb_gpu_storage_at(net, io->c0, state),
        .y = l->y ? l->y : io->y,
        .hn = lb_gpu_storage_at(net, io->hn, state),
        .cn = lb_gpu_storage_at(net, io->cn, state),
        .gates = l->gates,
        .cells = l->cells,
        .lengths = net->lengths,
        LB_FUSED_COMMON_ARGS(p, l->carry, l->scratch, self->fault, first, end),
    };
    if (first == 0)
        LB_CHECK(clear_scratch(self, layer, plan, err));
    LB_CHECK(input_gemm(self, layer, io->x, first, end, err));
    LB_CHECK(lb_stream_wait(net->streams, recurrence_stream(self, layer),
                            stream_index_of(self, layer), err));
    return plan->family->launch(&plan->kernel, &args,
                                stream_of(self, recurrence_stream(self, layer)), err);
}

/* A layer's chunk follows the same chunk of the layer below. With one layer, the input GEMM of a
 * chunk runs beside the recurrence of earlier chunks. */
static enum lb_status fused_forward(void *state, const struct lb_forward_io *io,
                                    struct lb_error *err)
{
    struct lb_fused *self = state;
    const struct lb_problem *p = self->net.problem;
    LB_CHECK(lb_streams_fork(self->net.streams, err));
    for (int64_t first = 0; first < p->seq_len; first += self->chunk) {
        int64_t end = first + self->chunk < p->seq_len ? first + self->chunk : p->seq_len;
        for (int64_t i = 0; i < p->layers; i++) {
            if (i > 0)
                LB_CHECK(lb_stream_wait(self->net.streams, stream_index_of(self, i),
                                        stream_index_of(self, i - 1), err));
            LB_CHECK(forward_chunk(self, i, io, first, end, err));
        }
    }
    return lb_streams_join(self->net.streams, err);
}

/* ---- Backward ----------------------------------------------------------------------------- */

/* Returns the GEMM c [m, n] = dgates' b, whose depth is `rows` rows of dgates and of b. */
static struct lb_gemm over_rows(const struct lb_fused *self, const void *dgates, int64_t m,
                                const void *b, int64_t n, int64_t ldb, int64_t rows, void *c)
{
    const struct lb_problem *p = self->net.problem;
    return (struct lb_gemm){
        .in = p->dtype,
        .out = self->net.real,
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
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    int64_t gates = 4 * p->directions * p->hidden, row = first * p->batch;
    void *dx = layer > 0 ? self->layers[layer - 1].dy : io->dx;
    const struct lb_gemm g = {
        .out = p->dtype,
        .m = (end - first) * p->batch,
        .n = l->input,
        .k = gates,
        .a = lb_gpu_storage_at(net, l->dgates, row * gates),
        .b = l->w_ih,
        .c = lb_gpu_storage_at(net, dx, row * l->input),
    };
    return lb_gpu_gemm(net, stream_index_of(self, layer), g, err);
}

/* Returns the first batch row after `row` that is shorter, or the batch size. */
static int64_t same_length(const struct lb_fused *self, int64_t row)
{
    int64_t end = row + 1;
    while (end < self->net.problem->batch &&
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
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    int stream_index = stream_index_of(self, layer);
    int64_t h = p->hidden, width = p->directions * h, batch = p->batch;
    const void *y = lb_gpu_storage_at(net, l->y ? l->y : io->y, direction * h);
    const void *h0 =
        lb_gpu_storage_at(net, io->h0, (layer * p->directions + direction) * batch * h);
    const void *dgates = lb_gpu_storage_at(net, l->dgates, direction * 4 * h);
    void *dw = lb_gpu_real_at(net, l->dw_hh, direction * 4 * h * h);
    bool begun = end < p->seq_len;
    for (int64_t row = 0, next; first == 0 && row < batch; row = next) {
        next = direction == 0 ? batch : same_length(self, row);
        int64_t length = self->lengths ? self->lengths[row] : p->seq_len;
        int64_t time = direction == 0 ? 0 : length - 1;
        struct lb_gemm g =
            over_rows(self, lb_gpu_storage_at(net, dgates, (time * batch + row) * 4 * width), 4 * h,
                      lb_gpu_storage_at(net, h0, row * h), h, h, next - row, dw);
        g.accumulate = begun || row > 0;
        LB_CHECK(lb_stream_gemm(net->streams, stream_index, &g, err));
    }
    int64_t time = first > 0 ? first : 1; /* the later of two neighbouring times */
    int64_t of_dgates = direction == 0 ? time : time - 1, of_y = 2 * time - 1 - of_dgates;
    struct lb_gemm g = over_rows(
        self, lb_gpu_storage_at(net, dgates, of_dgates * batch * 4 * width), 4 * h,
        lb_gpu_storage_at(net, y, of_y * batch * width), h, width, (end - time) * batch, dw);
    g.accumulate = begun || first == 0;
    return lb_stream_gemm(net->streams, stream_index, &g, err);
}

/* Computes what is summed over all steps: dw_ih and dw_hh by adding times [first, end), of which
 * the last come first, and db in the end. */
static enum lb_status weight_gradients(struct lb_fused *self, int64_t layer,
                                       const struct lb_backward_io *io, int64_t first, int64_t end,
                                       struct lb_error *err)
{
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    int64_t gates = 4 * p->directions * p->hidden, row = first * p->batch;
    int stream_index = stream_index_of(self, layer);
    struct lb_gemm dw =
        over_rows(self, lb_gpu_storage_at(net, l->dgates, row * gates), gates,
                  lb_gpu_storage_at(net, layer_input(self, layer, io->x), row * l->input), l->input,
                  l->input, (end - first) * p->batch, l->dw_ih);
    dw.accumulate = end < p->seq_len;
    LB_CHECK(lb_stream_gemm(net->streams, stream_index, &dw, err));
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
    const struct lb_gpu_network *net = &self->net;
    const struct lb_problem *p = net->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    const struct lb_fused_plan *plan = &self->choice.backward;
    int64_t state = layer * p->directions * p->batch * p->hidden;
    const struct lb_fused_backward_args args = {
        .gates = l->gates,
        .cells = l->cells,
        .weights = l->w_hh_t,
        .c0 = lb_gpu_storage_at(net, io->c0, state),
        .dy = l->dy ? l->dy : io->dy,
        .dhn = lb_gpu_storage_at(net, io->dhn, state),
        .dcn = lb_gpu_storage_at(net, io->dcn, state),
        .dgates = l->dgates,
        .dh0 = lb_gpu_storage_at(net, io->dh0, state),
        .dc0 = lb_gpu_storage_at(net, io->dc0, state),
        .lengths = net->lengths,
        LB_FUSED_COMMON_ARGS(p, l->carry, l->scratch, self->fault, first, end),
    };
    if (end == p->seq_len)
        LB_CHECK(clear_scratch(self, layer, plan, err));
    LB_CHECK(plan->family->launch(&plan->kernel, &args,
                                  stream_of(self, recurrence_stream(self, layer)), err));
    LB_CHECK(lb_stream_wait(net->streams, stream_index_of(self, layer),
                            recurrence_stream(self, layer), err));
    return input_gradient(self, layer, io, first, end, err);
}

static enum lb_status fused_backward(void *state, const struct lb_backward_io *io,
                                     struct lb_error *err)
{
    struct lb_fused *self = state;
    const struct lb_problem *p = self->net.problem;
    bool wavefront = p->layers > 1 && self->chunk < p->seq_len;
    int64_t first = (p->seq_len - 1) / self->chunk * self->chunk;
    LB_CHECK(lb_streams_fork(self->net.streams, err));
    for (; first >= 0; first -= self->chunk) {
        int64_t end = first + self->chunk < p->seq_len ? first + self->chunk : p->seq_len;
        for (int64_t i = p->layers - 1; i >= 0; i--) {
            if (i + 1 < p->layers)
                LB_CHECK(lb_stream_wait(self->net.streams, stream_index_of(self, i),
                                        stream_index_of(self, i + 1), err));
            LB_CHECK(backward_chunk(self, i, io, first, end, err));
            if (!wavefront) /* layers share dgates */
                LB_CHECK(weight_gradients(self, i, io, first, end, err));
        }
    }
    for (int64_t i = p->layers - 1; wavefront && i >= 0; i--)
        LB_CHECK(weight_gradients(self, i, io, 0, p->seq_len, err));
    return lb_streams_join(self->net.streams, err);
}

/* ---- The implementation -------------------------------------------------------------------- */

static enum lb_status fused_check(const void *state, struct lb_error *err)
{
    const struct lb_fused *self = state;
    struct lb_fused_fault fault;
    LB_CHECK(lb_device_space.download(&fault, self->fault, sizeof(fault), err));
    if (fault.raised)
        return lb_fail(err, LB_FAILED,
                       "at step %d block %d gave up waiting for block %d: not all blocks of the "
                       "launch run at the same time, or one has stopped",
                       fault.step, fault.block, fault.awaited);
    return LB_OK;
}

static const char *fused_describe(const void *state)
{
    const struct lb_fused *self = state;
    return self->description;
}

static void fused_destroy(void *state)
{
    struct lb_fused *self = state;
    lb_gpu_network_destroy(&self->net);
    free(self->layers);
}

const struct lb_impl lb_impl_fused = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "fused",
    .summary = "own kernels: weights stay in registers, or GEMM and cell in one kernel",
    .memory = LB_DEVICE,
    .traits = LB_DETERMINISTIC | LB_CAPTURABLE | LB_INSTANCES | LB_PLANS_ALONE,
    .state_size = sizeof(struct lb_fused),
    .variants = lb_fused_variants,
    .supports = fused_supports,
    .create = fused_create,
    .sizes = lb_gpu_network_sizes,
    .prepare = fused_prepare,
    .forward = fused_forward,
    .backward = fused_backward,
    .gradients = fused_gradients,
    .describe = fused_describe,
    .destroy = fused_destroy,
    .check = fused_check,
    .update = fused_update,
};
