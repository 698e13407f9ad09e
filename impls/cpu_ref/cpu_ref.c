/* cpu_ref: the oracle behind the interface of an implementation. It takes any size and dtype,
 * computes in double, and runs on one thread. */
#include <string.h>

#include "api/impl.h"
#include "reference/oracle.h"

/* The oracle's arrays lie in the harness's buffers: the weights in `weights`, the results of
 * forward that backward reads in `reserve`, and everything else in `workspace`. */
struct cpu_ref {
    struct lb_problem problem;
    struct lb_oracle oracle;
    double *x, *h0, *c0, *dy, *dhn, *dcn; /* the oracle's inputs, in the workspace */
    double *mask;
    double *staging;   /* the canonical weights of one layer_dir, in the workspace */
    double *gradients; /* per layer_dir: dw_ih [4H, I_l], dw_hh [4H, P], db [4H], dw_cell */
};

static size_t input_of(const struct lb_problem *p, size_t layer_dir)
{
    return (size_t)lb_layer_input(p, (int64_t)layer_dir / p->directions);
}

/* Number of weights of one layer_dir, with both biases. */
static size_t weights_count(const struct lb_problem *p, size_t layer_dir)
{
    size_t H = (size_t)p->hidden, P = (size_t)lb_h_size(p);
    return 4 * H * (input_of(p, layer_dir) + P + 2) + lb_cell_weight_count(p);
}

static size_t largest_weights_count(const struct lb_problem *p)
{
    size_t first = weights_count(p, 0), last = weights_count(p, lb_layer_dir_count(p) - 1);
    return first > last ? first : last;
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

/* Returns base + *at and advances *at by count doubles. With base NULL it only counts. */
static double *carve(double *base, size_t *at, size_t count)
{
    double *array = base ? base + *at : NULL;
    *at += count;
    return array;
}

/* Sets the pointers to the arrays that backward reads; returns how many doubles they take. */
static size_t lay_out_reserve(struct cpu_ref *ref, double *base)
{
    struct lb_lstm_counts n = lb_lstm_counts(&ref->problem);
    struct lb_oracle *oracle = &ref->oracle;
    size_t at = 0;
    oracle->y = carve(base, &at, n.y);
    oracle->gates = carve(base, &at, n.gates);
    oracle->cells = n.cells ? carve(base, &at, n.cells) : NULL;
    oracle->kept = n.kept ? carve(base, &at, n.kept) : NULL;
    oracle->norm = n.norm ? carve(base, &at, n.norm) : NULL;
    return at;
}

static size_t lay_out_workspace(struct cpu_ref *ref, double *base)
{
    struct lb_lstm_counts n = lb_lstm_counts(&ref->problem);
    struct lb_oracle *oracle = &ref->oracle;
    size_t at = lb_trains(&ref->problem) ? 0 : lay_out_reserve(ref, base);
    oracle->x = ref->x = carve(base, &at, n.x);
    oracle->h0 = ref->h0 = carve(base, &at, n.h);
    oracle->c0 = ref->c0 = carve(base, &at, n.state);
    oracle->mask = ref->mask = n.mask ? carve(base, &at, n.mask) : NULL;
    oracle->scratch = n.scratch ? carve(base, &at, n.scratch) : NULL;
    oracle->hn = carve(base, &at, n.h);
    oracle->cn = carve(base, &at, n.state);
    if (lb_has_backward(&ref->problem)) {
        oracle->dy = ref->dy = carve(base, &at, n.between);
        oracle->dhn = ref->dhn = carve(base, &at, n.h);
        oracle->dcn = ref->dcn = carve(base, &at, n.state);
        oracle->dx = carve(base, &at, n.x);
        oracle->dh0 = carve(base, &at, n.h);
        oracle->dc0 = carve(base, &at, n.state);
        oracle->between = carve(base, &at, n.between);
        oracle->operand = carve(base, &at, n.operand);
        oracle->dkept = n.dkept ? carve(base, &at, n.dkept) : NULL;
    }
    size_t staging = 0; /* only prepare uses it, so it may overlap all other arrays */
    ref->staging = carve(base, &staging, largest_weights_count(&ref->problem));
    return at > staging ? at : staging;
}

static enum lb_status cpu_ref_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    size_t gradients = 0;
    (void)err;
    for (size_t ld = 0; lb_has_backward(p) && ld < lb_layer_dir_count(p); ld++)
        gradients +=
            weights_count(p, ld) - 4 * (size_t)p->hidden; /* both biases have the same gradient */
    sizes->weights = lb_lstm_counts(p).weights * sizeof(double);
    sizes->gradients = gradients * sizeof(double);
    sizes->reserve = lb_trains(p) ? lay_out_reserve(ref, NULL) * sizeof(double) : 0;
    sizes->workspace = lay_out_workspace(ref, NULL) * sizeof(double);
    return LB_OK;
}

