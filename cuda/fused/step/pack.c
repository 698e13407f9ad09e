/* The rows of recurrent weights that the step kernels read. */
#include "cuda/fused/step/step.h"

static size_t round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

size_t lb_step_row_bytes(const struct lb_step_tile *tile, bool backward, enum lb_dtype dtype,
                         int64_t hidden)
{
    size_t depth = (size_t)hidden * (backward ? 4 : 1);
    return round_up(depth * lb_dtype_size(dtype), 64 * (size_t)tile->split);
}

size_t lb_step_weight_bytes(const struct lb_step_tile *tile, bool backward, enum lb_dtype dtype,
                            int64_t hidden)
{
    size_t rows = (size_t)hidden * (backward ? 1 : 4);
    return round_up(rows, 16 * (size_t)tile->row_tiles) *
           lb_step_row_bytes(tile, backward, dtype, hidden);
}

struct lb_weight_layout lb_step_layout(const struct lb_step_tile *tile, bool backward,
                                       enum lb_dtype dtype, enum lb_math math, int64_t hidden)
{
    struct lb_weight_layout layout = lb_weight_layout_begin(hidden, hidden);
    size_t row_bytes = lb_step_row_bytes(tile, backward, dtype, hidden);
    int64_t depth = (int64_t)(row_bytes / lb_dtype_size(dtype));
    int64_t rows = (int64_t)(lb_step_weight_bytes(tile, backward, dtype, hidden) / row_bytes);
    layout.tf32 = dtype == LB_F32 && math != LB_IEEE;
    if (backward) {
        lb_weight_layout_add(&layout, 4, 1, 0, 0);
        lb_weight_layout_add(&layout, depth / 4, 0, 1, 0);
        lb_weight_layout_add(&layout, rows, 0, 0, 1);
    } else {
        lb_weight_layout_add(&layout, depth, 0, 0, 1);
        lb_weight_layout_add(&layout, 4, 1, 0, 0);
        lb_weight_layout_add(&layout, rows / 4, 0, 1, 0);
    }
    return layout;
}
