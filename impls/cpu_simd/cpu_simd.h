/* cpu_simd: the state that its files share. Sizes are in elements. */
#ifndef LB_CPU_SIMD_H
#define LB_CPU_SIMD_H

#include <string.h>

#include "api/impl.h"
#include "base/arena.h"
#include "base/thread_pool.h"
#include "impls/common/simd_kernels.h"
#include "machine/cpu_plan.h"

/* The arrays of the passes on tiles, each with a part per team. */
struct lb_cpu_tiles {
    char *x, *h;  /* operands: x of a chunk of steps, and two of h */
    char *da;     /* operands: two of gradients of a */
    float *pre;   /* bias plus input GEMM of a chunk */
    float *state; /* c, and in backward its gradient */
    char *dx;     /* per thread: operands of the input gradients */
    size_t x_bytes, h_bytes, da_bytes, pre_count, state_count, dx_bytes;
};

struct lb_cpu_simd {
    struct lb_problem problem;
    struct lb_buffers buffers;
    size_t T, B, H, D, L, simd_width;
    size_t P;          /* size of h: H but for the cell projection */
    size_t layer_dirs; /* L*D; layer_dir l*D + d is layer l, direction d */
    size_t rows;       /* T*B */
    size_t wide;       /* D*P */
    size_t units;      /* simd_width * panels: H, padded */
    size_t h_panels;   /* of width columns each, that hold a row of h */
    size_t panels;     /* of simd_width hidden units each, the last one padded */
    size_t width;      /* 4 * simd_width: gates of a panel; columns of a group in backward */
    size_t gates;      /* width * panels: gates of a row, padded */
    size_t group;      /* panels of a group that a backward step computes: 4, 2 or 1 */
    const struct lb_simd_kernels *kernels;
    struct lb_pinned_threads *pinned_threads; /* NULL: only the calling thread */
    size_t threads;                           /* teams * team_size */
    size_t teams;     /* which divide the rows of the batch, and meet at the end of a layer */
    size_t team_size; /* threads that divide the hidden units, and meet after each step */
    size_t panel_parts, column_parts;             /* of the GEMMs of weight gradients */
    size_t copies;                                /* of the packed weights, one per NUMA node */
    unsigned char copy_of[LB_MAX_PINNED_THREADS]; /* the copy that a thread reads */
    size_t elem;                                  /* bytes of a stored element */
    size_t sum_elem; /* bytes of an element of sums, cell states, bias and weight gradients */
    size_t w_elem;   /* bytes of a packed weight of w_ih and w_hh: elem, of int8 1 */
    bool half;       /* bf16 or f16: sum_elem is not elem, and GEMMs take packed operands */
    size_t chunk;    /* number of steps per input GEMM */
    size_t pre_rows; /* rows of a panel in `pre`, or in kept_gates where that serves for it */

    /* In the harness's buffers; NULL where the pass needs none. Elements of pre, cells, c0, c, dc
     * and sums have sum_elem bytes, those of all other arrays elem. */
    char *pre;        /* [panels, chunk, B, width] bias plus input GEMM; NULL: in kept_gates */
    char *kept_gates; /* [L*D, panels, T, B, width], later gradients of a; NULL in infer */
    char *cells;      /* [L*D, T, B, H]; NULL in infer */
    char *lower;      /* [L-1, T, B, D*P] outputs of all layers but the last; infer: two of them */
    char *c0, *c; /* [L*D, B, H] f32 copies of cell states at a row's first step, and in infer at */
    char *dc;     /* the present step; of their gradients; NULL where the caller's serve */
    char *between;  /* [T, B, D*P] gradient of a lower layer's output */
    char *first;    /* [panels, B, width] gradients of a at each row's first step */
    char *sums;     /* [threads, sum_count] of a backward step, or of input gradients */
    char *packed;   /* [threads, packed_bytes] packed inputs of the weight gradients */
    char *operands; /* [threads, operand_bytes] */
    size_t sum_count, packed_bytes, operand_bytes;
    struct lb_cpu_tiles tiles;
    const void **pointers; /* [threads, 2, B] */

