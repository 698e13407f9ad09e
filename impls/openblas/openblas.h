/* openblas: the state that openblas.c and run.c share. Sizes are in elements. */
#ifndef LB_OPENBLAS_H
#define LB_OPENBLAS_H

#include "api/impl.h"
#include "impls/common/simd_kernels.h"

struct lb_openblas {
    struct lb_problem problem;
    struct lb_buffers buffers;
    const struct lb_simd_kernels *kernels; /* only their sigmoid and tanh are used */
    int threads;
    size_t T, B, H, D, L;
    size_t layer_dirs, rows, wide; /* L*D, T*B, D*H */
    size_t elem;                   /* bytes of an element */
    size_t units, gates;           /* H padded to whole vectors; four times that */

    /* In the harness's buffers; NULL where the pass needs none. */
    char *gate_rows; /* [L*D, T*B, 4, units], later gradients of a; infer: of one layer_dir */
    char *cells;     /* [L*D, T + 1, B, units], see cells_at; infer: two steps of one
                      * layer_dir */
    char *lower;     /* outputs of all layers but the last, each [T, B, D*H]; infer: two */
    char *tanh_c;    /* [B, units] */
    char *dh, *dc;   /* [B, units] */
    char *first;     /* [B, 4, units] gradients of a at each row's first step */
    char *between;   /* [T, B, D*H] gradient of a lower layer's output */
    char description[160];
};

/* The weights of one layer_dir or their gradients, [4, units, columns]: rows past H are zero. */
struct lb_openblas_parts {
    char *ih, *hh, *bias; /* of I_l, H and 1 columns */
};

/* Those of a layer_dir in `base`, which is the buffer of weights or of gradients. */
struct lb_openblas_parts lb_openblas_parts_of(const struct lb_openblas *blas, void *base,
                                              size_t layer_dir);

size_t lb_openblas_input(const struct lb_openblas *blas, size_t layer_dir); /* I_l */

/* The timed calls. */
void lb_openblas_forward(const struct lb_openblas *blas, const struct lb_forward_io *io);
void lb_openblas_backward(const struct lb_openblas *blas, const struct lb_backward_io *io);

/* sum [count] += values */
void lb_openblas_add(const struct lb_openblas *blas, size_t count, const void *values, void *sum);

/* Element `index` of an array. */
static inline char *lb_blas_at(const struct lb_openblas *blas, const void *base, size_t index)
{
    return (char *)((uintptr_t)base + index * blas->elem);
}

#endif
