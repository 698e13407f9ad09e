/* LSTMs that are wrong on purpose: the compile-time name FAULT says how; with FAULT=none the LSTM
 * is correct. Tests check that the comparison with the oracle finds each fault, and none in `none`.
 *
 * It is a plain LSTM: loops over elements in double, one layer, one direction, full lengths, tanh.
 * It is slow and shares no code with the oracle, so that `none` also checks the oracle. */
#include <math.h>
#include <stdlib.h>

#include "faulty.h"

enum fault {
    none,
    swapped_gates,        /* reads the weights in the gate order i g f o */
    stale_h,              /* the recurrence uses h of two steps before instead of one */
    unwritten_tail,       /* the last element of y is not written */
    wrong_after_step_100, /* no bias from step 100 on */
    wrong_middle_row,     /* for B > 16, one batch row lacks the last term of its dot products */
    zero_gate_gradient,   /* the weight gradients of the forget gate are zero */
    dropped_row_in_dw,    /* the weight gradients lack the last batch row */
    dw_in_first_call,     /* the weight gradients stay those of the first backward call */
    dw_in_gradients,      /* `gradients`, which is not timed, computes the weight gradients */
    hides_overflow,       /* stores the largest number of f16 where a gradient overflows */
    past_workspace,       /* writes one element behind the workspace that it asked for */
    forgets_48_steps,    /* y of the second half knows nothing from before the 48 steps before it */
    truncated_backward,  /* gradients of the first steps lack what is more than 48 steps later */
    nan_beyond_6,        /* gates are NaN where their pre-activation is beyond 6 */
    nan_beyond_20,       /* or beyond 20 */
    idle_after_first,    /* all forward calls after the first do nothing */
    idle_update,         /* an update does nothing */
    update_dirty,        /* an update does nothing when no backward came since the last one */
    update_keeps_weight, /* an update leaves one recurrent weight as it was */
    update_loses_a_gate, /* an update leaves out the gradients of the output gate */
    update_writes_weights, /* an update changes the weights that it reads */
    update_in_forward,     /* the next forward call converts the weights, not the update */
    y_in_backward          /* in training, backward writes the outputs of forward */
};

static const enum fault fault = FAULT;

/* The state of a case. The arrays lie in the harness's buffers. */
struct broken {
    struct lb_problem problem;
    size_t T, B, I, H;
    int calls;
    double *w_ih, *w_hh, *bias; /* [4H, I], [4H, H], [4H] */
    double *dw_ih, *dw_hh, *db;
    double *x;            /* [T, B, I] */
    double *h, *c;        /* [T + 1, B, H]: the initial state, then the state after each step */
    double *gates;        /* [T, B, 4H] */
    double *dy, *dh, *dc; /* [T, B, H], [B, H], [B, H] */
    double *dx;           /* [T, B, I] */
    struct lb_forward_io outputs;     /* of the last forward */
    size_t backwards;                 /* backward calls so far */
    size_t updated_at;                /* backward calls before the last update */
    bool updates;                     /* an update runs */
    const struct lb_weights *updated; /* of the last update, until they are converted; or NULL */
};

static size_t weight_count(const struct broken *s)
{
    return 4 * s->H * (s->I + s->H + 1);
}

static enum lb_status broken_supports(const struct lb_problem *p,
                                      const struct lb_exec_config *config, struct lb_error *why)
{
    (void)config;
    if (p->layers > 1 || p->directions > 1 || p->ragged || p->act != LB_ACT_TANH ||
        p->math != LB_IEEE)
        return lb_fail(why, LB_UNSUPPORTED, "the test plug-in has one layer and one direction");
    return LB_OK;
}

static enum lb_status broken_create(void *self, const struct lb_problem *problem,
                                    const struct lb_exec_config *config, struct lb_error *err)
{
    struct broken *s = self;
    (void)config, (void)err;
    *s = (struct broken){.problem = *problem,
                         .T = (size_t)problem->seq_len,
                         .B = (size_t)problem->batch,
                         .I = (size_t)problem->input,
                         .H = (size_t)problem->hidden};
    return LB_OK;
}

static enum lb_status broken_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    struct broken *s = self;
    size_t rows = s->T * s->B;
    (void)err;
    sizes->weights = weight_count(s) * sizeof(double);
    sizes->gradients = weight_count(s) * sizeof(double);
    sizes->reserve = (2 * (rows + s->B) * s->H + rows * 4 * s->H) * sizeof(double);
    sizes->workspace = (2 * rows * s->I + (rows + 2 * s->B) * s->H) * sizeof(double);
    return LB_OK;
}

