/* The tensors of lb_impl.update. */
#include "case/update.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/weight_packing.h"
#include "reference/case_tensors.h"

double lb_case_update_bytes(const struct lb_problem *problem)
{
    return 2 * (double)lb_packed_bytes(problem, problem->dtype);
}

/* Points the tables of io to the tensors. */
static void set_tables(struct lb_case_update *u)
{
    const struct lb_problem *p = u->problem;
    size_t layer_dirs = lb_layer_dir_count(p);
    for (int w = 0; w < LB_WEIGHT_COUNT; w++) {
        for (size_t e = 0; e < layer_dirs; e++) {
            size_t offset = lb_packed_offset(p, p->dtype, e, (enum lb_weight)w);
            u->tables[(size_t)w * layer_dirs + e] = (char *)u->weights + offset;
            u->tables[(LB_WEIGHT_COUNT + (size_t)w) * layer_dirs + e] =
                (char *)u->gradients + offset;
        }
    }
    void **gradients = u->tables + LB_WEIGHT_COUNT * layer_dirs;
    const void *const *weights = (const void *const *)u->tables;
    u->io.weights = (struct lb_weights){.w_ih = weights + LB_W_IH * layer_dirs,
                                        .w_hh = weights + LB_W_HH * layer_dirs,
                                        .b_ih = weights + LB_B_IH * layer_dirs,
                                        .b_hh = weights + LB_B_HH * layer_dirs,
                                        .w_cell = weights + LB_W_CELL * layer_dirs};
    u->io.gradients = (struct lb_gradients){.dw_ih = gradients + LB_W_IH * layer_dirs,
                                            .dw_hh = gradients + LB_W_HH * layer_dirs,
                                            .db_ih = gradients + LB_B_IH * layer_dirs,
                                            .db_hh = gradients + LB_B_HH * layer_dirs,
                                            .dw_cell = gradients + LB_W_CELL * layer_dirs};
}

enum lb_status lb_case_update_open(const struct lb_problem *problem, const struct lb_space *space,
                                   const struct lb_weights *weights, struct lb_case_update *update,
                                   struct lb_error *err)
{
    size_t bytes = lb_packed_bytes(problem, problem->dtype);
    *update = (struct lb_case_update){.problem = problem, .space = space};
    update->tables =
        lb_needed(calloc(2 * LB_WEIGHT_COUNT * lb_layer_dir_count(problem), sizeof(void *)));
    LB_CHECK(space->allocate(bytes, &update->weights, err));
    LB_CHECK(space->allocate(bytes, &update->gradients, err));
    LB_CHECK(lb_case_update_renew(update, weights, err));
    set_tables(update);
    return LB_OK;
}

void lb_case_update_close(struct lb_case_update *update)
{
    if (update->space) {
        update->space->release(update->gradients);
        update->space->release(update->weights);
    }
    free(update->tables);
    *update = (struct lb_case_update){0};
}

enum lb_status lb_case_update_renew(const struct lb_case_update *update,
                                    const struct lb_weights *weights, struct lb_error *err)
{
    size_t bytes = lb_packed_bytes(update->problem, update->problem->dtype);
    enum lb_status st =
        lb_packed_upload(update->problem, update->space, update->weights, weights, err);
    return st == LB_OK ? update->space->poison(update->gradients, bytes, err) : st;
}

enum lb_status lb_case_update_poison_some(const struct lb_case_update *update, uint64_t *random,
                                          struct lb_error *err)
{
    size_t bytes = lb_packed_bytes(update->problem, update->problem->dtype);
    enum lb_status st = lb_poison_some(update->space, update->weights, bytes, random, err);
    return st == LB_OK ? lb_poison_some(update->space, update->gradients, bytes, random, err) : st;
}

enum lb_status lb_case_update_poison_weights(const struct lb_case_update *update,
                                             struct lb_error *err)
{
    size_t bytes = lb_packed_bytes(update->problem, update->problem->dtype);
    return update->space->poison(update->weights, bytes, err);
}

enum lb_status lb_case_update_download(const struct lb_case_update *update,
                                       const struct lb_gradients *gradients, struct lb_error *err)
{
    return lb_packed_download(update->problem, update->space, update->problem->dtype,
                              update->gradients, gradients, err);
}

enum lb_status lb_case_update_intact(const struct lb_case_update *update,
                                     const struct lb_weights *weights, bool *intact,
                                     struct lb_error *err)
{
    const struct lb_problem *p = update->problem;
    const void *const *const expected[LB_WEIGHT_COUNT] = {
        weights->w_ih, weights->w_hh, weights->b_ih, weights->b_hh, weights->w_cell};
    enum lb_status st = LB_OK;
    size_t bytes = lb_packed_bytes(p, p->dtype);
    char *now = malloc(bytes);
    *intact = true;
    if (!now)
        return lb_fail(err, LB_OOM, "out of memory for the weights of an update");
    LB_TRY(update->space->download(now, update->weights, bytes, err));
    for (size_t e = 0; e < lb_layer_dir_count(p); e++)
        for (int w = 0; w < LB_WEIGHT_COUNT && *intact; w++) {
            enum lb_weight which = (enum lb_weight)w;
            size_t size = lb_weight_elements(p, e, which) * lb_dtype_size(p->dtype);
            if (size > 0)
                *intact = memcmp(now + lb_packed_offset(p, p->dtype, e, which), expected[w][e],
                                 size) == 0;
        }
done:
    free(now);
    return st;
}

/* Elements of the largest tensor. */
static size_t largest_tensor(const struct lb_problem *problem)
{
    size_t most = 0;
    for (size_t e = 0; e < lb_layer_dir_count(problem); e++)
        for (int w = 0; w < LB_WEIGHT_COUNT; w++) {
            size_t count = lb_weight_elements(problem, e, (enum lb_weight)w);
            most = count > most ? count : most;
        }
    return most;
}

enum lb_status lb_case_update_prepare(const struct lb_impl *impl, void *self,
                                      const struct lb_buffers *buffers,
                                      const struct lb_case_update *update, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_problem *p = update->problem;
    size_t layer_dirs = lb_layer_dir_count(p);
    size_t bytes = largest_tensor(p) * lb_dtype_size(p->dtype);
    void *poison = malloc(bytes);
    const void **tensors = calloc(layer_dirs, sizeof(*tensors));
    if (!poison || !tensors)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory for weights that an update replaces"));
    lb_poison(poison, bytes);
    for (size_t e = 0; e < layer_dirs; e++)
        tensors[e] = poison;
    const struct lb_weights none = {tensors, tensors, tensors, tensors, tensors};
    LB_TRY(impl->prepare(self, buffers, &none, err));
    LB_TRY(impl->update(self, &update->io, err));
done:
    free(tensors);
    free(poison);
    return st;
}
