/* The tensors of one case, on the host and in the memory of an implementation. */
#include "reference/case_tensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"
#include "device/weight_packing.h"

/* ---- In host memory. ------------------------------------------------------------------------ */

enum { ARRAYS = 7 };

/* One contiguous block of results. */
struct array {
    void *data; /* NULL where the pass has no such result */
    size_t bytes;
};

static void list_arrays(const struct lb_results *r, struct array arrays[ARRAYS])
{
    size_t x = r->counts.x * r->element_bytes, state = r->counts.state * r->element_bytes;
    size_t h = r->h_count * r->element_bytes;
    const struct array all[ARRAYS] = {
        {r->y, r->counts.y * r->element_bytes},
        {r->hn, h},
        {r->cn, state},
        {r->dx, x},
        {r->dh0, h},
        {r->dc0, state},
        {r->gradients.dw_ih ? r->gradients.dw_ih[0] : NULL, r->counts.weights * r->element_bytes},
    };
    memcpy(arrays, all, sizeof(all));
}

void lb_results_poison(const struct lb_results *results)
{
    struct array arrays[ARRAYS];
    list_arrays(results, arrays);
    for (size_t i = 0; i < ARRAYS; i++)
        lb_poison(arrays[i].data, arrays[i].bytes);
}

static enum lb_status allocate(size_t bytes, void **out, struct lb_error *err)
{
    *out = malloc(bytes);
    return *out ? LB_OK : lb_fail(err, LB_OOM, "allocating %zu bytes for results failed", bytes);
}

/* All weight gradients are one block of lb_host_space, because implementations write to it and its
 * guard bands show where they write past the end. The tables of pointers are another block, which
 * starts with the table of dw_ih. */
static enum lb_status create_gradients(const struct lb_problem *p, struct lb_results *results,
                                       struct lb_error *err)
{
    size_t layer_dirs = lb_layer_dir_count(p), size = results->element_bytes;
    void *block;
    enum lb_status st = lb_host_space.allocate(results->counts.weights * size, &block, err);
    if (st != LB_OK)
        return st;
    void **table = malloc(LB_WEIGHT_COUNT * layer_dirs * sizeof(*table));
    if (!table) {
        lb_host_space.release(block);
        return lb_fail(err, LB_OOM, "out of memory for results");
    }
    char *at = block;
    for (size_t layer_dir = 0; layer_dir < layer_dirs; layer_dir++)
        for (size_t i = 0; i < LB_WEIGHT_COUNT; i++) {
            table[i * layer_dirs + layer_dir] = at;
            at += lb_weight_elements(p, layer_dir, (enum lb_weight)i) * size;
        }
    results->gradients = (struct lb_gradients){.dw_ih = table,
                                               .dw_hh = table + layer_dirs,
                                               .db_ih = table + 2 * layer_dirs,
                                               .db_hh = table + 3 * layer_dirs,
                                               .dw_cell = table + 4 * layer_dirs};
    return LB_OK;
}

enum lb_status lb_results_create(const struct lb_problem *problem, struct lb_results *results,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t size = lb_dtype_size(problem->dtype);
    *results = (struct lb_results){.element_bytes = size};
    const struct lb_counts *n = &results->counts;
    LB_TRY(lb_problem_counts(problem, &results->counts, err));
    LB_TRY(allocate(n->y * size, &results->y, err));
    results->h_count = lb_h_count(problem);
    LB_TRY(allocate(results->h_count * size, &results->hn, err));
    LB_TRY(allocate(n->state * size, &results->cn, err));
    if (lb_has_backward(problem)) {
        LB_TRY(allocate(n->x * size, &results->dx, err));
        LB_TRY(allocate(results->h_count * size, &results->dh0, err));
        LB_TRY(allocate(n->state * size, &results->dc0, err));
        LB_TRY(create_gradients(problem, results, err));
    }
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
    free(results->dc0);
    free(results->dh0);
    free(results->dx);
    free(results->cn);
    free(results->hn);
    free(results->y);
    *results = (struct lb_results){0};
}

uint64_t lb_results_hash(const struct lb_results *results)
{
    struct array arrays[ARRAYS];
    uint64_t hash = 0;
    list_arrays(results, arrays);
    for (size_t i = 0; i < ARRAYS; i++)
        if (arrays[i].data)
            hash = lb_hash_bytes(hash, arrays[i].data, arrays[i].bytes);
    return hash;
}

