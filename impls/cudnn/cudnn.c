/* cudnn: NVIDIA's RNN. A variant is one of its algorithms; auto times all that take the problem. */
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "device/timer.h"
#include "device/weight_packing.h"
#include "impls/cudnn/rnn.h"
#include "reference/case_tensors.h"

enum { TIMED_CALLS = 3 };

struct candidate {
    enum lb_cudnn_variant variant;
    enum lb_status status; /* LB_OK while it takes the problem */
    struct lb_error why;   /* when it does not */
    struct lb_cudnn_rnn rnn;
    double best_ns; /* NaN: not timed */
};

struct cudnn {
    const struct lb_problem *problem;
    struct lb_cudnn_shapes shapes;
    bool chooses;      /* the variant is auto */
    bool graph;        /* what is measured is a replayed graph */
    bool forward_only; /* what is measured is the forward call of training */
    struct candidate candidates[CUDNN_VARIANT_COUNT];
    int count;
    struct candidate *chosen; /* NULL until it is known */
    struct lb_buffers memory;
    char text[512];
};

static enum lb_status cudnn_supports(const struct lb_problem *problem,
                                     const struct lb_exec_config *config, struct lb_error *why)
{
    if (config->graph && problem->ragged)
        return lb_fail(
            why, LB_UNSUPPORTED,
            "launch graph, ragged: cuDNN takes the rows' lengths from host memory during "
            "a call, which a replayed graph may read too late");
    return lb_cudnn_rules_check(lb_cudnn_variant_of(config->variant), problem,
                                lb_device_known(NULL), why);
}

/* Says which algorithm PyTorch would choose. */
static void cudnn_note(const struct lb_problem *problem, const struct lb_exec_config *config,
                       char *text, size_t size)
{
    struct lb_error why = {""};
    enum lb_cudnn_variant variant = lb_cudnn_variant_of(config->variant);
    enum lb_cudnn_variant usual = lb_cudnn_rules_usual(problem, lb_device_known(NULL), &why);
    snprintf(text, size, "PyTorch's rule picks %s%s: %.200s%s",
             variant == usual ? "this" : lb_cudnn_variant_names[usual],
             variant == usual || variant == CUDNN_AUTO ? "" : ", not this", why.text,
             variant == CUDNN_PERSIST_DYNAMIC ? "; it never picks persist_dynamic" : "");
}

/* Asks the library about one algorithm, after the rules. */
static void try_candidate(struct cudnn *self, enum lb_cudnn_variant variant)
{
    struct candidate *c = &self->candidates[self->count++];
    *c = (struct candidate){.variant = variant, .best_ns = (double)NAN};
    c->status = lb_cudnn_rules_check(variant, self->problem, lb_device_known(NULL), &c->why);
    if (c->status == LB_OK)
        c->status = lb_cudnn_rnn_create(&self->shapes, variant, &c->rnn, &c->why);
}

/* LB_OK where a candidate takes the problem and none has failed. A probe that failed, rather than
 * said no, is an error: an algorithm must not vanish from a comparison unnoticed. */
static enum lb_status check_candidates(const struct cudnn *self, struct lb_error *err)
{
    const struct candidate *worst = &self->candidates[0];
    bool any = false;
    for (int i = 0; i < self->count; i++) {
        const struct candidate *c = &self->candidates[i];
        any = any || c->status == LB_OK;
        if (c->status != LB_OK && c->status != LB_UNSUPPORTED)
            worst = c;
    }
    if (any && (worst->status == LB_OK || worst->status == LB_UNSUPPORTED))
        return LB_OK;
    return lb_fail(err, worst->status, "%s: %.199s", lb_cudnn_variant_names[worst->variant],
                   worst->why.text);
}

