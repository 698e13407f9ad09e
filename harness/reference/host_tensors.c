/* Inputs and results in host memory: how results are allocated, poisoned and hashed. */
#include "reference/host_tensors.h"

#include <stdlib.h>
#include <string.h>

#include "device/memory.h"
#include "device/weight_packing.h"

enum { ARRAYS = 7 };

/* One contiguous block of results. */
struct array {
    void *data; /* NULL where the pass has no such result */
    size_t bytes;
};

static void list_arrays(const struct lb_results *r, struct array arrays[ARRAYS])
{
    size_t x = r->counts.x * r->element_bytes, state = r->counts.state * r->element_bytes;
    const struct array all[ARRAYS] = {
        {r->y, r->counts.y * r->element_bytes},
        {r->hn, state},
        {r->cn, state},
        {r->dx, x},
        {r->dh0, state},
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
 * guard bands show where they write past the end. The four tables of pointers are another block,
 * which starts with the table of dw_ih. */
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
                                               .db_hh = table + 3 * layer_dirs};
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
    LB_TRY(allocate(n->state * size, &results->hn, err));
    LB_TRY(allocate(n->state * size, &results->cn, err));
    if (lb_has_backward(problem)) {
        LB_TRY(allocate(n->x * size, &results->dx, err));
        LB_TRY(allocate(n->state * size, &results->dh0, err));
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

/* Takes bytes into a running hash, eight at a time: multiply and fold, as FNV does with single
 * bytes. */
static uint64_t hash_bytes(uint64_t hash, const void *memory, size_t bytes)
{
    const char *at = memory;
    while (bytes > 0) {
        uint64_t word = 0;
        size_t n = bytes < sizeof(word) ? bytes : sizeof(word);
        memcpy(&word, at, n);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */
        hash ^= hash >> 32;
        at += n;
        bytes -= n;
    }
    return hash;
}

uint64_t lb_results_hash(const struct lb_results *results)
{
    struct array arrays[ARRAYS];
    uint64_t hash = 0;
    list_arrays(results, arrays);
    for (size_t i = 0; i < ARRAYS; i++)
        if (arrays[i].data)
            hash = hash_bytes(hash, arrays[i].data, arrays[i].bytes);
    return hash;
}