/* ---- In the memory of an implementation. ---------------------------------------------------- */

static const enum lb_tensor outputs[] = {LB_Y, LB_HN, LB_CN, LB_DX, LB_DH0, LB_DC0};
enum { OUTPUT_COUNT = sizeof(outputs) / sizeof(outputs[0]) };

static bool of_backward(enum lb_tensor t)
{
    return (t >= LB_DY && t <= LB_DCN) || t >= LB_DX;
}

static size_t element_count(const struct lb_problem *p, const struct lb_counts *n, enum lb_tensor t)
{
    switch (t) {
    case LB_X:
    case LB_DX: return n->x;
    case LB_Y:
    case LB_DY: return n->y;
    case LB_H0:
    case LB_HN:
    case LB_DHN:
    case LB_DH0: return lb_h_count(p);
    default: return n->state;
    }
}

enum lb_status lb_tensors_create(const struct lb_problem *problem, const struct lb_space *space,
                                 struct lb_tensors *tensors, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_counts counts;
    *tensors = (struct lb_tensors){.space = space};
    LB_TRY(lb_problem_counts(problem, &counts, err));
    for (int t = 0; t < LB_TENSOR_COUNT; t++) {
        if ((of_backward((enum lb_tensor)t) && !lb_has_backward(problem)) ||
            (t == LB_MASK && problem->cell != LB_CELL_RECURRENT_DROPOUT))
            continue;
        tensors->bytes[t] =
            element_count(problem, &counts, (enum lb_tensor)t) * lb_dtype_size(problem->dtype);
        LB_TRY(space->allocate(tensors->bytes[t], &tensors->at[0][t], err));
        tensors->at[1][t] = tensors->at[0][t];
        if (t <= LB_DCN) {
            tensors->at[1][t] = NULL;
            LB_TRY(space->allocate(tensors->bytes[t], &tensors->at[1][t], err));
        }
    }
done:
    if (st != LB_OK)
        lb_tensors_destroy(tensors);
    return st;
}

void lb_tensors_destroy(struct lb_tensors *tensors)
{
    for (int t = LB_TENSOR_COUNT - 1; t >= 0; t--) {
        if (t <= LB_DCN && tensors->at[1][t])
            tensors->space->release(tensors->at[1][t]);
        if (tensors->at[0][t])
            tensors->space->release(tensors->at[0][t]);
    }
    *tensors = (struct lb_tensors){0};
}

const char *lb_tensor_name(enum lb_tensor tensor)
{
    static const char *const names[] = {
        [LB_X] = "x",     [LB_H0] = "h0",   [LB_C0] = "c0",    [LB_DY] = "dy", [LB_DHN] = "dhn",
        [LB_DCN] = "dcn", [LB_Y] = "y",     [LB_HN] = "hn",    [LB_CN] = "cn", [LB_DX] = "dx",
        [LB_DH0] = "dh0", [LB_DC0] = "dc0", [LB_MASK] = "mask"};
    return names[tensor];
}

enum lb_tensor lb_tensors_overrun(const struct lb_tensors *tensors, const char **side)
{
    *side = NULL;
    for (int t = 0; t < LB_TENSOR_COUNT && tensors->space->overrun; t++)
        for (int buffer = 0; buffer < LB_INPUT_SETS; buffer++)
            if ((*side = tensors->space->overrun(tensors->at[buffer][t])))
                return (enum lb_tensor)t;
    return LB_TENSOR_COUNT;
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

static const void *input_of(const struct lb_inputs *inputs, int t)
{
    const void *const inputs_at[] = {
        [LB_X] = inputs->x,       [LB_H0] = inputs->h0, [LB_C0] = inputs->c0,
        [LB_MASK] = inputs->mask, [LB_DY] = inputs->dy, [LB_DHN] = inputs->dhn,
        [LB_DCN] = inputs->dcn,
    };
    return inputs_at[t];
}

enum lb_status lb_tensors_upload(const struct lb_tensors *tensors, int buffer,
                                 const struct lb_inputs *inputs, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int t = LB_X; t <= LB_DCN; t++)
        if (tensors->at[buffer][t])
            LB_TRY(tensors->space->upload(tensors->at[buffer][t], input_of(inputs, t),
                                          tensors->bytes[t], err));
done:
    return st;
}

