/* The tensors of lb_impl.update. */
#include "case/update.h"

#include <stdlib.h>

#include "base/memory.h"
#include "device/weight_packing.h"

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
    LB_CHECK(space->poison(update->weights, bytes, err));
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
