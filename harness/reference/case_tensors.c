/* The tensors of one case, on the host and in the memory of an implementation. */
#include "reference/case_tensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "device/weight_packing.h"

/* ---- In host memory. ------------------------------------------------------------------------ */

void lb_results_poison(const struct lb_results *results)
{
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++)
        lb_poison(results->at[t], results->counts[t] * results->element_bytes);
    if (results->gradients.dw_ih)
        lb_poison(results->gradients.dw_ih[0], results->weight_count * results->element_bytes);
}

/* All weight gradients are one block of lb_host_space, because implementations write to it and its
 * guard bands show where they write past the end. The table of pointers is another block, which
 * starts with those of dw_ih. */
static enum lb_status create_gradients(const struct lb_problem *p, struct lb_results *results,
                                       struct lb_error *err)
{
    size_t layer_dirs = lb_layer_dir_count(p), size = results->element_bytes;
    void *block;
    LB_CHECK(lb_host_space.allocate(results->weight_count * size, &block, err));
    void **table = lb_needed(malloc(LB_WEIGHT_COUNT * layer_dirs * sizeof(*table)));
    char *at = block;
    for (size_t layer_dir = 0; layer_dir < layer_dirs; layer_dir++)
        for (size_t i = 0; i < LB_WEIGHT_COUNT; i++) {
            table[i * layer_dirs + layer_dir] = at;
            at += lb_weight_elements(p, layer_dir, (enum lb_weight)i) * size;
        }
    results->gradients = lb_gradients_of(table, layer_dirs);
    return LB_OK;
}

enum lb_status lb_results_create(const struct lb_problem *problem, struct lb_results *results,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_counts n;
    *results = (struct lb_results){.element_bytes = lb_dtype_size(problem->dtype)};
    LB_TRY(lb_problem_counts(problem, &n, err));
    results->weight_count = n.weights;
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++) {
        size_t bytes = lb_tensor_elements(problem, (enum lb_tensor)t) * results->element_bytes;
        results->counts[t] = bytes / results->element_bytes;
        if (bytes > 0 && !(results->at[t] = malloc(bytes)))
            LB_TRY(lb_fail(err, LB_OOM, "allocating %zu bytes for results failed", bytes));
    }
    if (lb_has_backward(problem))
        LB_TRY(create_gradients(problem, results, err));
    lb_results_poison(results);
done:
    if (st != LB_OK)
        lb_results_destroy(results);
    return st;
}

void lb_results_destroy(struct lb_results *results)
{
    void **table = (void **)results->gradients.dw_ih;
    if (table)
        lb_host_space.release(table[0]);
    free(table);
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++)
        free(results->at[t]);
    *results = (struct lb_results){0};
}

uint64_t lb_results_hash(const struct lb_results *results)
{
    uint64_t hash = 0;
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++)
        if (results->at[t])
            hash = lb_hash_bytes(hash, results->at[t], results->counts[t] * results->element_bytes);
    if (results->gradients.dw_ih)
        hash = lb_hash_bytes(hash, results->gradients.dw_ih[0],
                             results->weight_count * results->element_bytes);
    return hash;
}

/* ---- In the memory of an implementation. ---------------------------------------------------- */

enum lb_status lb_tensors_create(const struct lb_problem *problem, const struct lb_space *space,
                                 struct lb_tensors *tensors, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *tensors = (struct lb_tensors){.space = space};
    for (int t = 0; t < LB_TENSOR_COUNT; t++) {
        tensors->bytes[t] =
            lb_tensor_elements(problem, (enum lb_tensor)t) * lb_dtype_size(problem->dtype);
        LB_TRY(space->allocate(tensors->bytes[t], &tensors->at[0][t], err));
        if (t <= LB_DCN)
            LB_TRY(space->allocate(tensors->bytes[t], &tensors->at[1][t], err));
        else
            tensors->at[1][t] = tensors->at[0][t];
    }
done:
    if (st != LB_OK)
        lb_tensors_destroy(tensors);
    return st;
}

