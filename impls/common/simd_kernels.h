/* The inner loops of cpu_simd, built for several vector widths and chosen at run time; openblas
 * takes its sigmoid and tanh from here.
 *
 * Hidden units come in panels of `lanes`, one vector wide; the last is filled up with zeros. A
 * panel's four gates lie side by side, so that one pass over a row's products finds all that its
 * cells need, and a panel's rows one behind the other, so that products over all steps read and
 * write memory in order:
 *
 *     gates              [panels, T*B, 4, lanes]: i f g o, and later gradients of a
 *
 *     forward weights    [panels, k, 4, lanes]; k: inputs, or hidden units of the step before
 *
 *     weight gradients   [panels, k, 4, lanes]
 *
 *     backward weights   [groups, gates, vectors, lanes]: columns of the weights in groups of four
 *                        vectors, of the last as many as there are
 *
 * One call computes one panel, or one group of columns, of all rows. Sizes and strides count
 * elements, not bytes. */
#ifndef LB_SIMD_KERNELS_H
#define LB_SIMD_KERNELS_H

#include <stdbool.h>

#include "api/dtype.h"

/* Rows of a matrix: each where at[row] says or, without at, stride elements apart. Where piece is
 * not 0, only that many elements of a row, a divisor of 256, are side by side: each such piece is
 * `jump` elements behind the one before. */
struct lb_cpu_rows {
    const void *const *at;
    const void *base;
    size_t stride;
    size_t piece, jump;
};

/* sums [rows, columns] = start + a [rows, k] w [k, columns filled up to whole vectors], k at least
 * 1 */
struct lb_cpu_product {
    size_t rows, k;
    size_t columns; /* at most 4*lanes */
    struct lb_cpu_rows a;
    const void *w;
    const void *bias; /* [columns] start of every row; NULL: what sums hold */
    void *sums;
    size_t stride; /* of sums */
};

/* One step of one panel: c = f c_before + i g, h = o tanh(c). */
struct lb_cpu_forward {
    struct lb_cpu_product product; /* sums: input products and bias, replaced by gates if keep */
    size_t units;                  /* of the panel, at most lanes */
    size_t first;                  /* the panel's first unit: index into rows of states */
    const void *const *c_before;   /* [rows] each [H] */
    void *c;                       /* [rows, H]; may alias c_before */
    void *h;                       /* [rows] of a tensor with rows of h_stride; the first unit */
    size_t c_stride, h_stride;
    bool keep;
};

/* One step of up to four panels, backwards: gates become gradients of the pre-activations. */
struct lb_cpu_backward {
    struct lb_cpu_product product; /* a: the later step's gradients; w: backward weights; columns:
                                    * units of the panels; sums: scratch; k may be 0 */
    size_t first;                  /* unit */
    const void *const *dhn; /* [rows] each [H], or NULL where the row goes on after this step */
    const void *dy;         /* [rows], its first unit */
    void *gates;            /* [rows, 4*lanes] i f g o of the first panel -> gradients of a */
    const void *c;          /* [rows, H] */
    const void *const *c_before;
    void *dc;  /* [rows, H] from the later step -> for the step before */
    void *dh0; /* not NULL: only the product, into [rows, H]; what stands above is not read */
    size_t dy_stride, c_stride;
    size_t gates_jump; /* from a panel's gates to the next one's */
};

/* One panel's share of weight gradients: dw [columns, 4*lanes] = in [rows, columns] transposed,
 * times da [rows, 4*lanes]; db [4*lanes] = sums of da's rows. */
struct lb_cpu_outer {
    size_t rows, columns;
    const void *in;
    size_t stride; /* of in */
    bool packed;   /* in is as `pack` writes it */
    const void *da;
    void *dw, *db; /* db may be NULL */
    bool add;      /* to what dw and db hold */
};

/* Bounds on the error of f32, in units of the last place of the right value rounded to f32. */
#define LB_CPU_SIGMOID_ULP 3.0
#define LB_CPU_TANH_ULP    3.0

struct lb_simd_kernels {
    const char *name; /* "AVX-512", "AVX2", ... */
    size_t lanes;
    void (*accumulate)(const struct lb_cpu_product *);
    void (*forward)(const struct lb_cpu_forward *);
    void (*backward)(const struct lb_cpu_backward *);
    void (*outer)(const struct lb_cpu_outer *);
    /* o->in in the order in which outer reads it -> packed, [ceil(columns/group), rows, group]. */
    void (*pack)(const struct lb_cpu_outer *o, void *packed);
    size_t group;
    /* The cell's functions of v [count], count a multiple of lanes; out may be v. f64: libm's. f32:
     * at most LB_CPU_SIGMOID_ULP and LB_CPU_TANH_ULP units in the last place off for any finite v,
     * but for sigmoids below 2^-125, which come out as 2^-125.5; NaN gives NaN. */
    void (*sigmoid)(const void *v, void *out, size_t count);
    void (*tanh)(const void *v, void *out, size_t count);
};

extern const struct lb_simd_kernels lb_simd_kernels_plain_f32, lb_simd_kernels_plain_f64;
extern const struct lb_simd_kernels lb_simd_kernels_avx2_f32, lb_simd_kernels_avx2_f64;
extern const struct lb_simd_kernels lb_simd_kernels_avx512_f32, lb_simd_kernels_avx512_f64;

/* The widest that this build has and this CPU runs, for f32 or f64. */
const struct lb_simd_kernels *lb_simd_kernels_best(enum lb_dtype dtype);

/* All that this CPU runs, widest first; returns how many. For tests. */
size_t lb_simd_kernels_all(enum lb_dtype dtype, const struct lb_simd_kernels *list[3]);

#endif