static void lay_out(struct broken *s, const struct lb_buffers *buffers)
{
    size_t rows = s->T * s->B;
    s->w_ih = buffers->weights;
    s->w_hh = s->w_ih + 4 * s->H * s->I;
    s->bias = s->w_hh + 4 * s->H * s->H;
    s->dw_ih = buffers->gradients;
    s->dw_hh = s->dw_ih + 4 * s->H * s->I;
    s->db = s->dw_hh + 4 * s->H * s->H;
    s->h = buffers->reserve;
    s->c = s->h + (rows + s->B) * s->H;
    s->gates = s->c + (rows + s->B) * s->H;
    s->x = buffers->workspace;
    s->dx = s->x + rows * s->I;
    s->dy = s->dx + rows * s->I;
    s->dh = s->dy + rows * s->H;
    s->dc = s->dh + s->B * s->H;
}

static void pack(struct broken *s, const struct lb_weights *weights)
{
    enum lb_dtype dtype = s->problem.dtype;
    lb_load(dtype, weights->w_ih[0], s->w_ih, 4 * s->H * s->I);
    lb_load(dtype, weights->w_hh[0], s->w_hh, 4 * s->H * s->H);
    lb_load(dtype, weights->b_hh[0], s->bias, 4 * s->H);
    for (size_t j = 0; j < 4 * s->H; j++) {
        double b_ih;
        lb_load(dtype, (const char *)weights->b_ih[0] + j * lb_dtype_size(dtype), &b_ih, 1);
        s->bias[j] += b_ih;
    }
}

static enum lb_status broken_prepare(void *self, const struct lb_buffers *buffers,
                                     const struct lb_weights *weights, struct lb_error *err)
{
    (void)err;
    lay_out(self, buffers);
    pack(self, weights);
    return LB_OK;
}

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Which block of H rows of the weights belongs to a gate (0 to 3: i f g o). */
static size_t block_of(size_t gate)
{
    if (fault == swapped_gates && (gate == 1 || gate == 2))
        gate = 3 - gate;
    return gate;
}

/* The pre-activation of one gate of one hidden unit. before [H]: the h that the recurrence uses. */
static double pre_activation(const struct broken *s, size_t t, size_t b, size_t gate, size_t j,
                             const double *before)
{
    size_t row = block_of(gate) * s->H + j, terms = s->H;
    if (fault == wrong_middle_row && s->B > 16 && b == s->B / 2)
        terms--;
    double bias = fault == wrong_after_step_100 && t >= 100 ? 0 : s->bias[row];
    return bias + dot(s->w_ih + row * s->I, s->x + (t * s->B + b) * s->I, s->I) +
           dot(s->w_hh + row * s->H, before, terms);
}

static void cell(const struct broken *s, size_t t, size_t b)
{
    size_t earlier = fault == stale_h && t > 0 ? t - 1 : t; /* s->h[t] is h before step t */
    const double *before = s->h + (earlier * s->B + b) * s->H;
    for (size_t j = 0; j < s->H; j++) {
        double *gates = s->gates + (t * s->B + b) * 4 * s->H + j;
        size_t now = ((t + 1) * s->B + b) * s->H + j, last = (t * s->B + b) * s->H + j;
        for (size_t gate = 0; gate < 4; gate++) {
            double a = pre_activation(s, t, b, gate, j, before);
            gates[gate * s->H] = gate == 2 ? tanh(a) : 1 / (1 + exp(-a));
            if ((fault == nan_beyond_6 && fabs(a) > 6) || (fault == nan_beyond_20 && fabs(a) > 20))
                gates[gate * s->H] = NAN;
        }
        s->c[now] = gates[s->H] * s->c[last] + gates[0] * gates[2 * s->H];
        s->h[now] = gates[3 * s->H] * tanh(s->c[now]);
    }
}

/* Replaces the state before step T/2 by that of a sequence that begins `steps` steps earlier. */
static void forget(const struct broken *s, size_t steps)
{
    size_t state = s->B * s->H, from = s->T / 2 - steps, bytes = steps * state * sizeof(double);
    double *h = s->h + from * state, *c = s->c + from * state;
    void *kept_h = memcpy(malloc(bytes), h, bytes), *kept_c = memcpy(malloc(bytes), c, bytes);
    memset(h, 0, state * sizeof(double));
    memset(c, 0, state * sizeof(double));
    for (size_t t = from; t < s->T / 2; t++)
        for (size_t b = 0; b < s->B; b++)
            cell(s, t, b);
    memcpy(h, kept_h, bytes);
    memcpy(c, kept_c, bytes);
    free(kept_h);
    free(kept_c);
}

