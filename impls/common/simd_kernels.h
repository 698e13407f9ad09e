/* The inner loops of cpu_simd, built for several vector widths and chosen at run time. openblas
 * uses their sigmoid and tanh.
 *
 * Hidden units are grouped into panels of `simd_width` units, one vector register wide; the last
 * panel is padded with zeros. The four gates of a panel are adjacent in memory, so one pass over a
 * batch row computes everything that the cells of the panel need. The rows of a panel follow one
 * another, so GEMMs over all steps read and write memory in order:
 *
 *     gates              [panels, T*B, 4, simd_width]: i f g o, and later gradients of a
 *     forward weights    [panels, k, 4, simd_width]; k: inputs, or hidden units of the step before
 *     weight gradients   [panels, k, 4, simd_width]
 *     backward weights   [groups, gates, vectors, simd_width]; a group: up to four vectors
 *
 * One call computes some panels, or one group of columns, for all rows. Sizes and strides are in
 * elements, not bytes.
 *
 * Kernels for bf16 and f16 store x, y, h, weights, gates and gradients of a in that type. Sums,
 * cell states, the bias and weight gradients are f32. Their GEMMs read an operand that pack_operand
 * wrote, and weights whose k is padded with zeros to a multiple of k_multiple; where pair is 2, two
 * consecutive k of a column are adjacent: [k/2, columns, 2] instead of [k, columns]. */
#ifndef LB_SIMD_KERNELS_H
#define LB_SIMD_KERNELS_H

#include <stdbool.h>

#include "api/dtype.h"
#include "host/cpu_units.h"

/* Rows of a matrix. Row r starts at at[r] or, where at is NULL, at base + r * stride. Where segment
 * is not 0, a row is stored in segments of that many elements (a divisor of 256), and one segment
 * starts `segment_stride` elements after the one before it. */
struct lb_cpu_rows {
    const void *const *at;
    const void *base;
    size_t stride;
    size_t segment, segment_stride;
};

/* A GEMM: sums [rows, columns] = start + a [rows, k] w [k, columns padded to whole vectors]; k
 * is at least 1. */
struct lb_cpu_gemm {
    size_t rows, k;
    size_t columns; /* at most 4*simd_width */
    struct lb_cpu_rows a;
    const void *w;
    const void *bias; /* [columns] start of every row; NULL: start is the present value of sums */
    void *sums;
    size_t stride; /* from one row of sums to the next */
};

/* One step of some panels: c = f c_before + i g, h = o tanh(c); with peepholes as problem.h says.
 */
struct lb_cpu_forward {
    struct lb_cpu_gemm gemm;       /* of panel 0; sums: bias and input GEMM */
    size_t panels_from, panels_to; /* what is computed */
    bool backwards;                /* begins with the last panel */
    size_t w_panel, sums_panel;    /* from one panel to the next */
    size_t units;                  /* H */
    const void *const *c_before;   /* [rows] each [H] */
    void *c;                       /* [rows, H]; may alias c_before */
    void *h;                       /* [rows, H] */
    size_t c_stride, h_stride;     /* from one row to the next */
    void *gates;           /* [rows] of panel 0 with the stride of sums; may be sums itself; NULL:
                            * gates are not kept */
    size_t gates_panel;    /* from one panel to the next */
    const void *peepholes; /* [3, padded_units] pi pf po, as elements of sums; NULL: none */
    size_t padded_units;   /* of all panels */
};

/* One backward step of up to four panels, which replaces gates by gradients of the
 * pre-activations. */
struct lb_cpu_backward {
    struct lb_cpu_gemm gemm; /* a: the later step's gradients; w: backward weights; columns:
                              * units of the panels; sums: scratch; k may be 0 */
    size_t first;            /* unit */
    const void *const *dhn;  /* [rows] each [H]; NULL unless this is the row's last step */
    const void *dy;          /* [rows], from the first unit on; NULL: neither dy nor dhn is added */
    void *gates;             /* [rows, 4*simd_width] i f g o of the first panel -> gradients of a */
    const void *c;           /* [rows, H] */
    const void *const *c_before;
    void *dc; /* [rows, H] in: from the later step; out: for the step before */
    void *dh; /* not NULL: the gradient of h [rows], from the first unit on, is the result, and the
               * fields from gates to dc are ignored */
    size_t dy_stride, c_stride, dh_stride;
    size_t panel_stride;   /* from the gates of one panel to those of the next */
    const void *mask;      /* [rows, H] times the GEMM; NULL: none */
    const void *peepholes; /* as in forward */
    size_t padded_units;
    void *cell_sums; /* [rows, 3, padded_units] sums over the steps of the peepholes' gradients */
};

/* One step of some rows of the cell layernorm, all units, whose padding has zeros for weights. What
 * only one of forward and backward has is marked. c is the normalised one. */
