/* cpu_simd: what its contract side and its passes share. Sizes count elements. */
#ifndef LB_CPU_SIMD_H
#define LB_CPU_SIMD_H

#include "api/impl.h"
#include "base/thread_pool.h"
#include "impls/common/simd_kernels.h"

/* Sizes in kernels' terms (simd_kernels.h). */
struct lb_cpu_sizes {
    size_t T, B, H, D, L, lanes;
    size_t entries; /* L*D; entry l*D + d is layer l, direction d */
    size_t rows;    /* T*B */
    size_t wide;    /* D*H */
    size_t panels;  /* of `lanes` hidden units each, the last filled up */
    size_t gates;   /* 4 * lanes * panels: gates of a row */
    size_t width;   /* 4 * lanes: of a panel's gates, and of a group of columns to the way back */
};

struct lb_cpu_simd {
    struct lb_problem problem;
    struct lb_buffers buffers;
    struct lb_cpu_sizes s;
    const struct lb_simd_kernels *kernels;
    struct lb_pinned_threads *team; /* NULL: the caller alone */
    size_t threads, elem;           /* elem: bytes of an element */
    bool by_rows;     /* threads share the batch's rows in a step, not the hidden units */
    size_t chunk;     /* steps whose input products are made at a time */
    size_t gate_rows; /* rows of a panel in `gates` */

    /* In the harness's buffers; NULL where the pass needs none. */
    char *gates;   /* [L*D, panels, T, B, width], later gradients of a; to infer [panels, chunk, B,
                    * width] */
    char *cells;   /* [L*D, T, B, H]; NULL to infer */
    char *lower;   /* [L-1, T, B, D*H] outputs of all layers but the last; to infer two */
    char *between; /* [T, B, D*H] gradient of a lower layer's output */
    char *first;   /* [panels, B, width] gradients of a at each row's first step */
    char *sums;    /* [threads, B, width] of a step on the way back */
    char *packed;  /* [threads, packed_bytes] rows of inputs for products over all steps */
    size_t packed_bytes;
    const void **pointers; /* [threads, 2, B] */
    char description[256];
};

/* One entry's packed weights, as simd_kernels.h has them. */
struct lb_cpu_weights {
    char *w_ih, *w_hh, *bias; /* [panels, I_l, 4, lanes], [panels, H, 4, lanes], [gates] */
    char *back_hh, *back_ih;  /* of H and of I_l columns, [groups of width, gates, columns];
                               * with backward only */
};

struct lb_cpu_weights lb_cpu_weights_of(const struct lb_cpu_simd *blas, size_t entry);

/* One entry's weight gradients: dw_ih [panels, I_l, width], dw_hh [panels, H, width], db [gates].
 */
struct lb_cpu_gradients {
    char *dw_ih, *dw_hh, *db;
};

struct lb_cpu_gradients lb_cpu_gradients_of(const struct lb_cpu_simd *blas, size_t entry);

/* Elements of the packed weights and of the weight gradients of all entries. */
size_t lb_cpu_weight_count(const struct lb_cpu_simd *blas);
size_t lb_cpu_gradient_count(const struct lb_cpu_simd *blas);

/* An entry's canonical weights into the packed ones, and its gradients into the canonical ones. */
void lb_cpu_pack(const struct lb_cpu_simd *blas, size_t entry, const struct lb_weights *weights);
void lb_cpu_unpack(const struct lb_cpu_simd *blas, size_t entry,
                   const struct lb_gradients *gradients);

size_t lb_cpu_input(const struct lb_cpu_simd *blas, size_t entry); /* I_l */

/* Bytes that one thread needs to pack inputs for products over all steps. */
size_t lb_cpu_packed_bytes(const struct lb_cpu_simd *blas);

/* Rows of a product with all of an entry's input weights that are made at a time: few, so that what
 * they read and write stays near, but where the weights themselves come from afar, many for each
 * pass over them. */
