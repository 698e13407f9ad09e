/* cpu_simd: GEMMs and cells in this project's own vector kernels. Every dtype and cell, tanh, any
 * number of threads. PERFORMANCE.md has its measurements. */
#include <stdio.h>
#include <unistd.h>

#include "impls/cpu_simd/cpu_simd.h"

enum { PAGE = 4096 };

enum { FEW_ROWS = 24, MANY_ROWS = 512 };

/* Number of rows per GEMM with all input weights of a layer_dir: few, so that the rows stay in the
 * L2 cache, except where the weights are so large that each pass over them has to serve many rows.
 */
static size_t rows_at_a_time(const struct lb_cpu_simd *s, size_t input, size_t few)
{
    enum { NEAR_WEIGHTS = 8 << 20 };
    return s->gates * input * s->elem <= NEAR_WEIGHTS ? few : MANY_ROWS;
}

/* Steps per input GEMM, about as many for each. An L2 cache of 2 MiB holds the sums of four times
 * as many rows. */
static size_t steps_at_a_time(const struct lb_cpu_simd *s)
{
    bool large = sysconf(_SC_LEVEL2_CACHE_SIZE) >= 2 << 20;
    size_t few = large ? 4 * FEW_ROWS : FEW_ROWS;
    size_t rows = rows_at_a_time(s, lb_cpu_widest_input(s), few);
    size_t chunks = lb_cpu_cover(s->T, lb_cpu_cover(rows, s->B));
    return lb_cpu_cover(s->T, chunks);
}

size_t lb_cpu_gradient_rows(const struct lb_cpu_simd *s, size_t input)
{
    return 2 * rows_at_a_time(s, input, FEW_ROWS);
}

size_t lb_cpu_widest_input(const struct lb_cpu_simd *s)
{
    size_t input = (size_t)s->problem.input;
    return s->L > 1 && s->wide > input ? s->wide : input;
}

static enum lb_status cpu_simd_supports(const struct lb_problem *p,
                                        const struct lb_exec_config *config, struct lb_error *why)
{
    if (config->threads > LB_MAX_PINNED_THREADS)
        return lb_fail(why, LB_UNSUPPORTED, "threads %d: at most %d are allowed", config->threads,
                       LB_MAX_PINNED_THREADS);
    if (p->math != LB_IEEE)
        return lb_fail(why, LB_UNSUPPORTED, "math %s: cpu_simd computes f32 in full precision",
                       lb_math_name(p->math));
    if (p->act != LB_ACT_TANH)
        return lb_fail(why, LB_UNSUPPORTED, "act-%s: the cell of cpu_simd has tanh only",
                       lb_act_name(p->act));
    if (p->cell != LB_CELL_STANDARD && lb_simd_kernels_best(p->dtype)->tiles)
        return lb_fail(why, LB_UNSUPPORTED,
                       "cell %s in %s: cpu_simd's kernels on tiles have the standard cell only",
                       lb_cell_name((enum lb_cell_kind)p->cell), lb_dtype_name(p->dtype));
    return LB_OK;
}

/* The measured price of a cell, for --explain. PERFORMANCE.md has more of them. */
static void cpu_simd_note(const struct lb_problem *p, const struct lb_exec_config *config,
                          char *text, size_t size)
{
    static const double prices[LB_CELL_COUNT][2] = {
        [LB_CELL_LAYERNORM] = {1.10, 1.11},  [LB_CELL_RECURRENT_DROPOUT] = {1.01, 1.00},
        [LB_CELL_PROJECTION] = {0.82, 0.85}, [LB_CELL_PEEPHOLE] = {1.02, 1.00},
        [LB_CELL_RESIDUAL] = {1.01, 1.00},
    };
    const double *price = prices[p->cell];
    (void)config;
    text[0] = '\0';
    if (price[0] > 0)
        snprintf(text, size,
                 "%s%s took %.2f times as long as the standard cell for inference and %.2f times "
                 "for training, in f32 at T50 B32 H256 on one thread of an Intel Xeon with AVX-512",
                 lb_cell_name((enum lb_cell_kind)p->cell),
                 p->cell == LB_CELL_PROJECTION ? " to H/2" : "", price[0], price[1]);
}

