/* cpu_simd on tiles: how steps are computed, the arrays that this takes, and forward. */
#include <string.h>

#include "api/int8.h"
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

/* How the steps of a layer are computed, for the thread with the most work. */
struct tile_plan {
    bool fused;
    size_t chunk; /* steps whose x is packed at a time */
    size_t x_tiles, h_tiles;
};

static struct tile_plan plan_of(const struct lb_cpu_simd *simd, size_t input)
{
    size_t rows = most_rows(simd), panels = lb_cpu_cover(simd->s.panels, simd->team_size);
    struct tile_plan plan = {.x_tiles = lb_cpu_cover(input, simd->kernels->k_multiple),
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
        struct tile_plan plan = plan_of(simd, inputs[i]);
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

/* One layer and direction, with the part of the work of one thread. */
struct layer_dir {
    struct lb_cpu_part part;
    const struct lb_forward_io *io;
    struct tile_plan plan;
    struct lb_cpu_range panels; /* of this thread */
    size_t rows, group_rows;    /* of its team */
    size_t groups;              /* row groups of a step */
    const char *in;             /* [T, B, I_l] */
    char *y;                    /* [T, B, D*H], at this direction's first unit */
    size_t state_at;            /* the team's first row in the states [L*D, B, H] */
    char *x, *h[2];             /* operands of the team */
    float *pre, *state;
    size_t pre_rows;                  /* of a gate in `pre` */
    const char *start;                /* of a sum: the bias, or for int8 w.start */
    float x_factor;                   /* of int8 */
    const float *scale, *scaled_bias; /* of int8 */
};

static struct layer_dir open_layer_dir(const struct lb_cpu_call *call, size_t index, size_t thread)
{
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_forward_io *io = call->forward;
    const struct lb_cpu_sizes *s = &simd->s;
    const struct lb_cpu_tiles *t = &simd->tiles;
    const struct lb_cpu_part part = lb_cpu_part_of(simd, index, thread, io->c0);
    size_t team = thread / simd->team_size;
    size_t rows = part.rows.to - part.rows.from, group_rows = lb_cpu_group_rows(rows);
    struct tile_plan plan = plan_of(simd, part.input);
    bool int8 = simd->problem.dtype == LB_INT8;
    return (struct layer_dir){
        .part = part,
        .io = io,
        .plan = plan,
        .panels = lb_cpu_columns(simd, s->panels, thread),
        .rows = rows,
        .group_rows = group_rows,
        .groups = lb_cpu_cover(rows, group_rows),
        .in = part.l == 0 ? io->x : lb_cpu_output(simd, io->y, part.l - 1),
        .y = lb_cpu_at(simd, lb_cpu_output(simd, io->y, part.l), part.d * s->H),
        .state_at = (index * s->B + part.rows.from) * s->H,
        .x = t->x + team * t->x_bytes,
        .h = {t->h + 2 * team * t->h_bytes, t->h + (2 * team + 1) * t->h_bytes},
        .pre = t->pre + team * t->pre_count,
        .state = t->state + team * t->state_count,
        .pre_rows = lb_cpu_cover(plan.chunk * rows, LB_TILE_ROWS) * LB_TILE_ROWS,
        .start = int8 ? part.w.start : part.w.bias,
        .x_factor = lb_int8_factor(part.l == 0 ? simd->buffers.x_max : 1),
        .scale = int8 ? (const float *)(const void *)part.w.scale : NULL,
        .scaled_bias = int8 ? (const float *)(const void *)part.w.bias : NULL,
    };
}

/* h0 becomes the operand of the first step. Both buffers get it: a row of a reversed direction
 * begins at a later step, and until then nothing writes its h. c0 becomes the state. */
static void start_layer(const struct layer_dir *ld)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    for (size_t buffer = 0; buffer < 2; buffer++)
        lb_cpu_tile_pack_share(
            simd, ld->part.thread,
            &(struct lb_tile_rows){.from = lb_cpu_at(simd, ld->io->h0, ld->state_at),
                                   .count = ld->rows,
                                   .k = simd->s.H,
                                   .stride = simd->s.H,
                                   .group_rows = ld->group_rows,
                                   .factor = 127,
                                   .operand = ld->h[buffer]});
    lb_cpu_tile_load_state(simd, lb_cpu_at(simd, ld->io->c0, ld->state_at), ld->rows, ld->panels,
                           ld->state);
}

/* Bytes of a step's x where the step multiplies it. */
static size_t step_bytes(const struct layer_dir *ld)
{
    return ld->groups * ld->plan.x_tiles * ld->group_rows * 64;
}

/* This thread's share of the x of `steps` steps from t on. A fused step has row groups of its own;
 * those of an input GEMM take their rows from consecutive steps. */
static void pack_input(const struct layer_dir *ld, size_t t, size_t steps)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    size_t input = ld->part.input;
    bool fused = ld->plan.fused, at_once = !fused && simd->teams == 1;
    for (size_t i = 0; i < (at_once ? 1 : steps); i++) {
        size_t row = (t + i) * simd->s.B + ld->part.rows.from;
        lb_cpu_tile_pack_share(
            simd, ld->part.thread,
            &(struct lb_tile_rows){.from = lb_cpu_at(simd, ld->in, row * input),
                                   .count = at_once ? steps * ld->rows : ld->rows,
                                   .k = input,
                                   .stride = input,
                                   .group_rows = fused ? ld->group_rows : LB_TILE_ROWS,
                                   .first = fused ? 0 : i * ld->rows,
                                   .factor = ld->x_factor,
                                   .operand = fused ? ld->x + i * step_bytes(ld) : ld->x});
    }
}