static enum lb_status cpu_ref_prepare(void *self, const struct lb_buffers *buffers,
                                      const struct lb_weights *weights, struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    size_t H = (size_t)p->hidden, P = (size_t)lb_h_size(p), own = lb_cell_weight_count(p);
    (void)err;
    ref->oracle =
        (struct lb_oracle){.problem = *p, .lengths = buffers->lengths, .weights = buffers->weights};
    ref->gradients = buffers->gradients;
    if (lb_trains(p))
        lay_out_reserve(ref, buffers->reserve);
    lay_out_workspace(ref, buffers->workspace);

    for (size_t ld = 0; ld < lb_layer_dir_count(p); ld++) {
        double *w_ih = ref->staging, *w_hh = w_ih + 4 * H * input_of(p, ld);
        double *b_ih = w_hh + 4 * H * P, *b_hh = b_ih + 4 * H, *w_cell = b_hh + 4 * H;
        lb_load(p->dtype, weights->w_ih[ld], w_ih, 4 * H * input_of(p, ld));
        lb_load(p->dtype, weights->w_hh[ld], w_hh, 4 * H * P);
        lb_load(p->dtype, weights->b_ih[ld], b_ih, 4 * H);
        lb_load(p->dtype, weights->b_hh[ld], b_hh, 4 * H);
        if (own > 0)
            lb_load(p->dtype, weights->w_cell[ld], w_cell, own);
        lb_oracle_pack(&ref->oracle, ld, w_ih, w_hh, b_ih, b_hh, w_cell);
    }
    return LB_OK;
}

static enum lb_status cpu_ref_forward(void *self, const struct lb_forward_io *io,
                                      struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    struct lb_lstm_counts n = lb_lstm_counts(p);
    size_t last = n.y / (size_t)p->layers;
    (void)err;
    lb_load(p->dtype, io->x, ref->x, n.x);
    lb_load(p->dtype, io->h0, ref->h0, n.h);
    lb_load(p->dtype, io->c0, ref->c0, n.state);
    if (n.mask > 0)
        lb_load(p->dtype, io->mask, ref->mask, n.mask);
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
    size_t H = (size_t)p->hidden, P = (size_t)lb_h_size(p);
    double *at = ref->gradients;
    (void)err;
    lb_load(p->dtype, io->x, ref->x,
            n.x); /* the workspace may have been overwritten since forward */
    lb_load(p->dtype, io->h0, ref->h0, n.h);
    lb_load(p->dtype, io->c0, ref->c0, n.state);
    if (n.mask > 0)
        lb_load(p->dtype, io->mask, ref->mask, n.mask);
    lb_load(p->dtype, io->dy, ref->dy, n.between);
    lb_load(p->dtype, io->dhn, ref->dhn, n.h);
    lb_load(p->dtype, io->dcn, ref->dcn, n.state);
    lb_oracle_backward(&ref->oracle);
    lb_store(p->dtype, io->dx, ref->oracle.dx, n.x);
    lb_store(p->dtype, io->dh0, ref->oracle.dh0, n.h);
    lb_store(p->dtype, io->dc0, ref->oracle.dc0, n.state);
    for (size_t ld = 0; ld < lb_layer_dir_count(p); ld++) {
        double *dw_hh = at + 4 * H * input_of(p, ld), *db = dw_hh + 4 * H * P;
        lb_oracle_weight_gradients(&ref->oracle, ld, NULL, at, dw_hh, db, db + 4 * H);
        at = db + 4 * H + lb_cell_weight_count(p);
    }
    return LB_OK;
}

static enum lb_status cpu_ref_gradients(void *self, const struct lb_gradients *gradients,
                                        struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    size_t H = (size_t)p->hidden, P = (size_t)lb_h_size(p), own = lb_cell_weight_count(p);
    const double *at = ref->gradients;
    (void)err;
    for (size_t ld = 0; ld < lb_layer_dir_count(p); ld++) {
        const double *dw_hh = at + 4 * H * input_of(p, ld), *db = dw_hh + 4 * H * P;
        lb_store(p->dtype, gradients->dw_ih[ld], at, 4 * H * input_of(p, ld));
        lb_store(p->dtype, gradients->dw_hh[ld], dw_hh, 4 * H * P);
        lb_store(p->dtype, gradients->db_ih[ld], db, 4 * H);
        lb_store(p->dtype, gradients->db_hh[ld], db, 4 * H);
        if (own > 0)
            lb_store(p->dtype, gradients->dw_cell[ld], db + 4 * H, own);
        at = db + 4 * H + own;
    }
    return LB_OK;
}

static const char *cpu_ref_describe(const void *self)
{
    (void)self;
    return "plain C, computed in double";
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
    .traits = LB_DETERMINISTIC | LB_REFERENCE,
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
