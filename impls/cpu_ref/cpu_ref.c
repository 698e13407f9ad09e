/* cpu_ref: the oracle behind the interface of an implementation. It takes any size and dtype,
 * computes in double, and runs on one thread. int8 is the harness's evaluation of its scheme. */
#include <stddef.h>
#include <string.h>

#include "api/impl.h"
#include "device/weight_packing.h"
#include "reference/rounded_lstm.h"

/* The oracle's arrays lie in the harness's buffers: the weights in `weights`, the results of
 * forward that backward reads in `reserve`, and everything else in `workspace`. */
struct cpu_ref {
    struct lb_problem problem;
    struct lb_oracle oracle;
    double *staging;   /* the canonical weights of one layer_dir, in the workspace */
    double *gradients; /* of all layer_dirs: see lb_gradient_offset */
};

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

/* Whether backward reads what forward wrote to the array. */
static bool is_kept(size_t offset)
{
    return offset == offsetof(struct lb_oracle, y) || offset == offsetof(struct lb_oracle, gates) ||
           offset == offsetof(struct lb_oracle, cells) ||
           offset == offsetof(struct lb_oracle, kept) || offset == offsetof(struct lb_oracle, norm);
}

/* Sets the pointers to all arrays but the weights. With zeroed buffers it only computes the sizes,
 * in elements. */
static void lay_out(struct cpu_ref *ref, const struct lb_buffers *buffers, size_t *reserve,
                    size_t *workspace)
{
    const struct lb_problem *p = &ref->problem;
    struct lb_lstm_arrays arrays = lb_lstm_arrays(p);
    *reserve = *workspace = 0;
    for (size_t i = 0; i < LB_LSTM_ARRAYS; i++) {
        bool kept = lb_trains(p) && is_kept(arrays.at[i].offset);
        double *base = kept ? buffers->reserve : buffers->workspace;
        size_t *used = kept ? reserve : workspace;
        double *array = base && arrays.at[i].count > 0 ? base + *used : NULL;
        if (arrays.at[i].offset == offsetof(struct lb_oracle, weights))
            continue;
        memcpy((char *)&ref->oracle + arrays.at[i].offset, &array, sizeof(array));
        *used += arrays.at[i].count;
    }
    /* Only prepare uses staging, so it may overlap all other arrays. */
    ref->staging = buffers->workspace;
    for (size_t last = 0; last < 2; last++) { /* the first and the last layer_dir */
        size_t staging = 0, ld = last * (lb_layer_dir_count(p) - 1);
        for (enum lb_weight w = LB_W_IH; w < LB_WEIGHT_COUNT; w++)
            staging += lb_weight_elements(p, ld, w);
        *workspace = *workspace > staging ? *workspace : staging;
    }
}

static enum lb_status cpu_ref_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    size_t gradients = lb_has_backward(p) ? lb_gradient_offset(p, lb_layer_dir_count(p)) : 0;
    size_t reserve, workspace;
    (void)err;
    lay_out(ref, &(struct lb_buffers){0}, &reserve, &workspace);
    sizes->weights = lb_lstm_counts(p).weights * sizeof(double);
    sizes->gradients = gradients * sizeof(double);
    sizes->reserve = reserve * sizeof(double);
    sizes->workspace = workspace * sizeof(double);
    return LB_OK;
}

static enum lb_status cpu_ref_prepare(void *self, const struct lb_buffers *buffers,
                                      const struct lb_weights *weights, struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    const void *const *const tables[] = {weights->w_ih, weights->w_hh, weights->b_ih, weights->b_hh,
                                         weights->w_cell};
    size_t reserve, workspace;
    (void)err;
    ref->oracle = (struct lb_oracle){.problem = *p,
                                     .lengths = buffers->lengths,
                                     .x_max = buffers->x_max,
                                     .weights = buffers->weights};
    ref->gradients = buffers->gradients;
    lay_out(ref, buffers, &reserve, &workspace);

    for (size_t ld = 0; ld < lb_layer_dir_count(p); ld++) {
        double *at = ref->staging;
        for (enum lb_weight w = LB_W_IH; w < LB_WEIGHT_COUNT; w++) {
            size_t count = lb_weight_elements(p, ld, w);
            if (count > 0)
                lb_load(p->dtype, tables[w][ld], at, count);
            at += count;
        }
        lb_oracle_pack(&ref->oracle, ld, ref->staging);
    }
    if (p->dtype == LB_INT8)
        lb_int8_pack(&ref->oracle);
    return LB_OK;
}