/* Finds the best plan for the CPUs that the process may use. */
static enum lb_status make_plan(const struct lb_cpu_simd *s, int threads,
                                struct lb_cpu_topology *topology, struct lb_cpu_plan *plan,
                                struct lb_error *err)
{
    struct lb_machine machine;
    const struct lb_cpu_task task = {.problem = &s->problem,
                                     .topology = topology,
                                     .machine = &machine,
                                     .threads = threads,
                                     .simd_width = s->simd_width};
    lb_cpu_topology_here(topology);
    if ((size_t)threads > topology->count)
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: this process may use only %zu of the CPUs",
                       threads, topology->count);
    lb_machine_here(topology, true, &machine);
    lb_cpu_plan_of(&task, plan);
    return LB_OK;
}

/* Plans the work of up to `threads` threads and opens them. */
static enum lb_status divide_work(struct lb_cpu_simd *s, int threads, struct lb_error *err)
{
    struct lb_cpu_plan plan = {
        .threads = 1, .teams = 1, .team_size = 1, .copies = 1, .group_panels = 4};
    struct lb_cpu_topology topology;
    if (threads > 1)
        LB_CHECK(make_plan(s, threads, &topology, &plan, err));
    s->threads = (size_t)plan.threads;
    s->teams = (size_t)plan.teams;
    s->team_size = (size_t)plan.team_size;
    s->copies = (size_t)plan.copies;
    s->group = (size_t)plan.group_panels;
    if (s->kernels->tiles && s->group < 2)
        s->group = 2; /* column tiles come in pairs */
    size_t widest = lb_cpu_widest_input(s);
    widest = widest > s->H ? widest : s->H;
    struct lb_cpu_tiling tiling =
        lb_cpu_tiling_of(s->panels, lb_cpu_cover(widest, lb_cpu_column_block(s)), plan.threads);
    s->panel_parts = (size_t)tiling.panel_parts;
    s->column_parts = (size_t)tiling.column_parts;
    if (plan.threads == 1)
        return LB_OK;
    struct lb_pinned_place places[LB_MAX_PINNED_THREADS];
    for (size_t i = 0; i < s->threads; i++) {
        places[i] = (struct lb_pinned_place){topology.places[i].cpu, topology.places[i].domain};
        s->copy_of[i] = (unsigned char)lb_cpu_plan_copy(&plan, &topology, i);
    }
    LB_CHECK(lb_pinned_threads_open(plan.threads, places, &s->pinned_threads, err));
    lb_pinned_threads_divide(s->pinned_threads, s->team_size);
    return LB_OK;
}

/* Who does what: "2 pinned threads that divide the hidden units". */
static void describe_threads(const struct lb_cpu_simd *s, int asked, char *text, size_t size)
{
    char count[64];
    snprintf(count, sizeof(count), "%zu pinned threads", s->threads);
    if (s->threads < (size_t)asked)
        snprintf(count, sizeof(count), "%zu pinned threads instead of %d", s->threads, asked);
    if (asked == 1)
        snprintf(text, size, "1 thread");
    else if (s->threads == 1)
        snprintf(text, size, "1 thread instead of %d: a step has too little work to divide", asked);
    else if (s->teams == 1 || s->team_size == 1)
        snprintf(text, size, "%s that divide the %s", count,
                 s->teams == 1 ? "hidden units" : "rows of the batch");
    else
        snprintf(text, size,
                 "%s: %zu teams divide the rows of the batch, and the %zu threads of each team "
                 "the hidden units",
                 count, s->teams, s->team_size);
}