size_t lb_cpu_rows_at_a_time(const struct lb_cpu_simd *blas, size_t input);

/* Work of one thread of the team; arg is a struct lb_cpu_call. */
struct lb_cpu_call {
    const struct lb_cpu_simd *blas;
    const struct lb_forward_io *forward;
    const struct lb_backward_io *backward;
};

void lb_cpu_forward_work(void *arg, size_t thread);
void lb_cpu_backward_work(void *arg, size_t thread);

/* Helpers of both passes. */

/* Element `index` of an array. */
static inline char *lb_cpu_at(const struct lb_cpu_simd *blas, const void *base, size_t index)
{
    return (char *)((uintptr_t)base + index * blas->elem);
}

static inline size_t lb_cpu_length(const struct lb_cpu_simd *blas, size_t b)
{
    return blas->buffers.lengths ? (size_t)blas->buffers.lengths[b] : blas->s.T;
}

/* How many rows have a step t: lengths descend. */
static inline size_t lb_cpu_active(const struct lb_cpu_simd *blas, size_t t)
{
    size_t n = blas->s.B;
    while (n > 0 && lb_cpu_length(blas, n - 1) <= t)
        n--;
    return n;
}

/* The steps with which direction d starts and ends in row b. */
static inline size_t lb_cpu_first_step(const struct lb_cpu_simd *blas, size_t d, size_t b)
{
    return d == 0 ? 0 : lb_cpu_length(blas, b) - 1;
}

static inline size_t lb_cpu_last_step(const struct lb_cpu_simd *blas, size_t d, size_t b)
{
    return d == 0 ? lb_cpu_length(blas, b) - 1 : 0;
}

/* Layer l's output [T, B, D*H]: the caller's y for the last. */
static inline char *lb_cpu_output(const struct lb_cpu_simd *blas, const void *y, size_t l)
{
    size_t kept = lb_trains(&blas->problem) ? l : l % 2;
    if (l == blas->s.L - 1)
        return lb_cpu_at(blas, y, 0);
    return lb_cpu_at(blas, blas->lower, kept * blas->s.rows * blas->s.wide);
}

struct lb_cpu_range {
    size_t from, to;
};

/* A thread's share of n things. */
static inline struct lb_cpu_range lb_cpu_share(const struct lb_cpu_simd *blas, size_t n,
                                               size_t thread)
{
    return (struct lb_cpu_range){n * thread / blas->threads, n * (thread + 1) / blas->threads};
}

/* What of a step's n panels, or groups of columns, is a thread's, and which of the batch's rows. */
static inline struct lb_cpu_range lb_cpu_columns(const struct lb_cpu_simd *blas, size_t n,
                                                 size_t thread)
{
    return blas->by_rows ? (struct lb_cpu_range){0, n} : lb_cpu_share(blas, n, thread);
}

static inline struct lb_cpu_range lb_cpu_rows(const struct lb_cpu_simd *blas, size_t thread)
{
    return blas->by_rows ? lb_cpu_share(blas, blas->s.B, thread)
                         : (struct lb_cpu_range){0, blas->s.B};
}

/* Where those of a range of the batch's rows end that have a step t. */
static inline size_t lb_cpu_active_to(const struct lb_cpu_simd *blas, struct lb_cpu_range rows,
                                      size_t t)
{
    size_t active = lb_cpu_active(blas, t);
    return active < rows.from ? rows.from : active < rows.to ? active : rows.to;
}

/* How many times step covers n. */
static inline size_t lb_cpu_cover(size_t n, size_t step)
{
    return (n + step - 1) / step;
}

/* A panel's gates of an entry, from a row on; to infer, entry is 0 and rows are those of the chunk.
 */
static inline char *lb_cpu_gates(const struct lb_cpu_simd *blas, size_t entry, size_t panel,
                                 size_t row)
{
    size_t before = (entry * blas->s.panels + panel) * blas->gate_rows + row;
    return lb_cpu_at(blas, blas->gates, before * blas->s.width);
}

#endif