void lb_tensors_destroy(struct lb_tensors *tensors)
{
    for (int t = LB_TENSOR_COUNT - 1; t >= 0 && tensors->space; t--) {
        if (tensors->carries_state && (t == LB_HN || t == LB_CN))
            continue;
        if (t <= LB_DCN)
            tensors->space->release(tensors->at[1][t]);
        tensors->space->release(tensors->at[0][t]);
    }
    *tensors = (struct lb_tensors){0};
}

void lb_tensors_carry_state(struct lb_tensors *tensors)
{
    for (int t = LB_HN; t <= LB_CN; t++) {
        tensors->space->release(tensors->at[0][t]);
        for (int i = 0; i < LB_TIMED_SETS; i++)
            tensors->at[i][t] = tensors->at[1 - i][t == LB_HN ? LB_H0 : LB_C0];
    }
    tensors->carries_state = true;
}

size_t lb_tensors_input_bytes(const struct lb_tensors *tensors)
{
    size_t sum = 0;
    for (int t = 0; t <= LB_DCN; t++)
        sum += tensors->bytes[t];
    return sum;
}

size_t lb_tensors_bytes(const struct lb_tensors *tensors)
{
    size_t sum = lb_tensors_input_bytes(tensors); /* the second buffers */
    for (int t = 0; t < LB_TENSOR_COUNT; t++)
        sum += tensors->bytes[t];
    return sum;
}

enum lb_status lb_tensors_upload(const struct lb_tensors *tensors, int buffer,
                                 const struct lb_inputs *inputs, struct lb_error *err)
{
    for (int t = LB_X; t <= LB_DCN; t++)
        if (tensors->at[buffer][t] && inputs->at[t])
            LB_CHECK(tensors->space->upload(tensors->at[buffer][t], inputs->at[t],
                                            tensors->bytes[t], err));
    return LB_OK;
}

enum lb_status lb_poison_some(const struct lb_space *space, void *memory, size_t bytes,
                              uint64_t *random, struct lb_error *err)
{
    enum { PLACES = 5, SPAN = 64 };
    if (bytes <= SPAN)
        return space->poison(memory, bytes, err);
    size_t spans = bytes / SPAN; /* the last one is poisoned always, and ends with the memory */
    for (int i = 0; i < PLACES; i++) {
        size_t at = i + 1 < PLACES ? (size_t)(lb_random_next(random) % spans) * SPAN : bytes - SPAN;
        LB_CHECK(space->poison((char *)memory + at, SPAN, err));
    }
    return LB_OK;
}

enum lb_status lb_tensors_download(const struct lb_tensors *tensors,
                                   const struct lb_results *results, struct lb_error *err)
{
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++)
        if (tensors->at[tensors->buffer][t])
            LB_CHECK(tensors->space->download(results->at[t], tensors->at[tensors->buffer][t],
                                              tensors->bytes[t], err));
    return LB_OK;
}

struct lb_forward_io lb_forward_io(void *const at[LB_TENSOR_COUNT])
{
    return (struct lb_forward_io){.x = at[LB_X],
                                  .h0 = at[LB_H0],
                                  .c0 = at[LB_C0],
                                  .y = at[LB_Y],
                                  .hn = at[LB_HN],
                                  .cn = at[LB_CN],
                                  .mask = at[LB_MASK]};
}

struct lb_backward_io lb_backward_io(void *const at[LB_TENSOR_COUNT])
{
    return (struct lb_backward_io){.x = at[LB_X],
                                   .h0 = at[LB_H0],
                                   .c0 = at[LB_C0],
                                   .y = at[LB_Y],
                                   .dy = at[LB_DY],
                                   .dhn = at[LB_DHN],
                                   .dcn = at[LB_DCN],
                                   .dx = at[LB_DX],
                                   .dh0 = at[LB_DH0],
                                   .dc0 = at[LB_DC0],
                                   .mask = at[LB_MASK]};
}

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
