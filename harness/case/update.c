/* The tensors of lb_impl.update. */
#include "case/update.h"

#include <stdlib.h>

#include "base/memory.h"
#include "device/weight_packing.h"
#include "reference/case_tensors.h"

double lb_case_update_bytes(const struct lb_problem *problem)
{
    return 2 * (double)lb_packed_bytes(problem, problem->dtype);
}

enum lb_status lb_case_update_open(const struct lb_problem *problem, const struct lb_space *space,
                                   const struct lb_weights *weights, struct lb_case_update *update,
                                   struct lb_error *err)
{
    size_t bytes = lb_packed_bytes(problem, problem->dtype);
    size_t layer_dirs = lb_layer_dir_count(problem), count = LB_WEIGHT_COUNT * layer_dirs;
    *update = (struct lb_case_update){.problem = problem, .space = space, .bytes = bytes};
    update->tables = lb_needed(calloc(2 * count, sizeof(void *)));
    LB_CHECK(space->allocate(bytes, &update->weights, err));
    LB_CHECK(space->allocate(bytes, &update->gradients, err));
    lb_packed_table(problem, problem->dtype, update->weights, update->tables);
    lb_packed_table(problem, problem->dtype, update->gradients, update->tables + count);
    update->io = (struct lb_update_io){lb_weights_of(update->tables, layer_dirs),
                                       lb_gradients_of(update->tables + count, layer_dirs)};
    /* The gaps between tensors then are what they are after all later poison. */
    LB_CHECK(lb_case_update_poison_weights(update, err));
    LB_CHECK(lb_case_update_renew(update, weights, err));
    return space->hash(update->weights, update->bytes, &update->drawn, err);
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
    LB_CHECK(lb_packed_upload(update->problem, update->space, update->weights, weights, err));
    return update->space->poison(update->gradients, update->bytes, err);
}

enum lb_status lb_case_update_poison_some(const struct lb_case_update *update, uint64_t *random,
                                          struct lb_error *err)
{
    LB_CHECK(lb_poison_some(update->space, update->weights, update->bytes, random, err));
    return lb_poison_some(update->space, update->gradients, update->bytes, random, err);
}

enum lb_status lb_case_update_poison_weights(const struct lb_case_update *update,
                                             struct lb_error *err)
{
    return update->space->poison(update->weights, update->bytes, err);
}

enum lb_status lb_case_update_download(const struct lb_case_update *update,
                                       const struct lb_gradients *gradients, struct lb_error *err)
{
    return lb_packed_download(update->problem, update->space, update->problem->dtype,
                              update->gradients, gradients, err);
}

enum lb_status lb_case_update_intact(const struct lb_case_update *update, bool *intact,
                                     struct lb_error *err)
{
    uint64_t now = 0;
    LB_CHECK(update->space->hash(update->weights, update->bytes, &now, err));
    *intact = now == update->drawn;
    return LB_OK;
}

enum lb_status lb_case_update_prepare(const struct lb_impl *impl, void *self,
                                      const struct lb_buffers *buffers,
                                      const struct lb_case_update *update, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_problem *p = update->problem;
    size_t layer_dirs = lb_layer_dir_count(p), bytes = lb_packed_bytes(p, p->dtype);
    void *poison = malloc(bytes);
    void **table = lb_needed(calloc(LB_WEIGHT_COUNT * layer_dirs, sizeof(*table)));
    if (!poison)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory for weights that an update replaces"));
    lb_poison(poison, bytes);
    lb_packed_table(p, p->dtype, poison, table);
    const struct lb_weights none = lb_weights_of(table, layer_dirs);
    LB_TRY(impl->prepare(self, buffers, &none, err));
    LB_TRY(impl->update(self, &update->io, err));
done:
    free(table);
    free(poison);
    return st;
}
