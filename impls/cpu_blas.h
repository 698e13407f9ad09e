/* cpu_blas's state, and what its parts for float and double have in common. */
#ifndef CPU_BLAS_H
#define CPU_BLAS_H

#include <stddef.h>

#include "impl.h"

struct cpu_blas;

/* What depends on the type of the elements: one table for float, one for double. */
struct cpu_blas_routines {
    /* Bytes of reserve and workspace. */
    void (*measure)(const struct cpu_blas *blas, size_t *reserve, size_t *workspace);
    void (*pack)(const struct cpu_blas *blas, const struct lb_weights *weights);
    void (*forward)(const struct cpu_blas *blas, const struct lb_forward_io *io);
    void (*backward)(const struct cpu_blas *blas, const struct lb_backward_io *io);
};

extern const struct cpu_blas_routines lb_cpu_blas_f32, lb_cpu_blas_f64;

struct cpu_blas {
    struct lb_problem problem;
    struct lb_buffers buffers;
    const struct cpu_blas_routines *routines;
    char chosen[192];
};

struct sizes {
    size_t T, B, H, D, L;
    size_t entries; /* L*D */
    size_t rows;    /* T*B */
    size_t wide;    /* D*H */
};

static inline struct sizes sizes_of(const struct lb_problem *p)
{
    struct sizes s = {.T = (size_t)p->seq_len,
                      .B = (size_t)p->batch,
                      .H = (size_t)p->hidden,
                      .D = (size_t)p->directions,
                      .L = (size_t)p->layers};
    s.entries = s.L * s.D;
    s.rows = s.T * s.B;
    s.wide = s.D * s.H;
    return s;
}

static inline size_t input_of(const struct lb_problem *p, size_t entry)
{
    return (size_t)lb_layer_input(p, (int64_t)entry / p->directions);
}

/* Elements of packed weights before entry's; the whole has entry = L*D. */
static inline size_t weight_offset(const struct lb_problem *p, size_t entry)
{
    struct sizes s = sizes_of(p);
    size_t first = entry < s.D ? entry : s.D, later = entry - first;
    return 4 * s.H * (first * ((size_t)p->input + s.H + 1) + later * (s.wide + s.H + 1));
}

/* Takes bytes from base, *at on; without a base only counts. Cache lines are not shared. */
static inline void *take(char *base, size_t *at, size_t bytes)
{
    void *memory = base ? base + *at : NULL;
    *at += (bytes + 63) / 64 * 64;
    return memory;
}

static inline size_t length_of(const struct cpu_blas *blas, size_t b)
{
    return (size_t)(blas->buffers.lengths ? blas->buffers.lengths[b] : blas->problem.seq_len);
}

/* How many rows have a step t. */
static inline size_t active_rows(const struct cpu_blas *blas, size_t t)
{
    size_t n = (size_t)blas->problem.batch;
    while (n > 0 && length_of(blas, n - 1) <= t)
        n--;
    return n;
}

/* The step with which direction d starts in row b. */
static inline size_t first_step(const struct cpu_blas *blas, size_t d, size_t b)
{
    return d == 0 ? 0 : length_of(blas, b) - 1;
}

#endif