static void describe(struct lb_cpu_simd *s, int asked)
{
    char threads[200], copies[48] = "", scheme[64] = "";
    const char *activations = s->kernels->tiles && s->kernels->tiles->zero_point ? "u8" : "s8";
    if (s->problem.dtype == LB_INT8)
        snprintf(scheme, sizeof(scheme), "s8 weights per channel, %s activations static, ",
                 activations);
    describe_threads(s, asked, threads, sizeof(threads));
    if (s->copies > 1)
        snprintf(copies, sizeof(copies), ", weights in %zu NUMA nodes", s->copies);
    snprintf(s->description, sizeof(s->description),
             "kernels for %s, %spanels of %zu hidden units, %s%s", s->kernels->name, scheme,
             s->simd_width, threads, copies);
}

static enum lb_status cpu_simd_create(void *self, const struct lb_problem *problem,
                                      const struct lb_exec_config *config, struct lb_error *err)
{
    struct lb_cpu_simd *s = self;
    s->problem = *problem;
    s->kernels = lb_simd_kernels_best(problem->dtype);
    s->elem = lb_dtype_size(problem->dtype);
    s->w_elem = problem->dtype == LB_INT8 ? 1 : s->elem;
    s->half = s->elem == 2;
    s->sum_elem = s->half ? sizeof(float) : s->elem;
    s->T = (size_t)problem->seq_len;
    s->B = (size_t)problem->batch;
    s->H = (size_t)problem->hidden;
    s->P = (size_t)lb_h_size(problem);
    s->D = (size_t)problem->directions;
    s->L = (size_t)problem->layers;
    s->layer_dirs = s->L * s->D;
    s->rows = s->T * s->B;
    s->wide = s->D * s->P;
    s->simd_width = s->kernels->simd_width;
    s->panels = lb_cpu_cover(s->H, s->simd_width);
    s->units = s->panels * s->simd_width;
    s->width = 4 * s->simd_width;
    s->h_panels = lb_cpu_cover(s->P, s->width);
    s->gates = s->width * s->panels;
    LB_CHECK(divide_work(s, config->threads, err));
    s->chunk = steps_at_a_time(s);
    s->norm_count = 5 * s->units + LB_CPU_FACTORS;
    s->cell_rows = lb_cell_weight_count(problem) / s->H;
    describe(s, config->threads);
    return LB_OK;
}

/* Bytes of one thread's operand: that of the largest GEMM, in whole pages. With operands of two
 * threads in a page, two threads were 1 to 3 % slower in small steps. */
static size_t operand_bytes(const struct lb_cpu_simd *s)
{
    size_t input = lb_cpu_widest_input(s);
    size_t forward = s->chunk * s->B * lb_cpu_padded(s, input);
    size_t team_rows = lb_cpu_cover(s->B, s->teams);
    size_t step = team_rows * lb_cpu_padded(s, s->H);
    size_t most = forward > step ? forward : step;
    if (lb_has_backward(&s->problem)) {
        size_t rows = lb_cpu_gradient_rows(s, input);
        size_t backward = (rows > team_rows ? rows : team_rows) * s->gates;
        most = backward > most ? backward : most;
    }
    return (most * s->kernels->operand_size + PAGE - 1) / PAGE * PAGE;
}

/* Elements of one thread's sums: those of a step, and for bf16 and f16 of a chunk of input
 * gradients, whose rows are padded to whole vectors. */
static size_t sum_count(const struct lb_cpu_simd *s)
{
    size_t input = lb_cpu_widest_input(s), step = lb_cpu_cover(s->B, s->teams) * s->width;
    size_t chunk =
        lb_cpu_gradient_rows(s, input) * lb_cpu_cover(input, s->simd_width) * s->simd_width;
    return s->half && chunk > step ? chunk : step;
}

/* Sets the pointers to the arrays of cells other than the standard one; passes: what backward
 * reads. */
