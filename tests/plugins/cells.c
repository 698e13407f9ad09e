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

/* The case that was created last. */
static struct lb_problem problem;
static void *own_mask; /* [L*D, B, H] as this implementation reads it */

static enum lb_status create(void *self, const struct lb_problem *p,
                             const struct lb_exec_config *config, struct lb_error *err)
{
    size_t count = lb_layer_dir_count(p) * (size_t)(p->batch * p->hidden);
    problem = *p;
    if (fault == no_skip && p->cell == LB_CELL_RESIDUAL)
        problem.cell = LB_CELL_STANDARD;
    own_mask = malloc(count * lb_dtype_size(p->dtype));
    return lb_impl_cpu_ref.create(self, &problem, config, err);
}

/* Copies w_cell of one layer and direction, changed as the fault says. to, from
 * [lb_cell_weight_count] */
static void change_weights(char *to, const char *from)
{
    size_t H = (size_t)problem.hidden, P = (size_t)lb_h_size(&problem);
    size_t size = lb_dtype_size(problem.dtype);
    bool peephole = fault == swapped_peepholes && problem.cell == LB_CELL_PEEPHOLE;
    bool projection = fault == transposed_w_hr && problem.cell == LB_CELL_PROJECTION;
    memcpy(to, from, lb_cell_weight_count(&problem) * size);
    if (peephole || (fault == swapped_gains && problem.cell == LB_CELL_LAYERNORM)) {
        memcpy(to, from + H * size, H * size);
        memcpy(to + H * size, from, H * size);
    }
    for (size_t i = 0; projection && i < P * H; i++)
        memcpy(to + i * size, from + (i % H * P + i / H) * size, size);
}

static enum lb_status prepare(void *self, const struct lb_buffers *buffers,
                              const struct lb_weights *weights, struct lb_error *err)
{
    size_t layer_dirs = lb_layer_dir_count(&problem), count = lb_cell_weight_count(&problem);
    size_t bytes = count * lb_dtype_size(problem.dtype);
    const void **table = calloc(layer_dirs, sizeof(*table));
    char *changed = malloc(layer_dirs * bytes + 1);
    struct lb_weights mine = *weights;
    for (size_t i = 0; count > 0 && i < layer_dirs; i++) {
        table[i] = changed + i * bytes;
        change_weights(changed + i * bytes, weights->w_cell[i]);
    }
    mine.w_cell = table;
    enum lb_status st = lb_impl_cpu_ref.prepare(self, buffers, &mine, err);
    free(changed);
    free(table);
    return st;
}

/* The mask as this implementation reads it. */
static const void *mask_of(const void *mask)
{
    size_t B = (size_t)problem.batch, H = (size_t)problem.hidden;
    size_t size = lb_dtype_size(problem.dtype), rows = lb_layer_dir_count(&problem) * B;
    if (problem.cell != LB_CELL_RECURRENT_DROPOUT)
        return NULL;
    for (size_t r = 0; r < rows; r++) {
        size_t from = fault == rotated_mask ? r / B * B + (r + 1) % B : r;
        char *row = (char *)own_mask + r * H * size;
        memcpy(row, (const char *)mask + from * H * size, H * size);
        for (size_t j = 0; fault == unscaled_mask && j < H; j++) {
            double value;
            lb_load(problem.dtype, row + j * size, &value, 1);
            value = value > 0 ? 1 : 0;
            lb_store(problem.dtype, row + j * size, &value, 1);
        }
    }
    return own_mask;
}

static enum lb_status forward(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    struct lb_forward_io mine = *io;
    mine.mask = mask_of(io->mask);
    return lb_impl_cpu_ref.forward(self, &mine, err);
}

static enum lb_status backward(void *self, const struct lb_backward_io *io, struct lb_error *err)
{
    struct lb_backward_io mine = *io;
    mine.mask = mask_of(io->mask);
    return lb_impl_cpu_ref.backward(self, &mine, err);
}

static enum lb_status gradients(void *self, const struct lb_gradients *to, struct lb_error *err)
{
    size_t bytes = lb_cell_weight_count(&problem) * lb_dtype_size(problem.dtype);
    enum lb_status st = lb_impl_cpu_ref.gradients(self, to, err);
    for (size_t i = 0; fault == no_cell_gradient && bytes > 0 && i < lb_layer_dir_count(&problem);
         i++)
        memset(to->dw_cell[i], 0, bytes);
    return st;
}

static void destroy(void *self)
{
    free(own_mask);
    lb_impl_cpu_ref.destroy(self);
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    static struct lb_impl impl;
    (void)abi;
    impl = cpu_ref_as("cells_" TEXT(FAULT), "wrong cells, for tests");
    impl.create = create;
    impl.prepare = prepare;
    impl.forward = forward;
    impl.backward = backward;
    impl.gradients = gradients;
    impl.destroy = destroy;
    return &impl;
}
