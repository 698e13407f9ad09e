/* Canonical weights packed into one buffer. */
#include "device/weight_packing.h"

#include <stdlib.h>

size_t lb_weight_elements(const struct lb_problem *problem, size_t layer_dir, enum lb_weight which)
{
    size_t hidden = (size_t)problem->hidden;
    int64_t layer = (int64_t)layer_dir / problem->directions;
    if (which == LB_W_IH)
        return 4 * hidden * (size_t)lb_layer_input(problem, layer);
    if (which == LB_W_CELL)
        return lb_cell_weight_count(problem);
    return which == LB_W_HH ? 4 * hidden * (size_t)lb_h_size(problem) : 4 * hidden;
}

size_t lb_packed_offset(const struct lb_problem *problem, enum lb_dtype dtype, size_t layer_dir,
                        enum lb_weight which)
{
    size_t offset = 0, size = lb_dtype_size(dtype);
    for (size_t e = 0; e <= layer_dir; e++)
        for (int w = 0; w < LB_WEIGHT_COUNT && (e < layer_dir || w < (int)which); w++)
            offset += lb_arena_round_up(lb_weight_elements(problem, e, (enum lb_weight)w) * size);
    return offset;
}

size_t lb_packed_bytes(const struct lb_problem *problem, enum lb_dtype dtype)
{
    return lb_packed_offset(problem, dtype, lb_layer_dir_count(problem), LB_W_IH);
}

void lb_packed_table(const struct lb_problem *problem, enum lb_dtype dtype, void *buffer,
                     void **table)
{
    size_t layer_dirs = lb_layer_dir_count(problem);
    for (size_t i = 0; i < LB_WEIGHT_COUNT * layer_dirs; i++)
        table[i] = (char *)buffer + lb_packed_offset(problem, dtype, i % layer_dirs,
                                                     (enum lb_weight)(i / layer_dirs));
}

struct lb_weights lb_weights_of(void *const *table, size_t layer_dirs)
{
    const void *const *of = (const void *const *)table;
    return (struct lb_weights){.w_ih = of + LB_W_IH * layer_dirs,
                               .w_hh = of + LB_W_HH * layer_dirs,
                               .b_ih = of + LB_B_IH * layer_dirs,
                               .b_hh = of + LB_B_HH * layer_dirs,
                               .w_cell = of + LB_W_CELL * layer_dirs};
}

struct lb_gradients lb_gradients_of(void *const *table, size_t layer_dirs)
{
    return (struct lb_gradients){.dw_ih = table + LB_W_IH * layer_dirs,
                                 .dw_hh = table + LB_W_HH * layer_dirs,
                                 .db_ih = table + LB_B_IH * layer_dirs,
                                 .db_hh = table + LB_B_HH * layer_dirs,
                                 .dw_cell = table + LB_W_CELL * layer_dirs};
}

enum lb_status lb_packed_upload(const struct lb_problem *problem, const struct lb_space *space,
                                void *buffer, const struct lb_weights *weights,
                                struct lb_error *err)
{
    const void *const *const from[LB_WEIGHT_COUNT] = {weights->w_ih, weights->w_hh, weights->b_ih,
                                                      weights->b_hh, weights->w_cell};
    size_t layer_dirs = lb_layer_dir_count(problem);
    for (size_t i = 0; i < LB_WEIGHT_COUNT * layer_dirs; i++) {
        size_t e = i % layer_dirs;
        enum lb_weight which = (enum lb_weight)(i / layer_dirs);
        size_t bytes = lb_weight_elements(problem, e, which) * lb_dtype_size(problem->dtype);
        size_t offset = lb_packed_offset(problem, problem->dtype, e, which);
        if (bytes > 0)
            LB_CHECK(space->upload((char *)buffer + offset, from[which][e], bytes, err));
    }
    return LB_OK;
}

/* Downloads one tensor, converted through double where the two types differ. */
static enum lb_status fetch(const struct lb_space *space, enum lb_dtype stored, const void *from,
                            enum lb_dtype dtype, void *to, size_t count, struct lb_error *err)
{
    size_t bytes = count * lb_dtype_size(stored);
    enum lb_status st = LB_OK;
    if (stored == dtype)
        return space->download(to, from, bytes, err);
    void *raw = malloc(bytes);
    double *values = malloc(count * sizeof(*values));
    if (!raw || !values)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory for a weight gradient"));
    LB_TRY(space->download(raw, from, bytes, err));
    lb_load(stored, raw, values, count);
    lb_store(dtype, to, values, count);
done:
    free(values);
    free(raw);
    return st;
}

enum lb_status lb_packed_download(const struct lb_problem *problem, const struct lb_space *space,
                                  enum lb_dtype stored, const void *buffer,
                                  const struct lb_gradients *gradients, struct lb_error *err)
{
    void *const *const to[LB_WEIGHT_COUNT] = {gradients->dw_ih, gradients->dw_hh, gradients->db_ih,
                                              gradients->db_hh, gradients->dw_cell};
    size_t layer_dirs = lb_layer_dir_count(problem);
    for (size_t i = 0; i < LB_WEIGHT_COUNT * layer_dirs; i++) {
        size_t e = i % layer_dirs;
        enum lb_weight which = (enum lb_weight)(i / layer_dirs);
        const char *from = (const char *)buffer + lb_packed_offset(problem, stored, e, which);
        size_t count = lb_weight_elements(problem, e, which);
        if (count > 0)
            LB_CHECK(fetch(space, stored, from, problem->dtype, to[which][e], count, err));
    }
    return LB_OK;
}