    /* Of cells other than the standard one; NULL where the problem's cell has none. */
    char *h;  /* residual: h, recurrent-dropout: mask h, [layers, T, B, D*H]; infer: two layers */
    char *h0; /* recurrent-dropout: mask h0 [L*D, B, H] */
    char *hidden;    /* projection: o tanh(c) [L*D, T, B, H]; infer: [B, H] of one step */
    char *dh;        /* gradient of h: layernorm [B, H]; projection [h_panels, T, B, width] */
    char *norm;      /* layernorm: [L*D, T, B, norm_count], see struct lb_cpu_layernorm; sum_elem */
    char *cell_sums; /* [B, cell_rows, units] parts of the gradient of w_cell; sum_elem */
    char *scratch;   /* layernorm: [threads, 5, units]; sum_elem */
    size_t norm_count, cell_rows;
    char description[320];
};

/* The packed weights of one layer_dir, in the layout of simd_kernels.h, where k is I_l or P padded:
 * w_ih [panels, k, 4, simd_width], w_hh likewise, bias [gates]; and, where the pass has a backward,
 * back_hh of P columns and back_ih of I_l columns, [groups, gates, columns], where groups have
 * `group` vectors of columns in back_hh and four in back_ih. int8 has scale [gates] of the sums,
 * and start [gates] s32. */
struct lb_cpu_weights {
    char *w_ih, *w_hh, *bias, *scale, *start, *back_hh, *back_ih;
    /* w_cell. layernorm and peephole: cell [cell_rows, units] of sum_elem. projection: cell
     * [groups of four vectors, H padded, columns of h], and, for backward, back_cell [groups of
     * `group` vectors, P padded, units]. */
    char *cell, *back_cell;
};

struct lb_cpu_weights lb_cpu_weights_of(const struct lb_cpu_simd *s, size_t copy, size_t layer_dir);

/* The weight gradients of one layer_dir: dw_ih [panels, I_l, width], dw_hh [panels, P, width], db
 * [gates], dw_cell [cell_rows, units], for the projection [h_panels, H, width]. */
struct lb_cpu_gradients {
    char *dw_ih, *dw_hh, *db, *dw_cell;
};

struct lb_cpu_gradients lb_cpu_gradients_of(const struct lb_cpu_simd *s, size_t layer_dir);

/* Bytes of all copies of the packed weights, and of the weight gradients, of all layer_dirs. */
size_t lb_cpu_weight_bytes(const struct lb_cpu_simd *s);
size_t lb_cpu_gradient_bytes(const struct lb_cpu_simd *s);

/* n / step, rounded up. */
static inline size_t lb_cpu_cover(size_t n, size_t step)
{
    return (n + step - 1) / step;
}

static inline size_t lb_cpu_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Whether step t takes the panels, or groups of them, backwards. Every second step does, and so
 * begins with the weights that were read last. With more than two rows, kernels prefetch the panel
 * that follows. */
static inline bool lb_cpu_backwards(size_t t, size_t rows)
{
    return t % 2 == 1 && rows <= 2;
}

/* The hidden units of some panels, and of one. */
static inline struct lb_cpu_range lb_cpu_units(const struct lb_cpu_simd *s,
                                               struct lb_cpu_range panels)
{
    size_t width = s->simd_width, H = s->H;
    return (struct lb_cpu_range){lb_cpu_least(panels.from * width, H),
                                 lb_cpu_least(panels.to * width, H)};
}

static inline struct lb_cpu_range lb_cpu_panel_units(const struct lb_cpu_simd *s, size_t panel)
{
    return lb_cpu_units(s, (struct lb_cpu_range){panel, panel + 1});
}

static inline size_t lb_cpu_input(const struct lb_cpu_simd *s, size_t layer_dir) /* I_l */
{
    return layer_dir < s->D ? (size_t)s->problem.input : s->wide;
}

/* Columns of a weight gradient in memory: tiles write whole tiles. */
static inline size_t lb_cpu_gradient_columns(const struct lb_cpu_simd *s, size_t columns)
{
    return s->kernels->tiles ? lb_cpu_cover(columns, LB_TILE_ROWS) * LB_TILE_ROWS : columns;
}

/* The thread's panels, of `panels` in all, in the GEMM of a weight gradient. */
static inline struct lb_cpu_range lb_cpu_own_panels(const struct lb_cpu_simd *s, size_t thread,
                                                    size_t panels)
{
    size_t part = thread / s->column_parts;
    return part < s->panel_parts ? lb_cpu_share(panels, s->panel_parts, part)
                                 : (struct lb_cpu_range){0, 0};
}

/* Columns of the input of a GEMM of weight gradients whose blocks are divided among threads: a
 * multiple of the numbers of rows that kernels compute and pack at a time. */
static inline size_t lb_cpu_column_block(const struct lb_cpu_simd *s)
{
    return s->kernels->group > 1 ? 4 * s->kernels->group : 32;
}