static void store_outputs(const struct broken *s)
{
    const struct lb_forward_io *io = &s->outputs;
    const enum lb_dtype dtype = s->problem.dtype;
    size_t state = s->B * s->H, count = s->T * state;
    lb_store(dtype, io->y, s->h + state, fault == unwritten_tail ? count - 1 : count);
    lb_store(dtype, io->hn, s->h + count, state);
    lb_store(dtype, io->cn, s->c + count, state);
}

static enum lb_status broken_forward(void *self, const struct lb_forward_io *io,
                                     struct lb_error *err)
{
    struct broken *s = self;
    enum lb_dtype dtype = s->problem.dtype;
    size_t state = s->B * s->H;
    (void)err;
    if (fault == idle_after_first && s->calls++ > 0)
        return LB_OK;
    if (s->updated)
        pack(s, s->updated);
    s->updated = NULL;
    lb_load(dtype, io->x, s->x, s->T * s->B * s->I);
    lb_load(dtype, io->h0, s->h, state);
    lb_load(dtype, io->c0, s->c, state);
    for (size_t t = 0; t < s->T; t++) {
        if (fault == forgets_48_steps && t == s->T / 2 && t > 48)
            forget(s, 48);
        for (size_t b = 0; b < s->B; b++)
            cell(s, t, b);
    }
    s->outputs = *io;
    if (fault != y_in_backward || !lb_trains(&s->problem))
        store_outputs(s);
    if (fault == past_workspace)
        s->dc[state] = 0;
    return LB_OK;
}

/* Backward of one batch row at one step: replaces its gates by the gradients of the
 * pre-activations, and dc by the gradient of the state before the step. */
static void cell_backward(const struct broken *s, size_t t, size_t b)
{
    for (size_t j = 0; j < s->H; j++) {
        double *gates = s->gates + (t * s->B + b) * 4 * s->H + j;
        double i = gates[0], f = gates[s->H], g = gates[2 * s->H], o = gates[3 * s->H];
        double c_before = s->c[(t * s->B + b) * s->H + j];
        double tanh_c = tanh(s->c[((t + 1) * s->B + b) * s->H + j]);
        double dh = s->dh[b * s->H + j] + s->dy[(t * s->B + b) * s->H + j];
        double *dc = s->dc + b * s->H + j;
        *dc += dh * o * (1 - tanh_c * tanh_c);
        gates[0] = *dc * g * i * (1 - i);
        gates[s->H] = *dc * c_before * f * (1 - f);
        gates[2 * s->H] = *dc * i * (1 - g * g);
        gates[3 * s->H] = dh * tanh_c * o * (1 - o);
        *dc *= f;
    }
}

/* Adds what one batch row at one step contributes to the gradients of one row of the weights.
 * da: gradient of the pre-activation; x [I]; h [H]. */
static void add_to_weights(const struct broken *s, size_t row, double da, const double *x,
                           const double *h)
{
    for (size_t j = 0; j < s->I; j++)
        s->dw_ih[row * s->I + j] += da * x[j];
    for (size_t j = 0; j < s->H; j++)
        s->dw_hh[row * s->H + j] += da * h[j];
    s->db[row] += da;
}

/* Passes the gradients of one batch row at one step on to its input, the step before and the
 * weights. */
static void spread(const struct broken *s, size_t t, size_t b)
{
    const double *x = s->x + (t * s->B + b) * s->I, *h = s->h + (t * s->B + b) * s->H;
    double *dx = s->dx + (t * s->B + b) * s->I, *dh = s->dh + b * s->H;
    bool counts = fault != dw_in_gradients && !(fault == dropped_row_in_dw && b == s->B - 1) &&
                  !(fault == dw_in_first_call && s->backwards > 0);
    memset(dx, 0, s->I * sizeof(double));
    memset(dh, 0, s->H * sizeof(double));
    for (size_t k = 0; k < 4 * s->H; k++) {
        size_t row = block_of(k / s->H) * s->H + k % s->H;
        double da = s->gates[(t * s->B + b) * 4 * s->H + k];
        for (size_t j = 0; j < s->I; j++)
            dx[j] += da * s->w_ih[row * s->I + j];
        for (size_t j = 0; j < s->H; j++)
            dh[j] += da * s->w_hh[row * s->H + j];
        if (counts && !(fault == zero_gate_gradient && k / s->H == 1))
            add_to_weights(s, row, da, x, h);
    }
}