static void lay_out_cell(struct lb_cpu_simd *s, struct lb_arena *passes, struct lb_arena *scratch)
{
    bool trains = lb_trains(&s->problem), backward = lb_has_backward(&s->problem);
    size_t layers = s->problem.cell == LB_CELL_RESIDUAL ? s->L - 1 : s->L;
    size_t sums = backward ? s->B * s->cell_rows * s->units * s->sum_elem : 0;
    switch (s->problem.cell) {
    case LB_CELL_RECURRENT_DROPOUT:
        s->h0 = lb_arena_take(passes, s->layer_dirs * s->B * s->H * s->elem);
        /* fall through */
    case LB_CELL_RESIDUAL:
        layers = !trains && layers > 2 ? 2 : layers;
        s->h = lb_arena_take(passes, layers * s->rows * s->wide * s->elem);
        break;
    case LB_CELL_PROJECTION:
        s->hidden =
            lb_arena_take(passes, (trains ? s->layer_dirs * s->rows : s->B) * s->H * s->elem);
        s->dh = lb_arena_take(scratch, backward ? s->h_panels * s->rows * s->width * s->elem : 0);
        break;
    case LB_CELL_LAYERNORM:
        s->dh = lb_arena_take(scratch, backward ? s->B * s->H * s->elem : 0);
        s->scratch = lb_arena_take(scratch, s->threads * 5 * s->units * s->sum_elem);
        if (trains)
            s->norm = lb_arena_take(passes, s->layer_dirs * s->rows * s->norm_count * s->sum_elem);
        /* fall through */
    case LB_CELL_PEEPHOLE: s->cell_sums = lb_arena_take(scratch, sums); break;
    default: break;
    }
}

/* Sets the pointers to all arrays. With zeroed buffers it only computes the sizes. */
static void lay_out(struct lb_cpu_simd *s, size_t *reserve, size_t *workspace)
{
    bool trains = lb_trains(&s->problem), backward = lb_has_backward(&s->problem);
    size_t lower = !trains && s->L > 2 ? 2 : s->L - 1;
    size_t state = s->layer_dirs * s->B * s->H * s->sum_elem;
    struct lb_arena scratch = {.base = s->buffers.workspace};
    struct lb_arena kept = {.base = s->buffers.reserve};
    struct lb_arena *passes = trains ? &kept : &scratch;
    s->pre_rows = s->half || !trains ? s->chunk * s->B : s->rows;
    s->pointers = lb_arena_take(&scratch, s->threads * 2 * s->B * sizeof(void *));
    if (trains) {
        s->kept_gates = lb_arena_take(passes, s->layer_dirs * s->rows * s->gates * s->elem);
        s->cells = lb_arena_take(passes, s->layer_dirs * s->rows * s->H * s->sum_elem);
    }
    if (s->kernels->tiles)
        lb_cpu_tiles_lay_out(s, &scratch);
    else if (s->half || !trains)
        s->pre = lb_arena_take(&scratch, s->pre_rows * s->gates * s->sum_elem);
    s->lower = lb_arena_take(passes, lower * s->rows * s->wide * s->elem);
    if (s->half && (backward || !s->kernels->tiles))
        s->c0 = lb_arena_take(&scratch, state);
    if (s->half && !s->kernels->tiles) {
        s->c = trains ? NULL : lb_arena_take(&scratch, state);
        s->dc = backward ? lb_arena_take(&scratch, state) : NULL;
        s->operand_bytes = operand_bytes(s);
        s->operands = lb_arena_take(&scratch, s->threads * s->operand_bytes);
    }
    lay_out_cell(s, passes, &scratch);
    if (!s->kernels->tiles && (backward || s->problem.cell == LB_CELL_PROJECTION)) {
        s->sum_count = sum_count(s);
        s->sums = lb_arena_take(&scratch, s->threads * s->sum_count * s->sum_elem);
    }
    if (backward) {
        s->between = lb_arena_take(&scratch, (s->L > 1 ? s->rows * s->wide : 0) * s->elem);
        s->first = lb_arena_take(&scratch, s->B * s->gates * s->elem);
        s->packed_bytes = s->kernels->tiles ? lb_cpu_tiles_packed_bytes(s) : lb_cpu_packed_bytes(s);
        s->packed = lb_arena_take(&scratch, s->threads * s->packed_bytes);
    }
    *reserve = kept.used;
    *workspace = scratch.used;
}