/* The thread's columns of the input of a weight gradient. */
static inline struct lb_cpu_range lb_cpu_own_columns(const struct lb_cpu_simd *s, size_t thread,
                                                     size_t columns)
{
    size_t parts = s->column_parts, block = lb_cpu_column_block(s);
    struct lb_cpu_range blocks = lb_cpu_share(lb_cpu_cover(columns, block), parts, thread % parts);
    return (struct lb_cpu_range){blocks.from * block, lb_cpu_least(blocks.to * block, columns)};
}

/* Bytes that one thread needs to pack the inputs of weight gradients. */
size_t lb_cpu_packed_bytes(const struct lb_cpu_simd *s);

/* Number of rows of input gradients that are computed at a time. */
size_t lb_cpu_gradient_rows(const struct lb_cpu_simd *s, size_t input);

/* The largest I_l of all layers. */
size_t lb_cpu_widest_input(const struct lb_cpu_simd *s);

/* True for a layer whose output is not h: that of the cell residual, but for the first. */
static inline bool lb_cpu_adds_input(const struct lb_cpu_simd *s, size_t l)
{
    return s->problem.cell == LB_CELL_RESIDUAL && l > 0;
}

/* Element `index` of an array of stored elements, and of one of sum_elem. */
static inline char *lb_cpu_at(const struct lb_cpu_simd *s, const void *base, size_t index)
{
    return (char *)((uintptr_t)base + index * s->elem);
}

static inline char *lb_cpu_sum_at(const struct lb_cpu_simd *s, const void *base, size_t index)
{
    return (char *)((uintptr_t)base + index * s->sum_elem);
}

/* The length of the k loop of a GEMM: k padded as the kernels want it. */
static inline size_t lb_cpu_padded(const struct lb_cpu_simd *s, size_t k)
{
    size_t multiple = s->kernels->k_multiple;
    return lb_cpu_cover(k, multiple) * multiple;
}

static inline size_t lb_cpu_length(const struct lb_cpu_simd *s, size_t b)
{
    return s->buffers.lengths ? (size_t)s->buffers.lengths[b] : s->T;
}

/* The end of the rows of a range that have a step t. They are the first ones, since lengths
 * descend. */
static inline size_t lb_cpu_active_to(const struct lb_cpu_simd *s, struct lb_cpu_range rows,
                                      size_t t)
{
    while (rows.to > rows.from && lb_cpu_length(s, rows.to - 1) <= t)
        rows.to--;
    return rows.to;
}

/* The first step that direction d computes in row b, which is the last one of the other. */
static inline size_t lb_cpu_first_step(const struct lb_cpu_simd *s, size_t d, size_t b)
{
    return d == 0 ? 0 : lb_cpu_length(s, b) - 1;
}

/* Zeros in any type, for as many columns as a panel has. */
static inline const void *lb_cpu_zeros(void)
{
    static const double zeros[64] = {0};
    return zeros;
}

/* Stored elements [count] as elements of sums, and back. */
static inline void lb_cpu_to_sums(const struct lb_cpu_simd *s, const void *from, void *to,
                                  size_t count)
{
    if (s->half)
        s->kernels->to_f32(from, (float *)to, count);
    else
        memcpy(to, from, count * s->elem);
}

static inline void lb_cpu_from_sums(const struct lb_cpu_simd *s, const void *from, void *to,
                                    size_t count)
{
    if (s->half)
        s->kernels->from_f32((const float *)from, to, count);
    else
        memcpy(to, from, count * s->elem);
}

/* The panels, or groups of columns, that a thread works on in a step. */
static inline struct lb_cpu_range lb_cpu_columns(const struct lb_cpu_simd *s, size_t n,
                                                 size_t thread)
{
    return lb_cpu_share(n, s->team_size, thread % s->team_size);
}

/* Returns when the threads of the team have all done this step. */
static inline void lb_cpu_end_step(const struct lb_cpu_simd *s)
{
    if (s->team_size > 1)
        lb_pinned_threads_team_barrier(s->pinned_threads);
}

/* The work of one thread; arg is a struct lb_cpu_call. */
struct lb_cpu_call {
    const struct lb_cpu_simd *s;
    const struct lb_weights *weights;
    const struct lb_gradients *gradients;
    const struct lb_forward_io *io; /* in backward that of the forward before, without hn and cn */
    const struct lb_backward_io *back; /* NULL in forward */
};

