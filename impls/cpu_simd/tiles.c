/* cpu_simd on tiles: how steps are computed, and the arrays that this takes. */
#include "impls/cpu_simd/cpu_simd.h"

enum {
    GATES = 4,
    FUSED_WEIGHTS = 1536 << 10, /* bytes that stay in an L2 cache of 2 MiB beside the operand */
    FUSED_ROWS = 128,           /* rows of x that are packed at a time */
    CHUNK_ROWS = 512            /* rows of an input GEMM */
};

static size_t most_rows(const struct lb_cpu_simd *simd)
{
    return lb_cpu_cover(simd->s.B, simd->teams);
}

struct lb_tile_plan lb_cpu_tile_plan(const struct lb_cpu_simd *simd, size_t input)
{
    size_t rows = most_rows(simd), panels = lb_cpu_cover(simd->s.panels, simd->team_size);
    struct lb_tile_plan plan = {.x_tiles = lb_cpu_cover(input, simd->kernels->k_multiple),
                                .h_tiles = lb_cpu_cover(simd->s.H, simd->kernels->k_multiple)};
    size_t weights = panels * (plan.x_tiles + plan.h_tiles) * GATES * LB_TILE_BYTES;
    plan.fused = rows >= LB_TILE_ROWS && weights <= FUSED_WEIGHTS;
    size_t chunks = lb_cpu_cover(simd->s.T * rows, plan.fused ? FUSED_ROWS : CHUNK_ROWS);
    plan.chunk = lb_cpu_cover(simd->s.T, chunks);
    return plan;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

void lb_cpu_tiles_lay_out(struct lb_cpu_simd *simd, struct lb_arena *scratch)
{
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_tiles *t = &simd->tiles;
    size_t rows = most_rows(simd), groups = lb_cpu_cover(rows, LB_TILE_ROWS);
    size_t input = (size_t)simd->problem.input, inputs[] = {input, s->L > 1 ? s->wide : input};
    t->x_bytes = t->pre_count = 0;
    for (size_t i = 0; i < 2; i++) {
        struct lb_tile_plan plan = lb_cpu_tile_plan(simd, inputs[i]);
        size_t in_chunk =
            plan.fused ? plan.chunk * groups : lb_cpu_cover(plan.chunk * rows, LB_TILE_ROWS);
        t->x_bytes = larger(t->x_bytes, in_chunk * plan.x_tiles * LB_TILE_BYTES);
        if (!plan.fused)
            t->pre_count = larger(t->pre_count, s->gates * in_chunk * LB_TILE_ROWS);
    }
    t->h_bytes = groups * lb_cpu_cover(s->H, simd->kernels->k_multiple) * LB_TILE_BYTES;
    t->state_count = s->panels * rows * s->simd_width;
    t->x = lb_arena_take(scratch, simd->teams * t->x_bytes);
    t->h = lb_arena_take(scratch, simd->teams * 2 * t->h_bytes);
    t->pre = lb_arena_take(scratch, simd->teams * t->pre_count * sizeof(float));
    t->state = lb_arena_take(scratch, simd->teams * t->state_count * sizeof(float));
    if (!lb_has_backward(&simd->problem))
        return;
    t->da_bytes = groups * s->gates / LB_TILE_DEPTH * LB_TILE_BYTES;
    t->dx_bytes = s->D * LB_TILE_DX_ROWS * s->gates * simd->elem;
    t->da = lb_arena_take(scratch, simd->teams * 2 * t->da_bytes);
    t->dx = lb_arena_take(scratch, simd->threads * t->dx_bytes);
}

void lb_cpu_tile_load_state(const struct lb_cpu_simd *simd, const char *tensor, size_t rows,
                            struct lb_cpu_range panels, float *state)
{
    size_t width = simd->s.simd_width;
    for (size_t p = panels.from; p < panels.to; p++)
        for (size_t r = 0; r < rows; r++) {
            struct lb_cpu_range units = lb_cpu_panel_units(simd, p);
            float *to = state + (p * rows + r) * width;
            memset(to, 0, width * sizeof(*to));
            lb_cpu_to_sums(simd, lb_cpu_at(simd, tensor, r * simd->s.H + units.from), to,
                           units.to - units.from);
        }
}

void lb_cpu_tile_store_state(const struct lb_cpu_simd *simd, char *tensor, size_t rows,
                             struct lb_cpu_range panels, const float *state)
{
    for (size_t p = panels.from; p < panels.to; p++)
        for (size_t r = 0; r < rows; r++) {
            struct lb_cpu_range units = lb_cpu_panel_units(simd, p);
            lb_cpu_from_sums(simd, state + (p * rows + r) * simd->s.simd_width,
                             lb_cpu_at(simd, tensor, r * simd->s.H + units.from),
                             units.to - units.from);
        }
}