/* Loads an input [count] of a call into the oracle's array. */
static void load(const struct cpu_ref *ref, const void *from, const double *to, size_t count)
{
    if (count > 0)
        lb_load(ref->problem.dtype, from, (double *)(uintptr_t)to, count);
}

/* Loads what both passes read. */
static void load_inputs(const struct cpu_ref *ref, const void *x, const void *h0, const void *c0,
                        const void *mask)
{
    struct lb_lstm_counts n = lb_lstm_counts(&ref->problem);
    load(ref, x, ref->oracle.x, n.x);
    load(ref, h0, ref->oracle.h0, n.h);
    load(ref, c0, ref->oracle.c0, n.state);
    load(ref, mask, ref->oracle.mask, n.mask);
}

static enum lb_status cpu_ref_forward(void *self, const struct lb_forward_io *io,
                                      struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    struct lb_lstm_counts n = lb_lstm_counts(p);
    size_t last = n.y / (size_t)p->layers;
    (void)err;
    load_inputs(ref, io->x, io->h0, io->c0, io->mask);
    if (p->dtype == LB_INT8)
        lb_int8_forward(&ref->oracle);
    else
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
    (void)err;
    load_inputs(ref, io->x, io->h0, io->c0, io->mask); /* the workspace may be overwritten since */
    load(ref, io->dy, ref->oracle.dy, n.between);
    load(ref, io->dhn, ref->oracle.dhn, n.h);
    load(ref, io->dcn, ref->oracle.dcn, n.state);
    lb_oracle_backward(&ref->oracle);
    lb_store(p->dtype, io->dx, ref->oracle.dx, n.x);
    lb_store(p->dtype, io->dh0, ref->oracle.dh0, n.h);
    lb_store(p->dtype, io->dc0, ref->oracle.dc0, n.state);
    for (size_t ld = 0; ld < lb_layer_dir_count(p); ld++)
        lb_oracle_weight_gradients(&ref->oracle, ld, NULL,
                                   ref->gradients + lb_gradient_offset(p, ld));
    return LB_OK;
}

static enum lb_status cpu_ref_gradients(void *self, const struct lb_gradients *gradients,
                                        struct lb_error *err)
{
    struct cpu_ref *ref = self;
    const struct lb_problem *p = &ref->problem;
    void *const *const tables[] = {gradients->dw_ih, gradients->dw_hh, gradients->db_ih,
                                   gradients->db_hh, gradients->dw_cell};
    const double *at = ref->gradients;
    (void)err;
    for (size_t ld = 0; ld < lb_layer_dir_count(p); ld++)
        for (enum lb_weight w = LB_W_IH; w < LB_WEIGHT_COUNT; w++) {
            size_t count = lb_weight_elements(p, ld, w);
            if (count > 0)
                lb_store(p->dtype, tables[w][ld], at, count);
            at += w == LB_B_IH ? 0 : count; /* both biases have one gradient */
        }
    return LB_OK;
}

static const char *cpu_ref_describe(const void *self)
{
    const struct cpu_ref *ref = self;
    return ref->problem.dtype == LB_INT8
               ? "plain C, computed in double, s8 weights per channel, s8 activations static"
               : "plain C, computed in double";
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
    .traits = LB_DETERMINISTIC | LB_REFERENCE | LB_INSTANCES | LB_QUANTISES | LB_QUANTISES_PLAINLY,
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