struct lb_cpu_layernorm {
    size_t rows, units, padded_units;
    const void *weights; /* [10, padded_units] w_cell, as elements of sums */
    void *sums;  /* forward: [rows, 4*simd_width] of the first panel: pre-activations, lost */
    void *gates; /* [rows, 4*simd_width] of the first panel: as in lb_cpu_forward and
                  * lb_cpu_backward; may be sums */
    size_t sums_stride, gates_stride; /* from one panel to the next */
    const void *const *c_before;      /* [rows] each [H] */
    void *c;                          /* [rows, H] */
    void *h;                          /* forward: [rows], h_stride apart */
    size_t c_stride, h_stride;
    void *norm; /* [rows, 5*padded_units + LB_CPU_FACTORS] i f g o c before gain and bias, and their
                 * five factors 1 / sqrt(var + epsilon); NULL: not kept */
    const void *dh;         /* backward: [rows, H] */
    const void *const *dhn; /* backward: [rows]; not NULL at the row's last step */
    void *dc;               /* backward: [rows, H] as in lb_cpu_backward */
    void *cell_sums; /* backward: [rows, 10, padded_units] sums over the steps of w_cell's gradients
                      */
    void *scratch;   /* [5*padded_units] as elements of sums */
};

enum { LB_CPU_FACTORS = 16 }; /* elements with room for five */

/* Weight gradients of one panel: dw [columns, 4*simd_width] = in [rows, columns] transposed, times
 * da [rows, 4*simd_width]; db [4*simd_width] = sum of the rows of da. */
struct lb_cpu_outer {
    size_t rows, columns;
    const void *in;
    size_t stride; /* from one row of `in` to the next */
    size_t skip;   /* transpose alone: rows before the first of `in`, which are zero; rows counts
                    * them */
    bool packed;   /* `in` has the layout that `pack` writes */
    const void *da;
    void *dw, *db; /* db may be NULL */
    bool add;      /* add to dw and db instead of overwriting them */
};

/* What follows is for units that multiply tiles of 16 rows of 64 bytes (AMX), and for int8, whose
 * kernels for other units read the same arrays. These consist of whole tiles, in the order in which
 * they are read, so that every load is of adjacent lines:
 *
 *     operand    [row groups, k tiles] tiles [group_rows, depth]
 *     weights    [panels, pairs, k tiles, 2] tiles [16 pairs of k, 16 columns, 2],
 *                of int8 [16 fours of k, 16 columns, 4]
 *
 * A row group is group_rows (at most 16) rows of a matrix; rows beyond its last one may have any
 * value. A panel is one or two pairs of column tiles: the four gates of 16 units, or up to 64
 * columns. k is padded with zeros to whole tiles of depth k_multiple: 32, and 64 for int8, whose
 * sums and starts are s32 in the arrays of floats below. */

enum {
    LB_TILE_ROWS = 16,
    LB_TILE_COLUMNS = 16,
    LB_TILE_DEPTH = 32,                            /* k */
    LB_TILE_HALVES = LB_TILE_ROWS * LB_TILE_DEPTH, /* elements of 16 bits */
    LB_TILE_BYTES = 2 * LB_TILE_HALVES,
    LB_TILE_BLOCK_ROWS = 64 /* rows whose sums are computed before their cells */
};

/* Rows [count] of k elements that become an operand. Where segment (a multiple of 32) is not 0, a
 * row is stored in segments of that many elements, segment_stride elements apart. */
struct lb_tile_rows {
    const void *from;
    size_t count, k, stride, segment, segment_stride;
    size_t first; /* the place of the first of them among the rows of the operand */
    size_t group_rows;
    float factor; /* of int8, which rounds f32 times it */
    void *operand;
};

/* A part of a sum over k: operand times weights. */
struct lb_tile_terms {
    const void *a, *w;
    size_t tiles; /* of k */
    size_t depth; /* k without its padding, which int8 on vectors leaves out */
};

/* A GEMM: for each panel, sums [rows, columns] = start + terms[0] + terms[1]. Strides are in
 * floats: from one panel, one column tile, and one row to the next. */
struct lb_tile_gemm {
    struct lb_tile_terms terms[2];
    const void *start;
    size_t start_panel, start_column, start_row; /* start_row 0: all rows start alike */
    size_t rows, group_rows, pairs, panels_from, panels_to;
    bool backwards; /* begins with the last panel */
    bool prefetch;  /* the next panel's weights of terms[1], which the L2 cache may not have */
    float *sums;    /* of `gemm` alone */
    size_t sums_panel, sums_column, sums_row;
};

/* What becomes of the sums where they don't go to memory; rows are those of the GEMM. `forward`
 * computes the cells of one panel of units from the sums of its gates; `backward` adds dy and dhn
 * to the sums, which are gradients of h, and replaces gates by gradients of the pre-activations;
 * `product` stores the sums. */
