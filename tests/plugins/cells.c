/* Implementations of the cells other than the standard one that are wrong on purpose. The
 * compile-time name FAULT says how; with FAULT=none they are correct. Each runs cpu_ref with one
 * input or output changed, which gives the results of an implementation that misreads the equations
 * of problem.h. */
#include <stdlib.h>

#include "faulty.h"

enum fault {
    none,
    swapped_peepholes, /* pi and pf are exchanged */
    swapped_gains,     /* the gains of i and f are exchanged */
    no_cell_gradient,  /* the gradient of w_cell is zero */
    rotated_mask,      /* a batch row has the mask of the next one */
    unscaled_mask,     /* the elements of the mask are 0 or 1 */
    no_skip,           /* the inputs of layers are not added to their outputs */
    transposed_w_hr    /* w_hr is read as [H, P] */
};

static const enum fault fault = FAULT;

struct wrong {
    struct lb_problem problem;
    void *inner; /* cpu_ref's state; owned */
    void *mask;  /* [L*D, B, H] as this implementation reads it; owned */
};

static enum lb_status supports(const struct lb_problem *problem,
                               const struct lb_exec_config *config, struct lb_error *why)
{
    return lb_impl_cpu_ref.supports(problem, config, why);
}

static enum lb_status create(void *self, const struct lb_problem *problem,
                             const struct lb_exec_config *config, struct lb_error *err)
{
    struct wrong *wrong = self;
    size_t count = lb_layer_dir_count(problem) * (size_t)(problem->batch * problem->hidden);
    wrong->problem = *problem;
    if (fault == no_skip && problem->cell == LB_CELL_RESIDUAL)
        wrong->problem.cell = LB_CELL_STANDARD;
    wrong->inner = calloc(1, lb_impl_cpu_ref.state_size);
    wrong->mask = malloc(count * lb_dtype_size(problem->dtype));
    if (!wrong->inner || !wrong->mask)
        return lb_fail(err, LB_OOM, "out of memory");
    return lb_impl_cpu_ref.create(wrong->inner, &wrong->problem, config, err);
}

static enum lb_status sizes(void *self, struct lb_sizes *bytes, struct lb_error *err)
{
    return lb_impl_cpu_ref.sizes(((struct wrong *)self)->inner, bytes, err);
}

/* Changes w_cell of one layer and direction as the fault says. */
static void change_weights(const struct lb_problem *p, char *w_cell)
{
    size_t H = (size_t)p->hidden, P = (size_t)lb_h_size(p), size = lb_dtype_size(p->dtype);
    bool peephole = fault == swapped_peepholes && p->cell == LB_CELL_PEEPHOLE;
    char *copy = malloc(lb_cell_weight_count(p) * size);
    if (!copy)
        return;
    memcpy(copy, w_cell, lb_cell_weight_count(p) * size);
    if (peephole || (fault == swapped_gains && p->cell == LB_CELL_LAYERNORM)) {
        memcpy(w_cell, copy + H * size, H * size);
        memcpy(w_cell + H * size, copy, H * size);
    }
    for (size_t i = 0; fault == transposed_w_hr && p->cell == LB_CELL_PROJECTION && i < P * H; i++)
        memcpy(w_cell + i * size, copy + (i % H * P + i / H) * size, size);
    free(copy);
}

static enum lb_status prepare(void *self, const struct lb_buffers *buffers,
                              const struct lb_weights *weights, struct lb_error *err)
{
    struct wrong *wrong = self;
    const struct lb_problem *p = &wrong->problem;
    size_t layer_dirs = lb_layer_dir_count(p), count = lb_cell_weight_count(p);
    size_t bytes = count * lb_dtype_size(p->dtype);
    const void **table = calloc(layer_dirs, sizeof(*table));
    char *changed = malloc(layer_dirs * bytes + 1);
    struct lb_weights mine = *weights;
    enum lb_status st = table && changed ? LB_OK : lb_fail(err, LB_OOM, "out of memory");
    for (size_t i = 0; st == LB_OK && count > 0 && i < layer_dirs; i++) {
        table[i] = changed + i * bytes;
        memcpy(changed + i * bytes, weights->w_cell[i], bytes);
        change_weights(p, changed + i * bytes);
    }
    mine.w_cell = table;
    if (st == LB_OK)
        st = lb_impl_cpu_ref.prepare(wrong->inner, buffers, &mine, err);
    free(changed);
    free(table);
    return st;
}

/* The mask as this implementation reads it. */
static const void *mask_of(struct wrong *wrong, const void *mask)
{
    const struct lb_problem *p = &wrong->problem;
    size_t B = (size_t)p->batch, H = (size_t)p->hidden, size = lb_dtype_size(p->dtype);
    size_t rows = lb_layer_dir_count(p) * B;
    if (p->cell != LB_CELL_RECURRENT_DROPOUT)
        return NULL;
    for (size_t r = 0; r < rows; r++) {
        size_t from = fault == rotated_mask ? r / B * B + (r + 1) % B : r;
        char *row = (char *)wrong->mask + r * H * size;
        memcpy(row, (const char *)mask + from * H * size, H * size);
        for (size_t j = 0; fault == unscaled_mask && j < H; j++) {
            double value;
            lb_load(p->dtype, row + j * size, &value, 1);
            value = value > 0 ? 1 : 0;
            lb_store(p->dtype, row + j * size, &value, 1);
        }
    }
    return wrong->mask;
}

static enum lb_status forward(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    struct lb_forward_io mine = *io;
    mine.mask = mask_of(self, io->mask);
    return lb_impl_cpu_ref.forward(((struct wrong *)self)->inner, &mine, err);
}

static enum lb_status backward(void *self, const struct lb_backward_io *io, struct lb_error *err)
{
    struct lb_backward_io mine = *io;
    mine.mask = mask_of(self, io->mask);
    return lb_impl_cpu_ref.backward(((struct wrong *)self)->inner, &mine, err);
}

static enum lb_status gradients(void *self, const struct lb_gradients *to, struct lb_error *err)
{
    struct wrong *wrong = self;
    const struct lb_problem *p = &wrong->problem;
    size_t bytes = lb_cell_weight_count(p) * lb_dtype_size(p->dtype);
    enum lb_status st = lb_impl_cpu_ref.gradients(wrong->inner, to, err);
    for (size_t i = 0; fault == no_cell_gradient && bytes > 0 && i < lb_layer_dir_count(p); i++)
        memset(to->dw_cell[i], 0, bytes);
    return st;
}

static void destroy(void *self)
{
    struct wrong *wrong = self;
    free(wrong->inner); /* cpu_ref owns nothing else */
    free(wrong->mask);
}

static const struct lb_impl impl = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "cells_" TEXT(FAULT),
    .summary = "wrong cells, for tests",
    .memory = LB_HOST,
    .traits = LB_DETERMINISTIC,
    .state_size = sizeof(struct wrong),
    .supports = supports,
    .create = create,
    .sizes = sizes,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .gradients = gradients,
    .destroy = destroy,
    .cells = 1u << LB_CELL_LAYERNORM | 1u << LB_CELL_RECURRENT_DROPOUT | 1u << LB_CELL_PROJECTION |
             1u << LB_CELL_PEEPHOLE | 1u << LB_CELL_RESIDUAL,
};

const struct lb_impl *lb_plugin(uint32_t abi)
{
    return abi == LB_IMPL_ABI ? &impl : NULL;
}
