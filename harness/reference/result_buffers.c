/* Results on the host: their memory, poison and hash. */
#include <stdlib.h>
#include <string.h>

#include "device/memory.h"
#include "device/weight_packing.h"
#include "reference/reference.h"

void lb_results_poison(const struct lb_problem *problem, const struct lb_results *results)
{
    struct lb_counts n;
    size_t size = lb_dtype_size(problem->dtype);
    if (lb_problem_counts(problem, &n, NULL) != LB_OK)
        return;
    lb_poison(results->y, n.y * size);
    lb_poison(results->hn, n.state * size);
    lb_poison(results->cn, n.state * size);
    if (!lb_has_backward(problem))
        return;
    lb_poison(results->dx, n.x * size);
    lb_poison(results->dh0, n.state * size);
    lb_poison(results->dc0, n.state * size);
    lb_poison(results->gradients.dw_ih[0], n.weights * size);
}

static enum lb_status allocate(size_t bytes, void **out, struct lb_error *err)
{
    *out = malloc(bytes);
    return *out ? LB_OK : lb_fail(err, LB_OOM, "allocating %zu bytes for results failed", bytes);
}

/* All weight gradients in one block, which starts with the first entry's dw_ih, and is of
 * lb_host_space because implementations write to it; the tables of pointers in another, which
 * starts with that of dw_ih. */
static enum lb_status create_gradients(const struct lb_problem *p, size_t count,
                                       struct lb_gradients *gradients, struct lb_error *err)
{
    size_t entries = lb_layer_dir_count(p), size = lb_dtype_size(p->dtype);
    void *block;
    enum lb_status st = lb_host_space.allocate(count * size, &block, err);
    if (st != LB_OK)
        return st;
    void **table = malloc(LB_WEIGHT_COUNT * entries * sizeof(*table));
    if (!table) {
        lb_host_space.release(block);
        return lb_fail(err, LB_OOM, "out of memory for results");
    }
    char *at = block;
    for (size_t entry = 0; entry < entries; entry++)
        for (size_t i = 0; i < LB_WEIGHT_COUNT; i++) {
            table[i * entries + entry] = at;
            at += lb_weight_elements(p, entry, (enum lb_weight)i) * size;
        }
    *gradients = (struct lb_gradients){.dw_ih = table,
                                       .dw_hh = table + entries,
                                       .db_ih = table + 2 * entries,
                                       .db_hh = table + 3 * entries};
    return LB_OK;
}

enum lb_status lb_results_create(const struct lb_problem *problem, struct lb_results *results,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_counts n;
    size_t size = lb_dtype_size(problem->dtype);
    *results = (struct lb_results){0};
    LB_TRY(lb_problem_counts(problem, &n, err));
    LB_TRY(allocate(n.y * size, &results->y, err));
    LB_TRY(allocate(n.state * size, &results->hn, err));
    LB_TRY(allocate(n.state * size, &results->cn, err));
    if (lb_has_backward(problem)) {
        LB_TRY(allocate(n.x * size, &results->dx, err));
        LB_TRY(allocate(n.state * size, &results->dh0, err));
        LB_TRY(allocate(n.state * size, &results->dc0, err));
        LB_TRY(create_gradients(problem, n.weights, &results->gradients, err));
    }
    lb_results_poison(problem, results);
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

/* Bytes into a running hash, eight at a time: multiply and fold, as in FNV but wider. */
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

uint64_t lb_results_hash(const struct lb_problem *problem, const struct lb_results *results)
{
    struct lb_counts n;
    size_t size = lb_dtype_size(problem->dtype);
    if (lb_problem_counts(problem, &n, NULL) != LB_OK)
        return 0;
    uint64_t hash = hash_bytes(0, results->y, n.y * size);
    hash = hash_bytes(hash, results->hn, n.state * size);
    hash = hash_bytes(hash, results->cn, n.state * size);
    if (lb_has_backward(problem)) {
        hash = hash_bytes(hash, results->dx, n.x * size);
        hash = hash_bytes(hash, results->dh0, n.state * size);
        hash = hash_bytes(hash, results->dc0, n.state * size);
        hash = hash_bytes(hash, results->gradients.dw_ih[0], n.weights * size);
    }
    return hash;
}