static void input_gemm(const struct layer_dir *ld, size_t steps)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    simd->kernels->tiles->gemm(&(struct lb_tile_gemm){
        .terms = {{ld->x, ld->part.w.w_ih, ld->plan.x_tiles, ld->part.input}},
        .start = ld->start,
        .start_panel = simd->s.width,
        .start_column = simd->s.simd_width,
        .rows = steps * ld->rows,
        .pairs = 2,
        .panels_from = ld->panels.from,
        .panels_to = ld->panels.to,
        .sums = ld->pre,
        .sums_panel = ld->pre_rows * simd->s.width,
        .sums_column = ld->pre_rows * simd->s.simd_width,
        .sums_row = simd->s.simd_width,
    });
}

/* Zeros to y of step t in rows that have ended, in this thread's panels. */
static void clear_ended(const struct layer_dir *ld, size_t t, size_t active)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_range units = lb_cpu_units(simd, ld->panels);
    for (size_t b = ld->part.rows.from + active; b < ld->part.rows.to; b++)
        memset(lb_cpu_at(simd, ld->y, (t * s->B + b) * s->wide + units.from), 0,
               (units.to - units.from) * simd->elem);
}

/* The sums of a step, which is the `at`'th of its chunk in memory order. */
static struct lb_tile_gemm step_gemm(const struct layer_dir *ld, size_t at, size_t number)
{
    const struct lb_cpu_sizes *s = &ld->part.simd->s;
    struct lb_tile_gemm gemm = {
        .terms = {{ld->x + at * step_bytes(ld), ld->part.w.w_ih, ld->plan.x_tiles, ld->part.input},
                  {ld->h[number % 2], ld->part.w.w_hh, ld->plan.h_tiles, s->H}},
        .start = ld->start,
        .start_panel = s->width,
        .start_column = s->simd_width,
        .group_rows = ld->group_rows,
        .pairs = 2,
        .panels_from = ld->panels.from,
        .panels_to = ld->panels.to,
        .backwards = number % 2, /* begins with the weights that were read last */
        .prefetch = !ld->plan.fused,
    };
    if (!ld->plan.fused) {
        gemm.terms[0] = (struct lb_tile_terms){0};
        gemm.start = ld->pre + at * ld->rows * s->simd_width;
        gemm.start_panel = ld->pre_rows * s->width;
        gemm.start_column = ld->pre_rows * s->simd_width;
        gemm.start_row = s->simd_width;
    }
    return gemm;
}

/* This thread's part of step t, the number'th that is computed and the `at`'th of its chunk in
 * memory order. */
static void step(const struct layer_dir *ld, size_t t, size_t at, size_t number)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    size_t row = t * s->B + ld->part.rows.from;
    size_t active = lb_cpu_active_to(simd, ld->part.rows, t) - ld->part.rows.from;
    struct lb_tile_pass pass = {
        .gemm = step_gemm(ld, at, number),
        .cell = {.hidden = s->H,
                 .state = ld->state,
                 .state_rows = ld->rows,
                 .next_operand = ld->h[1 - number % 2],
                 .operand_tiles = ld->plan.h_tiles,
                 .h = lb_cpu_at(simd, ld->y, row * s->wide),
                 .h_stride = s->wide,
                 .scale = ld->scale,
                 .bias = ld->scaled_bias},
    };
    pass.gemm.rows = active;
    if (simd->gates) {
        pass.cell.gates = lb_cpu_gates(simd, ld->part.index, 0, row);
        pass.cell.gates_stride = simd->gate_rows * s->width;
        pass.cell.cells = (float *)(void *)lb_cpu_sum_at(simd, ld->part.cells, row * s->H);
    }
    if (active > 0)
        simd->kernels->tiles->forward(&pass);
    clear_ended(ld, t, active);
}

/* Writes the last h of this thread's share of its team's rows, and the last c of its panels. */
static void write_states(const struct layer_dir *ld)
{
    const struct lb_cpu_simd *simd = ld->part.simd;
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_range share = lb_cpu_columns(simd, ld->rows, ld->part.thread);
    for (size_t r = share.from; r < share.to; r++) {
        size_t b = ld->part.rows.from + r, last = lb_cpu_last_step(simd, ld->part.d, b) * s->B + b;
        memcpy(lb_cpu_at(simd, ld->io->hn, ld->state_at + r * s->H),
               lb_cpu_at(simd, ld->y, last * s->wide), s->H * simd->elem);
    }
    lb_cpu_tile_store_state(simd, lb_cpu_at(simd, ld->io->cn, ld->state_at), ld->rows, ld->panels,
                            ld->state);
}

void lb_cpu_tiles_forward_work(void *arg, size_t thread)
{
    const struct lb_cpu_call *call = arg;
    const struct lb_cpu_simd *simd = call->simd;
    const struct lb_cpu_sizes *s = &simd->s;
    for (size_t index = 0; index < s->layer_dirs; index++) {
        struct layer_dir ld = open_layer_dir(call, index, thread);
        bool reversed = ld.part.d == 1;
        start_layer(&ld);
        for (size_t done = 0, steps; done < s->T; done += steps) {
            steps = lb_cpu_least(s->T - done, ld.plan.chunk);
            size_t from = reversed ? s->T - done - steps : done;
            pack_input(&ld, from, steps);
            lb_cpu_end_step(simd);
            if (!ld.plan.fused && ld.rows > 0)
                input_gemm(&ld, steps);
            for (size_t i = 0; i < steps; i++) {
                size_t at = reversed ? steps - 1 - i : i;
                step(&ld, from + at, at, done + i);
                lb_cpu_end_step(simd);
            }
        }
        write_states(&ld);
    }
    simd->kernels->tiles->release();
}