/* A thread's part of a call, of all layer_dirs.
 *
 * pack: the canonical weights; a thread of each copy's first team packs those panels and groups
 * that it will use. touch: writes zeros to the weight gradients of the thread's own panels. What a
 * thread writes first lies in the memory of its node. unpack: the weight gradients to the canonical
 * layout. forward and backward: the passes, with or without tiles. */
void lb_cpu_pack_work(void *arg, size_t thread);
void lb_cpu_touch_work(void *arg, size_t thread);
void lb_cpu_unpack_work(void *arg, size_t thread);
void lb_cpu_forward_work(void *arg, size_t thread);
void lb_cpu_backward_work(void *arg, size_t thread);

/* How the steps of a layer are computed. Without tiles only `chunk` is set; on tiles the plan is
 * that of the thread with the most work. */
struct lb_cpu_step_plan {
    size_t chunk; /* number of steps per input GEMM, or whose x is packed at a time */
    bool fused;   /* on tiles: a step multiplies x too */
    size_t x_tiles, h_tiles;
};

/* One layer and direction, with the part of the work of one thread. */
struct lb_cpu_layer_dir {
    const struct lb_cpu_simd *s;
    const struct lb_forward_io *io;
    const struct lb_backward_io *back;
    size_t thread, index, l, d, input; /* layer_dir `index` is layer l, direction d; input is I_l */
    struct lb_cpu_weights w;
    struct lb_cpu_range rows;   /* of this thread's team in a step */
    size_t row_count;           /* of them */
    struct lb_cpu_range panels; /* of this thread in a step */
    const char *in;             /* [T, B, I_l] */
    char *y;                    /* [T, B, D*P], at this direction's first unit */
    char *states;               /* as y: h as the next step multiplies it */
    char *cell_h;               /* o tanh(c), where the cell writes it: h but for the projection */
    size_t h_stride, h_step;    /* of cell_h: from row to row, and from step to step */
    size_t h_at, c_at;          /* elements before those of h [L*D, B, P] and c [L*D, B, H] */
    const char *h0;             /* [B, P] */
    const char *c0;             /* [B, H], elements of sum_elem bytes */
    char *c; /* [T, B, H] where `cells` are kept, else [B, H]; elements of sum_elem bytes */
    /* [B] of this thread, set for each step. Forward has h_before, and backward dhn, in one array:
     * NULL unless the step is the row's last. */
    const void **c_before, **h_before, **dhn;
    char *sums; /* scratch of this thread */
    struct lb_cpu_step_plan plan;

    /* On tiles, of the team. */
    size_t group_rows;            /* of a row group in a step */
    char *tile_x, *operand[2];    /* operands; those of steps alternate */
    float *tile_pre, *tile_state; /* state: c, or its gradient */

    /* Of backward. */
    struct lb_cpu_range groups;   /* of panels, of this thread in a step */
    struct lb_cpu_range h_groups; /* the same of columns of h */
    const char *dy;               /* as y */
    const char *mask;             /* [B, H]; NULL: none */
    char *dc;                     /* [B, H] of sum_elem bytes */
};

struct lb_cpu_layer_dir lb_cpu_layer_dir_of(const struct lb_cpu_call *call, size_t index,
                                            size_t thread);

/* The gates of a panel from a row on. */
static inline char *lb_cpu_gates(const struct lb_cpu_simd *s, size_t layer_dir, size_t panel,
                                 size_t row)
{
    size_t before = (layer_dir * s->panels + panel) * s->rows + row;
    return lb_cpu_at(s, s->kept_gates, before * s->width);
}

/* Rows [count] of k elements as the kernels' GEMM takes them: where they are, or, for bf16 and f16,
 * packed into this thread's operand. */
static inline struct lb_cpu_rows lb_cpu_operand(const struct lb_cpu_layer_dir *ld,
                                                struct lb_cpu_rows rows, size_t count, size_t k)
{
    const struct lb_cpu_simd *s = ld->s;
    char *operand = s->operands + ld->thread * s->operand_bytes;
    if (!s->half)
        return rows;
    s->kernels->pack_operand(&rows, count, k, operand);
    return (struct lb_cpu_rows){.base = operand, .stride = lb_cpu_padded(s, k)};
}

/* The thread's share of its team's rows up to `to`. */
static inline struct lb_cpu_range lb_cpu_own_rows(const struct lb_cpu_layer_dir *ld, size_t to)
{
    size_t first = ld->rows.from;
    struct lb_cpu_range share = lb_cpu_columns(ld->s, to - first, ld->thread);
    return (struct lb_cpu_range){first + share.from, first + share.to};
}