/* Stores gradients [count]. */
static void store_gradients(const struct broken *s, void *to, const double *values, size_t count)
{
    const double largest = 65504; /* of f16 */
    const size_t size = lb_dtype_size(s->problem.dtype);
    lb_store(s->problem.dtype, to, values, count);
    for (size_t i = 0; i < count && fault == hides_overflow && s->problem.dtype == LB_F16; i++) {
        double most = copysign(largest, values[i]);
        if (!(fabs(values[i]) <= largest)) /* or NaN */
            lb_store(s->problem.dtype, (char *)to + i * size, &most, 1);
    }
}

static enum lb_status broken_backward(void *self, const struct lb_backward_io *io,
                                      struct lb_error *err)
{
    struct broken *s = self;
    enum lb_dtype dtype = s->problem.dtype;
    size_t state = s->B * s->H;
    (void)err;
    lb_load(dtype, io->x, s->x, s->T * s->B * s->I);
    lb_load(dtype, io->dy, s->dy, s->T * state);
    lb_load(dtype, io->dhn, s->dh, state);
    lb_load(dtype, io->dcn, s->dc, state);
    if (!(fault == dw_in_first_call && s->backwards > 0))
        memset(s->dw_ih, 0, weight_count(s) * sizeof(double));
    for (size_t t = s->T; t-- > 0;) {
        if (fault == truncated_backward && t + 1 < s->T && (s->T - t) % 48 == 0) {
            memset(s->dh, 0, state * sizeof(double));
            memset(s->dc, 0, state * sizeof(double));
        }
        for (size_t b = 0; b < s->B; b++) {
            cell_backward(s, t, b);
            spread(s, t, b);
        }
    }
    s->backwards++;
    if (fault == y_in_backward)
        store_outputs(s);
    store_gradients(s, io->dx, s->dx, s->T * s->B * s->I);
    store_gradients(s, io->dh0, s->dh, state);
    store_gradients(s, io->dc0, s->dc, state);
    return LB_OK;
}

/* Sums the weight gradients over all steps and rows. */
static void sum_gradients(const struct broken *s)
{
    memset(s->dw_ih, 0, weight_count(s) * sizeof(double));
    for (size_t row = 0; row < s->T * s->B; row++)
        for (size_t k = 0; k < 4 * s->H; k++)
            add_to_weights(s, k, s->gates[row * 4 * s->H + k], s->x + row * s->I,
                           s->h + row * s->H);
}

static enum lb_status broken_gradients(void *self, const struct lb_gradients *gradients,
                                       struct lb_error *err)
{
    struct broken *s = self;
    const size_t gates = fault == update_loses_a_gate && s->updates ? 3 : 4;
    (void)err;
    if (fault == dw_in_gradients)
        sum_gradients(s);
    store_gradients(s, gradients->dw_ih[0], s->dw_ih, gates * s->H * s->I);
    store_gradients(s, gradients->dw_hh[0], s->dw_hh, 4 * s->H * s->H);
    store_gradients(s, gradients->db_ih[0], s->db, 4 * s->H);
    store_gradients(s, gradients->db_hh[0], s->db, 4 * s->H);
    return LB_OK;
}

static enum lb_status broken_update(void *self, const struct lb_update_io *io, struct lb_error *err)
{
    struct broken *s = self;
    double kept = s->w_hh[0];
    if (fault == idle_update ||
        (fault == update_dirty && s->backwards > 0 && s->updated_at == s->backwards))
        return LB_OK;
    s->updated_at = s->backwards;
    if (fault == update_in_forward)
        s->updated = &io->weights;
    else
        pack(s, &io->weights);
    if (fault == update_keeps_weight)
        s->w_hh[0] = kept;
    if (fault == update_writes_weights)
        memset((void *)(uintptr_t)io->weights.b_ih[0], 0, lb_dtype_size(s->problem.dtype));
    s->updates = true;
    enum lb_status st = broken_gradients(self, &io->gradients, err);
    s->updates = false;
    return st;
}

static void broken_destroy(void *self)
{
    (void)self;
}

static const struct lb_impl impl = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "broken_" TEXT(FAULT),
    .summary = "test plug-in: a plain LSTM that is wrong in one way",
    .memory = LB_HOST,
    .traits =
        FAULT == dw_in_first_call ? 0 : LB_DETERMINISTIC, /* else its result hash would differ
                                                             between calls and reveal the fault */
    .state_size = sizeof(struct broken),
    .supports = broken_supports,
    .create = broken_create,
    .sizes = broken_sizes,
    .prepare = broken_prepare,
    .forward = broken_forward,
    .backward = broken_backward,
    .gradients = broken_gradients,
    .destroy = broken_destroy,
    .update = broken_update,
};

const struct lb_impl *lb_plugin(uint32_t abi)
{
    return abi == LB_IMPL_ABI ? &impl : NULL;
}
