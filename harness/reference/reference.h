/* The right answer of a problem: inputs drawn by seed, results of the double-precision oracle, the
 * tolerance that the problem deserves, and the comparison of a result with all three.
 *
 * Inputs and weights are drawn in f32 and rounded once to the dtype, so every implementation and
 * the oracle see the same numbers. A big batch is dealt from a few distinct rows (classes): the
 * oracle computes the few, every row of a result is compared with its class, and weight gradients
 * are the count-weighted sums over classes. */
#ifndef LB_REFERENCE_H
#define LB_REFERENCE_H

#include "api/impl.h"

/* Inputs on the host, canonical shapes, in the problem's dtype. */
struct lb_inputs {
    void *x;                /* [T, B, I]; not zeroed past a ragged row's end: must be ignored */
    void *h0, *c0;          /* [L*D, B, H] */
    void *dy;               /* [T, B, D*H]; NULL unless the pass has a backward, as the next two */
    void *dhn, *dcn;        /* [L*D, B, H] */
    const int32_t *lengths; /* [B] descending, lengths[0] = T; NULL when not ragged */
    struct lb_weights weights;
};

/* What an implementation produced, on the host, canonical shapes, in the problem's dtype. */
struct lb_results {
    void *y;         /* [T, B, D*H] */
    void *hn, *cn;   /* [L*D, B, H] */
    void *dx;        /* [T, B, I]; NULL unless the pass has a backward, as all below */
    void *dh0, *dc0; /* [L*D, B, H] */
    struct lb_gradients gradients;
};

/* Outcome of a comparison. Errors are the largest over all tensors, where each layer, direction and
 * gate counts as a tensor; NaN when a result is not finite. rel: |result - oracle| over the
 * tensor's largest |oracle|. norm: |result - oracle| / |oracle|, Euclidean, over a whole tensor. */
struct lb_check {
    bool right;
    bool in_gradient; /* when wrong: all that is produced by forward is right */
    double err_max_abs, err_max_rel, err_norm;
    char reason[256]; /* when wrong: tensor, index, value, what it should be, what is allowed */
};

struct lb_reference_cache; /* oracle results, kept by what they depend on */
struct lb_reference;       /* one problem's inputs and answers, for one batch size */

enum lb_status lb_reference_cache_create(size_t max_bytes, struct lb_reference_cache **out,
                                         struct lb_error *err);
void lb_reference_cache_destroy(struct lb_reference_cache *cache); /* accepts NULL */

/* How many answers were computed, and how many were found in the cache instead. */
void lb_reference_cache_counts(const struct lb_reference_cache *cache, size_t *computed,
                               size_t *reused);

/* Draws the inputs, and runs the oracle unless the cache knows the answer already.
 * The pass matters only by whether it has a backward. LB_OOM when memory runs out. */
enum lb_status lb_reference_open(struct lb_reference_cache *cache, const struct lb_problem *problem,
                                 uint64_t seed, struct lb_reference **out, struct lb_error *err);
void lb_reference_close(struct lb_reference *reference); /* accepts NULL */

const struct lb_inputs *lb_reference_inputs(const struct lb_reference *reference);

/* Host bytes that open and check will take, from above; for the check before anything is allocated.
 */
double lb_reference_bytes(const struct lb_problem *problem);

/* Compares every element of every tensor that the pass produces. */
void lb_reference_check(const struct lb_reference *reference, const struct lb_results *results,
                        struct lb_check *check);

/* Allocates canonical results for the problem, filled with a poison pattern that is NaN in every
 * dtype, so that what an implementation leaves unwritten is found. */
enum lb_status lb_results_create(const struct lb_problem *problem, struct lb_results *results,
                                 struct lb_error *err);
void lb_results_destroy(struct lb_results *results); /* accepts a zeroed one */

/* Fills results that were created for the problem with that poison again. */
void lb_results_poison(const struct lb_problem *problem, const struct lb_results *results);

/* Hash of all result bits, for telling whether two runs gave the same answer. */
uint64_t lb_results_hash(const struct lb_problem *problem, const struct lb_results *results);

#endif
