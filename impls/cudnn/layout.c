/* The way between cuDNN's weight space and the canonical layout: both keep a gate's rows together,
 * so it is a copy a gate. The matrix of a projection is one copy. */
#include "impls/cudnn/layout.h"

#include <string.h>

static size_t entries_of(const struct lb_problem *problem)
{
    return (size_t)(problem->layers * problem->directions);
}

int lb_cudnn_part_count(const struct lb_problem *problem)
{
    return problem->cell == LB_CELL_PROJECTION ? CUDNN_PROJECTION + 1 : CUDNN_GATE_PARTS;
}

/* Also of the projection, whose matrix [P, H] has as many elements as a recurrent one [H, P]. */
size_t lb_cudnn_matrix_elements(const struct lb_problem *problem, size_t layer_dir, int part)
{
    int64_t layer = (int64_t)layer_dir / problem->directions;
    int64_t columns = part < 4 ? lb_layer_input(problem, layer) : lb_h_size(problem);
    return (size_t)(problem->hidden * columns);
}

static bool lies_within(size_t offset, size_t size, size_t bytes)
{
    return offset <= bytes && size <= bytes - offset;
}

enum lb_status lb_cudnn_layout_check(const struct lb_problem *problem,
                                     const struct lb_cudnn_offsets *offsets, size_t bytes,
                                     struct lb_error *err)
{
    size_t size = lb_dtype_size(problem->dtype), bias = (size_t)problem->hidden * size;
    for (size_t e = 0; e < entries_of(problem); e++) {
        for (int part = 0; part < lb_cudnn_part_count(problem); part++) {
            size_t matrix = lb_cudnn_matrix_elements(problem, e, part) * size;
            if (!lies_within(offsets[e].matrix[part], matrix, bytes) ||
                (part < CUDNN_GATE_PARTS && !lies_within(offsets[e].bias[part], bias, bytes)))
                return lb_fail(
                    err, LB_FAILED,
                    "cuDNN places part %d of layer %lld outside its %zu bytes of weights", part,
                    (long long)((int64_t)e / problem->directions), bytes);
        }
    }
    return LB_OK;
}

/* A gate's first element in a canonical tensor with so many elements a gate. */
static size_t gate_at(const struct lb_problem *problem, size_t elements, int part)
{
    return (size_t)(part % 4) * elements * lb_dtype_size(problem->dtype);
}

void lb_cudnn_layout_pack(const struct lb_problem *problem, const struct lb_cudnn_offsets *offsets,
                          const struct lb_weights *weights, void *image)
{
    size_t size = lb_dtype_size(problem->dtype), hidden = (size_t)problem->hidden;
    for (size_t e = 0; e < entries_of(problem); e++) {
        for (int part = 0; part < CUDNN_GATE_PARTS; part++) {
            const char *w = (part < 4 ? weights->w_ih : weights->w_hh)[e];
            const char *b = (part < 4 ? weights->b_ih : weights->b_hh)[e];
            size_t elements = lb_cudnn_matrix_elements(problem, e, part);
            memcpy((char *)image + offsets[e].matrix[part], w + gate_at(problem, elements, part),
                   elements * size);
            memcpy((char *)image + offsets[e].bias[part], b + gate_at(problem, hidden, part),
                   hidden * size);
        }
        if (problem->cell == LB_CELL_PROJECTION)
            memcpy((char *)image + offsets[e].matrix[CUDNN_PROJECTION], weights->w_cell[e],
                   lb_cudnn_matrix_elements(problem, e, CUDNN_PROJECTION) * size);
    }
}

void lb_cudnn_layout_unpack(const struct lb_problem *problem,
                            const struct lb_cudnn_offsets *offsets, const void *image,
                            const struct lb_gradients *gradients)
{
    size_t size = lb_dtype_size(problem->dtype), hidden = (size_t)problem->hidden;
    for (size_t e = 0; e < entries_of(problem); e++) {
        for (int part = 0; part < CUDNN_GATE_PARTS; part++) {
            char *w = (part < 4 ? gradients->dw_ih : gradients->dw_hh)[e];
            char *b = (part < 4 ? gradients->db_ih : gradients->db_hh)[e];
            size_t elements = lb_cudnn_matrix_elements(problem, e, part);
            memcpy(w + gate_at(problem, elements, part),
                   (const char *)image + offsets[e].matrix[part], elements * size);
            memcpy(b + gate_at(problem, hidden, part), (const char *)image + offsets[e].bias[part],
                   hidden * size);
        }
        if (problem->cell == LB_CELL_PROJECTION)
            memcpy(gradients->dw_cell[e], (const char *)image + offsets[e].matrix[CUDNN_PROJECTION],
                   lb_cudnn_matrix_elements(problem, e, CUDNN_PROJECTION) * size);
    }
}
