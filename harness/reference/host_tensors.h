/* Inputs and results of one problem in host memory: canonical shapes, in the problem's dtype. */
#ifndef LB_HOST_TENSORS_H
#define LB_HOST_TENSORS_H

#include "api/impl.h"

/* What a call reads. Gradients (dy, dhn, dcn) are NULL unless the pass has a backward. */
struct lb_inputs {
    void *x;                /* [T, B, I]; values past the end of a ragged row are not zero, and an
                               implementation must not read them */
    void *h0, *c0;          /* [L*D, B, H] */
    void *dy;               /* [T, B, D*H] */
    void *dhn, *dcn;        /* [L*D, B, H] */
    const int32_t *lengths; /* [B] descending, lengths[0] = T; NULL when not ragged */
    struct lb_weights weights;
};

/* What an implementation produced. Gradients (dx, dh0, dc0, gradients) are NULL unless the pass has
 * a backward. */
struct lb_results {
    void *y;                       /* [T, B, D*H] */
    void *hn, *cn;                 /* [L*D, B, H] */
    void *dx;                      /* [T, B, I] */
    void *dh0, *dc0;               /* [L*D, B, H] */
    struct lb_gradients gradients; /* one block of memory, which starts at dw_ih[0] */

    struct lb_counts counts; /* elements of the tensors; weights: of all gradients together */
    size_t element_bytes;    /* of the problem's dtype */
};

/* Allocates the results of the problem, filled with a poison pattern that is NaN in every dtype, so
 * that the comparison finds what an implementation leaves unwritten. LB_OOM; then *results is
 * zeroed. */
enum lb_status lb_results_create(const struct lb_problem *problem, struct lb_results *results,
                                 struct lb_error *err);
void lb_results_destroy(struct lb_results *results); /* accepts a zeroed one */

/* Fills all results with that poison again. */
void lb_results_poison(const struct lb_results *results);

/* A hash of all result bits, which tells whether two calls produced the same bits. */
uint64_t lb_results_hash(const struct lb_results *results);

#endif