static enum lb_status cpu_simd_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    struct lb_cpu_simd *s = self;
    double largest = (double)s->layer_dirs * (double)s->rows * (double)s->gates;
    if (largest > 0x1p58) /* the number of bytes would not fit a size_t */
        return lb_fail(err, LB_OOM,
                       "the gates of all steps are %.3g elements, more than any memory holds",
                       largest);
    sizes->weights = lb_cpu_weight_bytes(s);
    if (lb_has_backward(&s->problem))
        sizes->gradients = lb_cpu_gradient_bytes(s);
    lay_out(s, &sizes->reserve, &sizes->workspace);
    return LB_OK;
}

/* Calls work on all threads. */
static enum lb_status run(const struct lb_cpu_simd *s, void (*work)(void *, size_t),
                          struct lb_cpu_call call)
{
    call.s = s;
    lb_pinned_threads_run(s->pinned_threads, work, &call);
    return LB_OK;
}

static enum lb_status cpu_simd_prepare(void *self, const struct lb_buffers *buffers,
                                       const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_cpu_simd *s = self;
    size_t reserve, workspace;
    (void)err;
    s->buffers = *buffers;
    lay_out(s, &reserve, &workspace);
    run(s, lb_cpu_pack_work, (struct lb_cpu_call){.weights = weights});
    if (lb_has_backward(&s->problem))
        run(s, lb_cpu_touch_work, (struct lb_cpu_call){0});
    return LB_OK;
}

static enum lb_status cpu_simd_forward(void *self, const struct lb_forward_io *io,
                                       struct lb_error *err)
{
    (void)err;
    return run(self, lb_cpu_forward_work, (struct lb_cpu_call){.io = io});
}

static enum lb_status cpu_simd_backward(void *self, const struct lb_backward_io *io,
                                        struct lb_error *err)
{
    (void)err;
    const struct lb_forward_io forward = {
        .x = io->x, .h0 = io->h0, .c0 = io->c0, .y = (void *)(uintptr_t)io->y, .mask = io->mask};
    return run(self, lb_cpu_backward_work, (struct lb_cpu_call){.io = &forward, .back = io});
}

static enum lb_status cpu_simd_gradients(void *self, const struct lb_gradients *gradients,
                                         struct lb_error *err)
{
    (void)err;
    return run(self, lb_cpu_unpack_work, (struct lb_cpu_call){.gradients = gradients});
}

static enum lb_status cpu_simd_update(void *self, const struct lb_update_io *io,
                                      struct lb_error *err)
{
    run(self, lb_cpu_pack_work, (struct lb_cpu_call){.weights = &io->weights});
    return cpu_simd_gradients(self, &io->gradients, err);
}

static const char *cpu_simd_describe(const void *self)
{
    return ((const struct lb_cpu_simd *)self)->description;
}

static void cpu_simd_destroy(void *self)
{
    lb_pinned_threads_close(((struct lb_cpu_simd *)self)->pinned_threads);
}

const struct lb_impl lb_impl_cpu_simd = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "cpu_simd",
    .summary = "own vector kernels for GEMMs and cells, packed weights",
    .memory = LB_HOST,
    .traits = LB_DETERMINISTIC | LB_INSTANCES | LB_QUANTISES | LB_QUANTISES_PLAINLY,
    .state_size = sizeof(struct lb_cpu_simd),
    .supports = cpu_simd_supports,
    .create = cpu_simd_create,
    .sizes = cpu_simd_sizes,
    .prepare = cpu_simd_prepare,
    .forward = cpu_simd_forward,
    .backward = cpu_simd_backward,
    .gradients = cpu_simd_gradients,
    .describe = cpu_simd_describe,
    .destroy = cpu_simd_destroy,
    .note = cpu_simd_note,
    .update = cpu_simd_update,
    .cells = 1u << LB_CELL_LAYERNORM | 1u << LB_CELL_RECURRENT_DROPOUT | 1u << LB_CELL_PROJECTION |
             1u << LB_CELL_PEEPHOLE | 1u << LB_CELL_RESIDUAL,
};