static enum lb_status cudnn_create(void *state, const struct lb_problem *problem,
                                   const struct lb_exec_config *config, struct lb_error *err)
{
    struct cudnn *self = state;
    enum lb_cudnn_variant variant = lb_cudnn_variant_of(config->variant);
    self->problem = problem;
    self->chooses = variant == CUDNN_AUTO;
    self->graph = config->graph;
    self->forward_only = config->forward_only;
    LB_CHECK(lb_cudnn_shapes_create(problem, config->stream, &self->shapes, err));
    for (int v = CUDNN_STANDARD; v < CUDNN_VARIANT_COUNT; v++)
        if (self->chooses || v == (int)variant)
            try_candidate(self, (enum lb_cudnn_variant)v);
    return check_candidates(self, err);
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Bytes of the lengths [B], which lie behind the weights. */
static size_t lengths_bytes(const struct lb_problem *p)
{
    return p->ragged ? (size_t)p->batch * sizeof(int32_t) : 0;
}

/* The most that a candidate needs. */
static struct lb_sizes sizes_of(const struct cudnn *self)
{
    struct lb_sizes most = {0};
    for (int i = 0; i < self->count; i++) {
        const struct lb_cudnn_rnn *rnn = &self->candidates[i].rnn;
        most.weights = max_size(most.weights, lb_arena_round_up(rnn->weights));
        most.reserve = max_size(most.reserve, rnn->reserve);
        most.workspace = max_size(most.workspace, rnn->workspace);
        if (lb_has_backward(self->problem))
            most.gradients = max_size(most.gradients, rnn->weights);
    }
    return most;
}

/* "persist_static; PyTorch's rule: standard; standard 4.01 ms; persist_static 1.98 ms; ..." */
static void describe_choice(struct cudnn *self)
{
    char *text = self->text;
    size_t size = sizeof(self->text);
    enum lb_cudnn_variant usual = lb_cudnn_rules_usual(self->problem, lb_device_known(NULL), NULL);
    const struct candidate *only = self->chooses ? self->chosen : &self->candidates[0];
    snprintf(text, size, "%s; PyTorch's rule: %s",
             only ? lb_cudnn_variant_names[only->variant] : "the fastest, which is not timed yet",
             lb_cudnn_variant_names[usual]);
    for (int i = 0; self->chooses && i < self->count; i++) {
        const struct candidate *c = &self->candidates[i];
        const char *name = lb_cudnn_variant_names[c->variant];
        if (c->status != LB_OK)
            lb_append(text, size, "; %s refused: %.90s", name, c->why.text);
        else if (!isnan(c->best_ns))
            lb_append(text, size, "; %s %.4g ms", name, c->best_ns / 1e6);
    }
}

static enum lb_status cudnn_sizes(void *state, struct lb_sizes *sizes, struct lb_error *err)
{
    struct cudnn *self = state;
    (void)err;
    *sizes = sizes_of(self);
    sizes->weights += lengths_bytes(self->problem);
    describe_choice(self);
    return LB_OK;
}

/* ---- Choosing ------------------------------------------------------------------------------ */

/* Tensors of zeros to time on. */
static enum lb_status open_trial(const struct lb_problem *p, struct lb_tensors *trial,
                                 struct lb_error *err)
{
    LB_CHECK(lb_tensors_create(p, &lb_device_space, trial, err));
    for (int t = 0; t < LB_TENSOR_COUNT; t++)
        if (trial->at[0][t])
            LB_CHECK(lb_device()->fill(trial->at[0][t], 0, trial->bytes[t], err));
    return LB_OK;
}

struct timed_call {
    const struct cudnn *self;
    const struct candidate *candidate;
    struct lb_forward_io forward;
    struct lb_backward_io backward;
};

/* Backward alone needs a fresh reserve, and filling it is not measured. */
static enum lb_status call_before(const struct timed_call *t, struct lb_error *err)
{
    if (t->self->problem->pass != LB_BACKWARD)
        return LB_OK;
    return lb_cudnn_rnn_forward(&t->candidate->rnn, &t->self->memory, &t->forward, err);
}

/* lb_call: what the case measures. */
static enum lb_status call_measured(void *user, struct lb_error *err)
{
    const struct timed_call *t = user;
    const struct lb_problem *p = t->self->problem;
    if (p->pass != LB_BACKWARD)
        LB_CHECK(lb_cudnn_rnn_forward(&t->candidate->rnn, &t->self->memory, &t->forward, err));
    if (lb_has_backward(p) && !t->self->forward_only)
        LB_CHECK(lb_cudnn_rnn_backward(&t->candidate->rnn, &t->self->memory, &t->backward, err));
    return LB_OK;
}

/* The best of a few calls, after one to warm up, launched or replayed as the case's will be. */
static enum lb_status time_candidate(const struct cudnn *self, struct candidate *c,
                                     const struct lb_weights *weights,
                                     const struct lb_tensors *trial, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double best_ns = (double)INFINITY;
    struct timed_call call = {self, c, lb_forward_io(trial->at[0]), lb_backward_io(trial->at[0])};
    struct lb_timer timer = {0};
    LB_TRY(lb_cudnn_rnn_load(&c->rnn, &self->memory, weights, err));
    LB_TRY(lb_timer_create(LB_DEVICE, false, &timer, err));
    LB_TRY(call_before(&call, err));
    LB_TRY(call_measured(&call, err));
    if (self->graph)
        LB_TRY(lb_timer_capture(&timer, call_measured, &call, err));
    for (int i = 0; i < TIMED_CALLS; i++) {
        double ns;
        LB_TRY(call_before(&call, err));
        LB_TRY(lb_timer_measure(&timer, call_measured, &call, 1, &ns, err));
        best_ns = fmin(best_ns, ns);
    }
    c->best_ns = best_ns;
done:
    lb_timer_destroy(&timer);
    return st;
}

/* Times every candidate that takes the problem. Where there is no memory for that, PyTorch's choice
 * is used if it is among them, else the first. */
static enum lb_status choose(struct cudnn *self, const struct lb_weights *weights,
                             struct lb_error *err)
{
    struct lb_tensors trial = {0};
    enum lb_status st = LB_OK;
    enum lb_cudnn_variant usual = lb_cudnn_rules_usual(self->problem, lb_device_known(NULL), NULL);
    struct lb_error no_room = {""};
    bool room = open_trial(self->problem, &trial, &no_room) == LB_OK;
    if (room)
        LB_TRY(lb_device_warm_up(err));
    for (int i = 0; i < self->count; i++) {
        struct candidate *c = &self->candidates[i];
        if (c->status == LB_OK && room)
            c->status = time_candidate(self, c, weights, &trial, &c->why);
        if (c->status == LB_FAILED || lb_device()->lost())
            LB_TRY(lb_fail(err, LB_FAILED, "%s: %.199s", lb_cudnn_variant_names[c->variant],
                           room ? c->why.text : no_room.text));
        if (c->status != LB_OK)
            continue;
        bool better =
            room ? self->chosen && c->best_ns < self->chosen->best_ns : c->variant == usual;
        if (!self->chosen || better)
            self->chosen = c;
    }
    if (!self->chosen)
        LB_TRY(lb_fail(err, LB_UNSUPPORTED, "no algorithm runs it; %s: %s",
                       lb_cudnn_variant_names[self->candidates[0].variant],
                       self->candidates[0].why.text));
done:
    lb_tensors_destroy(&trial);
    return st;
}

static enum lb_status cudnn_prepare(void *state, const struct lb_buffers *buffers,
                                    const struct lb_weights *weights, struct lb_error *err)
{
    struct cudnn *self = state;
    self->memory = *buffers;
    if (self->problem->ragged) {
        void *lengths = (char *)buffers->weights + sizes_of(self).weights;
        LB_CHECK(
            lb_device_space.upload(lengths, buffers->lengths, lengths_bytes(self->problem), err));
        LB_CHECK(lb_cudnn_shapes_set_lengths(&self->shapes, buffers->lengths, lengths, err));
    }
    if (self->chooses)
        LB_CHECK(choose(self, weights, err));
    else
        self->chosen = &self->candidates[0];
    LB_CHECK(lb_cudnn_rnn_load(&self->chosen->rnn, &self->memory, weights, err));
    describe_choice(self);
    return LB_OK;
}

static enum lb_status cudnn_forward(void *state, const struct lb_forward_io *io,
                                    struct lb_error *err)
{
    const struct cudnn *self = state;
    return lb_cudnn_rnn_forward(&self->chosen->rnn, &self->memory, io, err);
}

static enum lb_status cudnn_backward(void *state, const struct lb_backward_io *io,
                                     struct lb_error *err)
{
    const struct cudnn *self = state;
    return lb_cudnn_rnn_backward(&self->chosen->rnn, &self->memory, io, err);
}

static enum lb_status cudnn_gradients(void *state, const struct lb_gradients *gradients,
                                      struct lb_error *err)
{
    const struct cudnn *self = state;
    return lb_cudnn_rnn_fetch(&self->chosen->rnn, &self->memory, gradients, err);
}

static const char *cudnn_describe(const void *state)
{
    const struct cudnn *self = state;
    return self->text;
}

static void cudnn_destroy(void *state)
{
    struct cudnn *self = state;
    for (int i = 0; i < self->count; i++)
        lb_cudnn_rnn_destroy(&self->candidates[i].rnn);
    lb_cudnn_shapes_destroy(&self->shapes);
}

const struct lb_impl lb_impl_cudnn = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "cudnn",
    .summary = "cuDNN's RNN, one variant per algorithm; auto is the fastest that takes the problem",
    .memory = LB_DEVICE,
    .traits = LB_CAPTURABLE | LB_INSTANCES,
    .state_size = sizeof(struct cudnn),
    .variants = lb_cudnn_variant_names,
    .supports = cudnn_supports,
    .create = cudnn_create,
    .sizes = cudnn_sizes,
    .prepare = cudnn_prepare,
    .forward = cudnn_forward,
    .backward = cudnn_backward,
    .gradients = cudnn_gradients,
    .describe = cudnn_describe,
    .destroy = cudnn_destroy,
    .note = cudnn_note,
    .cells = 1u << LB_CELL_PROJECTION,
};