enum lb_status lb_tensors_compare(const struct lb_tensors *tensors, int buffer,
                                  const struct lb_inputs *inputs, enum lb_tensor *changed,
                                  struct lb_error *err)
{
    enum lb_status st = LB_OK;
    bool on_host = tensors->space == &lb_host_space;
    size_t most = 0;
    void *copy = NULL;
    *changed = LB_TENSOR_COUNT;
    for (int t = LB_X; t <= LB_DCN; t++)
        most = tensors->bytes[t] > most ? tensors->bytes[t] : most;
    if (!on_host && !(copy = malloc(most)))
        return lb_fail(err, LB_OOM, "out of memory for a copy of the inputs");
    for (int t = LB_X; t <= LB_DCN && *changed == LB_TENSOR_COUNT; t++) {
        const void *at = tensors->at[buffer][t];
        if (!at)
            continue;
        if (!on_host)
            LB_TRY(tensors->space->download(copy, at, tensors->bytes[t], err));
        if (memcmp(on_host ? at : copy, input_of(inputs, t), tensors->bytes[t]) != 0)
            *changed = (enum lb_tensor)t;
    }
done:
    free(copy);
    return st;
}

enum lb_status lb_tensors_poison(const struct lb_tensors *tensors, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int i = 0; i < OUTPUT_COUNT; i++) {
        enum lb_tensor t = outputs[i];
        if (tensors->at[0][t])
            LB_TRY(tensors->space->poison(tensors->at[0][t], tensors->bytes[t], err));
    }
done:
    return st;
}

enum lb_status lb_tensors_poison_inputs(const struct lb_tensors *tensors, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int t = LB_X; t <= LB_DCN; t++)
        for (int buffer = 0; buffer < LB_INPUT_SETS && tensors->at[0][t]; buffer++)
            LB_TRY(tensors->space->poison(tensors->at[buffer][t], tensors->bytes[t], err));
done:
    return st;
}

enum lb_status lb_poison_some(const struct lb_space *space, void *memory, size_t bytes,
                              uint64_t *random, struct lb_error *err)
{
    enum { PLACES = 5, SPAN = 64 };
    enum lb_status st = LB_OK;
    if (!memory || bytes <= SPAN)
        return memory ? space->poison(memory, bytes, err) : LB_OK;
    size_t spans =
        bytes / SPAN; /* the last one is poisoned in any case, and ends with the memory */
    for (int i = 0; i < PLACES; i++) {
        size_t at = i + 1 < PLACES ? (size_t)(lb_random_next(random) % spans) * SPAN : bytes - SPAN;
        LB_TRY(space->poison((char *)memory + at, SPAN, err));
    }
done:
    return st;
}

enum lb_status lb_tensors_poison_some(const struct lb_tensors *tensors, uint64_t *random,
                                      struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int i = 0; i < OUTPUT_COUNT; i++) {
        enum lb_tensor t = outputs[i];
        LB_TRY(lb_poison_some(tensors->space, tensors->at[0][t], tensors->bytes[t], random, err));
    }
done:
    return st;
}

enum lb_status lb_tensors_hash(const struct lb_tensors *tensors, uint64_t *hash,
                               struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int i = 0; i < OUTPUT_COUNT; i++) {
        enum lb_tensor t = outputs[i];
        if (tensors->at[0][t])
            LB_TRY(tensors->space->hash(tensors->at[0][t], tensors->bytes[t], hash, err));
    }
done:
    return st;
}

enum lb_status lb_tensors_download(const struct lb_tensors *tensors,
                                   const struct lb_results *results, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    void *const to[OUTPUT_COUNT] = {results->y,  results->hn,  results->cn,
                                    results->dx, results->dh0, results->dc0};
    for (int i = 0; i < OUTPUT_COUNT; i++) {
        enum lb_tensor t = outputs[i];
        if (tensors->at[0][t])
            LB_TRY(tensors->space->download(to[i], tensors->at[0][t], tensors->bytes[t], err));
    }
done:
    return st;
}

struct lb_forward_io lb_tensors_forward(const struct lb_tensors *tensors, int buffer)
{
    void *const *at = tensors->at[buffer];
    return (struct lb_forward_io){.x = at[LB_X],
                                  .h0 = at[LB_H0],
                                  .c0 = at[LB_C0],
                                  .y = at[LB_Y],
                                  .hn = at[LB_HN],
                                  .cn = at[LB_CN],
                                  .mask = at[LB_MASK]};
}

struct lb_backward_io lb_tensors_backward(const struct lb_tensors *tensors, int buffer)
{
    void *const *at = tensors->at[buffer];
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