struct lb_tile_cell {
    size_t hidden; /* units, or columns of the product */
    float *state;  /* c, or the gradient of c: [panels of 16 units, state_rows, 16] */
    size_t state_rows;
    void *next_operand; /* of h, or of gradients of the pre-activations, for the next step */
    size_t operand_tiles;
    void *h; /* [rows] h_stride apart: h, dy, or the product */
    size_t h_stride;
    void *gates;         /* [panels, rows, 4, 16]; NULL in forward: gates and cells are not kept */
    size_t gates_stride; /* from one panel to the next */
    float *cells;        /* c of this step [rows, hidden] */
    const void *const *c_before; /* backward: [rows] each [hidden] */
    const void *const *dhn;      /* backward: [rows] each [hidden], or NULL */
    const float *scale, *bias;   /* int8: [panels, 4, 16] of the sums; NULL in other types */
};

struct lb_tile_pass {
    struct lb_tile_gemm gemm;
    struct lb_tile_cell cell;
};

struct lb_tile_kernels {
    /* Packs rows [from, to) of these. */
    void (*pack)(const struct lb_tile_rows *rows, size_t from, size_t to);
    /* The two factors of a weight gradient: columns of o->in as rows of an operand, whose k is
     * `depth` rows, zero from o->rows on; and a panel's o->da as weights. */
    void (*transpose)(const struct lb_cpu_outer *o, size_t depth, void *operand);
    void (*pair)(const struct lb_cpu_outer *o, void *weights);
    void (*sum_rows)(const struct lb_cpu_outer *o); /* db alone */
    void (*gemm)(const struct lb_tile_gemm *);      /* terms[0] alone, group_rows 16 */
    void (*forward)(const struct lb_tile_pass *);
    void (*backward)(const struct lb_tile_pass *);
    void (*product)(const struct lb_tile_pass *);
    int zero_point;        /* of int8: what its operands have added; starts have it subtracted */
    void (*release)(void); /* frees the unit's state on this thread, at the end of a call */
};

/* Error bounds of sigmoid and tanh in f32, in units in the last place (ulp) of the exact value
 * rounded to f32. */
#define LB_CPU_SIGMOID_ULP 3.0
#define LB_CPU_TANH_ULP    3.0
#define LB_CPU_BF16_ULP    2048.0 /* 2^-13 of the value */

struct lb_simd_kernels {
    const char *name; /* "AVX-512", "AVX2", ... */
    size_t simd_width;
    size_t pair, k_multiple;
    size_t operand_size; /* bytes of an operand's element; 0: rows are read in place */
    /* Writes rows [count] of k elements as an operand [count, k padded to k_multiple]. NULL for
     * f32 and f64. */
    void (*pack_operand)(const struct lb_cpu_rows *rows, size_t count, size_t k, void *operand);
    void (*accumulate)(const struct lb_cpu_gemm *);
    void (*forward)(const struct lb_cpu_forward *);
    void (*backward)(const struct lb_cpu_backward *);
    void (*layernorm)(const struct lb_cpu_layernorm *);
    void (*layernorm_backward)(const struct lb_cpu_layernorm *);
    /* out = a + b, or a * b, on stored elements [count]. */
    void (*combine)(const void *a, const void *b, bool times, void *out, size_t count);
    /* to [count] = sum of the rows of from [rows, count], stride apart, elements of sums; count is
     * a multiple of simd_width. */
    void (*sum)(const void *from, size_t rows, size_t count, size_t stride, void *to);
    void (*outer)(const struct lb_cpu_outer *);
    /* Copies o->in into the order in which outer reads it: [ceil(columns/group), rows, group], or,
     * for bf16 and f16, which outer takes only packed, an operand [columns, rows]. */
    void (*pack)(const struct lb_cpu_outer *o, void *packed);
    size_t group;
    /* Conversions of bf16 and f16 from and to f32. NULL for all other types. */
    void (*to_f32)(const void *from, float *to, size_t count);
    void (*from_f32)(const float *from, void *to, size_t count);
    const struct lb_tile_kernels *tiles; /* where not NULL, it replaces pack_operand to pack */
    /* Elementwise on v [count]; out may be v. f64 calls libm. bf16 and f16 take and return f32. The
     * error in f32 is at most LB_CPU_SIGMOID_ULP and LB_CPU_TANH_ULP, for bf16 LB_CPU_BF16_ULP, for
     * any finite v, except that sigmoids below 2^-125 are returned as 2^-125.5. NaN gives NaN. */
    void (*sigmoid)(const void *v, void *out, size_t count);
    void (*tanh)(const void *v, void *out, size_t count);
};

/* Lists all kernels that this CPU supports for a dtype, fastest first, and returns how many: at
 * least one, in plain C. The first call asks Linux for the permission to use AMX. */
size_t lb_simd_kernels_all(enum lb_dtype dtype,
                           const struct lb_simd_kernels *list[LB_CPU_UNIT_COUNT]);

/* The fastest of them. */
const struct lb_simd_kernels *lb_simd_kernels_best(enum lb_dtype dtype);

#endif