/* Zeros to `count` elements of each of the team's rows from `to` on, which have ended. base: those
 * of row 0 of the batch. */
static inline void lb_cpu_clear_ended(const struct lb_cpu_layer_dir *ld, size_t to, char *base,
                                      size_t stride, size_t count)
{
    for (size_t b = to; b < ld->rows.to; b++)
        memset(lb_cpu_at(ld->s, base, b * stride), 0, count * ld->s->elem);
}

/* This thread's rows and units of a state [B, H] as elements of sums. */
static inline void lb_cpu_state_to_sums(const struct lb_cpu_layer_dir *ld, const void *from,
                                        char *to)
{
    const struct lb_cpu_simd *s = ld->s;
    struct lb_cpu_range units = lb_cpu_units(s, ld->panels);
    for (size_t b = ld->rows.from; b < ld->rows.to; b++) {
        size_t at = b * s->H + units.from;
        lb_cpu_to_sums(s, lb_cpu_at(s, from, at), lb_cpu_sum_at(s, to, at), units.to - units.from);
    }
}

/* The thread's part of c0 as elements of sums, where it has others. */
static inline void lb_cpu_convert_c0(const struct lb_cpu_layer_dir *ld)
{
    const struct lb_cpu_simd *s = ld->s;
    if (s->half)
        lb_cpu_state_to_sums(ld, lb_cpu_at(s, ld->io->c0, ld->c_at), lb_cpu_sum_at(s, ld->c0, 0));
}

/* Of this thread's rows up to `to`: forward finds h and c before step t; backward finds c before
 * it, and dhn of the rows whose last step it is. */
void lb_cpu_find_states(const struct lb_cpu_layer_dir *ld, size_t t, size_t to);

/* What forward and backward of the cell layernorm have in common in these rows at step t. */
struct lb_cpu_layernorm lb_cpu_layernorm_of(const struct lb_cpu_layer_dir *ld,
                                            struct lb_cpu_range rows, size_t t);

/* In these panels and rows: zeroes gradients of a at step t in rows from `to` on, which have no
 * such step, and copies those of rows whose first step it is to `first`. */
void lb_cpu_close_step(const struct lb_cpu_layer_dir *ld, struct lb_cpu_range panels,
                       struct lb_cpu_range rows, size_t t, size_t to);

/* ---- Tiles -------------------------------------------------------------------------------------
 * Layouts are those of lb_tile_kernels.
 *
 * A step's operand is [x_t h_t-1], row group by row group, and its cells write h both to y and into
 * the operand of the next step. Where the weights of a layer stay in the L2 cache, a step
 * multiplies both parts (fused). Where they don't, the input GEMM of a chunk of steps comes first,
 * so that w_ih is read once per chunk. Backward steps do the same with gradients of the
 * pre-activations. The threads of a team share their operands: each packs a share of the rows and
 * computes its own panels. */

/* Sets the pointers of `tiles`. */
void lb_cpu_tiles_lay_out(struct lb_cpu_simd *s, struct lb_arena *scratch);

/* Bytes per thread of `packed`. */
size_t lb_cpu_tiles_packed_bytes(const struct lb_cpu_simd *s);

struct lb_cpu_step_plan lb_cpu_tiles_plan(const struct lb_cpu_simd *s, size_t input);

/* The parts of a forward pass: before the first step; x of `steps` steps from t on, which are the
 * chunk of the steps that follow; step t, the number'th that is computed and the `at`'th of its
 * chunk in memory order; after the last one, the state [L*D, B, H]. */
void lb_cpu_tiles_start(const struct lb_cpu_layer_dir *ld);
void lb_cpu_tiles_input(const struct lb_cpu_layer_dir *ld, size_t t, size_t steps);
void lb_cpu_tiles_step(const struct lb_cpu_layer_dir *ld, size_t t, size_t at, size_t number);
void lb_cpu_tiles_store_state(const struct lb_cpu_layer_dir *ld, void *tensor);

/* The parts of a backward pass: all steps of a layer_dir; the thread's part of its weight
 * gradients; and of the input gradients of a layer. */
void lb_cpu_tiles_backward(const struct lb_cpu_layer_dir *ld);
void lb_cpu_tiles_weights(const struct lb_cpu_layer_dir *ld);
void lb_cpu_tiles_inputs(const struct lb_cpu_call *call, size_t l, size_t thread, char *dinput);

#endif
