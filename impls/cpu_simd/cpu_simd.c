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
static size_t rows_at_a_time(const struct lb_cpu_simd *simd, size_t input, size_t few)
{
    enum { NEAR_WEIGHTS = 8 << 20 };
    return simd->s.gates * input * simd->elem <= NEAR_WEIGHTS ? few : MANY_ROWS;
}

/* Steps per input GEMM, about as many for each. An L2 cache of 2 MiB holds the sums of four times
 * as many rows. */
static size_t steps_at_a_time(const struct lb_cpu_simd *simd)
{
    bool large = sysconf(_SC_LEVEL2_CACHE_SIZE) >= 2 << 20;
    size_t few = large ? 4 * FEW_ROWS : FEW_ROWS;
    size_t rows = rows_at_a_time(simd, lb_cpu_widest_input(simd), few);
    size_t chunks = lb_cpu_cover(simd->s.T, lb_cpu_cover(rows, simd->s.B));
    return lb_cpu_cover(simd->s.T, chunks);
}

size_t lb_cpu_gradient_rows(const struct lb_cpu_simd *simd, size_t input)
{
    return 2 * rows_at_a_time(simd, input, FEW_ROWS);
}

size_t lb_cpu_widest_input(const struct lb_cpu_simd *simd)
{
    size_t input = (size_t)simd->problem.input;
    return simd->s.L > 1 && simd->s.wide > input ? simd->s.wide : input;
}

static enum lb_status cpu_simd_supports(const struct lb_problem *p,
                                        const struct lb_exec_config *config, struct lb_error *why)
{
    (void)config;
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

static struct lb_cpu_sizes sizes_of(const struct lb_problem *p, size_t simd_width)
{
    struct lb_cpu_sizes s = {.T = (size_t)p->seq_len,
                             .B = (size_t)p->batch,
                             .H = (size_t)p->hidden,
                             .P = (size_t)lb_h_size(p),
                             .D = (size_t)p->directions,
                             .L = (size_t)p->layers,
                             .simd_width = simd_width};
    s.layer_dirs = s.L * s.D;
    s.rows = s.T * s.B;
    s.wide = s.D * s.P;
    s.panels = lb_cpu_cover(s.H, simd_width);
    s.units = s.panels * simd_width;
    s.width = 4 * simd_width;
    s.h_panels = lb_cpu_cover(s.P, s.width);
    s.gates = s.width * s.panels;
    return s;
}

/* Finds the best plan for the CPUs that the process may use. */
static enum lb_status make_plan(const struct lb_cpu_simd *simd, int threads,
                                struct lb_cpu_topology *topology, struct lb_cpu_plan *plan,
                                struct lb_error *err)
{
    struct lb_machine machine;
    const struct lb_cpu_task task = {.problem = &simd->problem,
                                     .topology = topology,
                                     .machine = &machine,
                                     .threads = threads,
                                     .simd_width = simd->s.simd_width};
    lb_cpu_topology_here(topology);
    if ((size_t)threads > topology->count)
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: this process may use only %zu CPUs",
                       threads, topology->count);
    lb_machine_here(topology, true, &machine);
    lb_cpu_plan_of(&task, plan);
    return LB_OK;
}

static enum lb_status open_threads(struct lb_cpu_simd *simd, const struct lb_cpu_topology *topology,
                                   const struct lb_cpu_plan *plan, struct lb_error *err)
{
    struct lb_pinned_place places[LB_MAX_PINNED_THREADS];
    for (size_t i = 0; i < simd->threads; i++) {
        places[i] = (struct lb_pinned_place){topology->places[i].cpu, topology->places[i].domain};
        simd->copy_of[i] = (unsigned char)lb_cpu_plan_copy(plan, topology, i);
    }
    LB_CHECK(lb_pinned_threads_open((int)simd->threads, places, &simd->pinned_threads, err));
    lb_pinned_threads_divide(simd->pinned_threads, simd->team_size);
    return LB_OK;
}

/* Plans the work of up to `threads` threads and opens them. */
static enum lb_status divide_work(struct lb_cpu_simd *simd, int threads, struct lb_error *err)
{
    struct lb_cpu_plan plan = {
        .threads = 1, .teams = 1, .team_size = 1, .copies = 1, .group_panels = 4};
    struct lb_cpu_topology topology;
    if (threads > LB_MAX_PINNED_THREADS)
        return lb_fail(err, LB_UNSUPPORTED, "threads %d: at most %d are allowed", threads,
                       LB_MAX_PINNED_THREADS);
    if (threads > 1)
        LB_CHECK(make_plan(simd, threads, &topology, &plan, err));
    simd->threads = (size_t)plan.threads;
    simd->teams = (size_t)plan.teams;
    simd->team_size = (size_t)plan.team_size;
    simd->copies = (size_t)plan.copies;
    simd->s.group = (size_t)plan.group_panels;
    if (simd->kernels->tiles && simd->s.group < 2)
        simd->s.group = 2; /* column tiles come in pairs */
    size_t widest = lb_cpu_widest_input(simd);
    widest = widest > simd->s.H ? widest : simd->s.H;
    struct lb_cpu_tiling tiling = lb_cpu_tiling_of(
        simd->s.panels, lb_cpu_cover(widest, lb_cpu_column_block(simd)), plan.threads);
    simd->panel_parts = (size_t)tiling.panel_parts;
    simd->column_parts = (size_t)tiling.column_parts;
    if (plan.threads > 1)
        LB_CHECK(open_threads(simd, &topology, &plan, err));
    return LB_OK;
}

/* Who does what: "2 pinned threads that divide the hidden units". */
static void describe_threads(const struct lb_cpu_simd *simd, int asked, char *text, size_t size)
{
    char count[64];
    snprintf(count, sizeof(count), "%zu pinned threads", simd->threads);
    if (simd->threads < (size_t)asked)
        snprintf(count, sizeof(count), "%zu pinned threads instead of %d", simd->threads, asked);
    if (asked == 1)
        snprintf(text, size, "1 thread");
    else if (simd->threads == 1)
        snprintf(text, size, "1 thread instead of %d: a step has too little work to divide", asked);
    else if (simd->teams == 1 || simd->team_size == 1)
        snprintf(text, size, "%s that divide the %s", count,
                 simd->teams == 1 ? "hidden units" : "rows of the batch");
    else
        snprintf(text, size,
                 "%s: %zu teams divide the rows of the batch, and the %zu threads of each team "
                 "the hidden units",
                 count, simd->teams, simd->team_size);
}

static void describe(struct lb_cpu_simd *simd, int asked)
{
    char threads[200], copies[48] = "", scheme[64] = "";
    const char *activations =
        simd->kernels->tiles && simd->kernels->tiles->zero_point ? "u8" : "s8";
    if (simd->problem.dtype == LB_INT8)
        snprintf(scheme, sizeof(scheme), "s8 weights per channel, %s activations static, ",
                 activations);
    describe_threads(simd, asked, threads, sizeof(threads));
    if (simd->copies > 1)
        snprintf(copies, sizeof(copies), ", weights in %zu NUMA nodes", simd->copies);
    snprintf(simd->description, sizeof(simd->description),
             "kernels for %s, %spanels of %zu hidden units, %s%s", simd->kernels->name, scheme,
             simd->s.simd_width, threads, copies);
}

static enum lb_status cpu_simd_create(void *self, const struct lb_problem *problem,
                                      const struct lb_exec_config *config, struct lb_error *err)
{
    struct lb_cpu_simd *simd = self;
    simd->problem = *problem;
    simd->elem = lb_dtype_size(problem->dtype);
    simd->w_elem = problem->dtype == LB_INT8 ? 1 : simd->elem;
    simd->half = simd->elem == 2;
    simd->sum_elem = simd->half ? sizeof(float) : simd->elem;
    simd->kernels = lb_simd_kernels_best(problem->dtype);
    simd->s = sizes_of(problem, simd->kernels->simd_width);
    LB_CHECK(divide_work(simd, config->threads, err));
    simd->chunk = steps_at_a_time(simd);
    simd->gate_rows = simd->s.rows;
    simd->pre_rows = simd->chunk * simd->s.B;
    simd->norm_count = 5 * simd->s.units + LB_CPU_FACTORS;
    simd->cell_rows = lb_cell_weight_count(problem) / simd->s.H;
    describe(simd, config->threads);
    return LB_OK;
}

/* Bytes of one thread's operand: that of the largest GEMM, in whole pages. With operands of two
 * threads in a page, two threads were 1 to 3 % slower in small steps. */
static size_t operand_bytes(const struct lb_cpu_simd *simd)
{
    const struct lb_cpu_sizes *s = &simd->s;
    size_t input = lb_cpu_widest_input(simd);
    size_t forward = simd->pre_rows * lb_cpu_padded(simd, input);
    size_t team_rows = lb_cpu_cover(s->B, simd->teams);
    size_t step = team_rows * lb_cpu_padded(simd, s->H);
    size_t most = forward > step ? forward : step;
    if (lb_has_backward(&simd->problem)) {
        size_t rows = lb_cpu_gradient_rows(simd, input);
        size_t backward = (rows > team_rows ? rows : team_rows) * s->gates;
        most = backward > most ? backward : most;
    }
    return (most * simd->kernels->operand_size + PAGE - 1) / PAGE * PAGE;
}

/* Elements of one thread's sums: those of a step, and for bf16 and f16 of a chunk of input
 * gradients, whose rows are padded to whole vectors. */
static size_t sum_count(const struct lb_cpu_simd *simd)
{
    const struct lb_cpu_sizes *s = &simd->s;
    size_t input = lb_cpu_widest_input(simd), step = lb_cpu_cover(s->B, simd->teams) * s->width;
    size_t chunk =
        lb_cpu_gradient_rows(simd, input) * lb_cpu_cover(input, s->simd_width) * s->simd_width;
    return simd->half && chunk > step ? chunk : step;
}

/* Sets the pointers to the arrays of cells other than the standard one; passes: what backward
 * reads. */
static void lay_out_cell(struct lb_cpu_simd *simd, struct lb_arena *passes,
                         struct lb_arena *scratch)
{
    const struct lb_cpu_sizes *s = &simd->s;
    bool trains = lb_trains(&simd->problem), backward = lb_has_backward(&simd->problem);
    size_t layers = simd->problem.cell == LB_CELL_RESIDUAL ? s->L - 1 : s->L;
    size_t sums = backward ? s->B * simd->cell_rows * s->units * simd->sum_elem : 0;
    switch (simd->problem.cell) {
    case LB_CELL_RECURRENT_DROPOUT:
        simd->h0 = lb_arena_take(passes, s->layer_dirs * s->B * s->H * simd->elem);
        /* fall through */
    case LB_CELL_RESIDUAL:
        layers = !trains && layers > 2 ? 2 : layers;
        simd->h = lb_arena_take(passes, layers * s->rows * s->wide * simd->elem);
        break;
    case LB_CELL_PROJECTION:
        simd->hidden =
            lb_arena_take(passes, (trains ? s->layer_dirs * s->rows : s->B) * s->H * simd->elem);
        simd->dh =
            lb_arena_take(scratch, backward ? s->h_panels * s->rows * s->width * simd->elem : 0);
        break;
    case LB_CELL_LAYERNORM:
        simd->dh = lb_arena_take(scratch, backward ? s->B * s->H * simd->elem : 0);
        simd->scratch = lb_arena_take(scratch, simd->threads * 5 * s->units * simd->sum_elem);
        if (trains)
            simd->norm =
                lb_arena_take(passes, s->layer_dirs * s->rows * simd->norm_count * simd->sum_elem);
        /* fall through */
    case LB_CELL_PEEPHOLE: simd->cell_sums = lb_arena_take(scratch, sums); break;
    default: break;
    }
}

/* Sets the pointers to all arrays. With zeroed buffers it only computes the sizes. */
static void lay_out(struct lb_cpu_simd *simd, size_t *reserve, size_t *workspace)
{
    const struct lb_cpu_sizes *s = &simd->s;
    bool trains = lb_trains(&simd->problem), backward = lb_has_backward(&simd->problem);
    size_t lower = !trains && s->L > 2 ? 2 : s->L - 1;
    size_t state = s->layer_dirs * s->B * s->H * simd->sum_elem;
    struct lb_arena scratch = {.base = simd->buffers.workspace};
    struct lb_arena kept = {.base = simd->buffers.reserve};
    struct lb_arena *passes = trains ? &kept : &scratch;
    simd->pointers = lb_arena_take(&scratch, simd->threads * 2 * s->B * sizeof(void *));
    if (trains) {
        simd->gates = lb_arena_take(passes, s->layer_dirs * s->rows * s->gates * simd->elem);
        simd->cells = lb_arena_take(passes, s->layer_dirs * s->rows * s->H * simd->sum_elem);
    }
    if (simd->kernels->tiles)
        lb_cpu_tiles_lay_out(simd, &scratch);
    else if (simd->half || !trains)
        simd->pre = lb_arena_take(&scratch, simd->pre_rows * s->gates * simd->sum_elem);
    simd->lower = lb_arena_take(passes, lower * s->rows * s->wide * simd->elem);
    if (simd->half && (backward || !simd->kernels->tiles))
        simd->c0 = lb_arena_take(&scratch, state);
    if (simd->half && !simd->kernels->tiles) {
        simd->c = trains ? NULL : lb_arena_take(&scratch, state);
        simd->dc = backward ? lb_arena_take(&scratch, state) : NULL;
        simd->operand_bytes = operand_bytes(simd);
        simd->operands = lb_arena_take(&scratch, simd->threads * simd->operand_bytes);
    }
    lay_out_cell(simd, passes, &scratch);
    if (!simd->kernels->tiles && (backward || simd->problem.cell == LB_CELL_PROJECTION)) {
        simd->sum_count = sum_count(simd);
        simd->sums = lb_arena_take(&scratch, simd->threads * simd->sum_count * simd->sum_elem);
    }
    if (backward) {
        simd->between = lb_arena_take(&scratch, (s->L > 1 ? s->rows * s->wide : 0) * simd->elem);
        simd->first = lb_arena_take(&scratch, s->B * s->gates * simd->elem);
        simd->packed_bytes =
            simd->kernels->tiles ? lb_cpu_tiles_packed_bytes(simd) : lb_cpu_packed_bytes(simd);
        simd->packed = lb_arena_take(&scratch, simd->threads * simd->packed_bytes);
    }
    *reserve = kept.used;
    *workspace = scratch.used;
}

static enum lb_status cpu_simd_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    struct lb_cpu_simd *simd = self;
    const struct lb_cpu_sizes *s = &simd->s;
    double largest = (double)s->layer_dirs * (double)s->rows * (double)s->gates;
    if (largest > 0x1p58) /* the number of bytes would not fit a size_t */
        return lb_fail(err, LB_OOM,
                       "the gates of all steps are %.3g elements, more than any memory holds",
                       largest);
    sizes->weights = lb_cpu_weight_bytes(simd);
    if (lb_has_backward(&simd->problem))
        sizes->gradients = lb_cpu_gradient_bytes(simd);
    lay_out(simd, &sizes->reserve, &sizes->workspace);
    return LB_OK;
}

/* Calls work on all threads. */
static enum lb_status run(const struct lb_cpu_simd *simd, void (*work)(void *, size_t),
                          struct lb_cpu_call call)
{
    call.simd = simd;
    lb_pinned_threads_run(simd->pinned_threads, work, &call);
    return LB_OK;
}

static enum lb_status cpu_simd_prepare(void *self, const struct lb_buffers *buffers,
                                       const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_cpu_simd *simd = self;
    size_t reserve, workspace;
    (void)err;
    simd->buffers = *buffers;
    lay_out(simd, &reserve, &workspace);
    run(simd, lb_cpu_pack_work, (struct lb_cpu_call){.weights = weights});
    if (lb_has_backward(&simd->problem))
        run(simd, lb_cpu_touch_work, (struct lb_cpu_call){0});
    return LB_OK;
}

static enum lb_status cpu_simd_forward(void *self, const struct lb_forward_io *io,
                                       struct lb_error *err)
{
    const struct lb_cpu_simd *simd = self;
    (void)err;
    return run(simd, simd->kernels->tiles ? lb_cpu_tiles_forward_work : lb_cpu_forward_work,
               (struct lb_cpu_call){.forward = io});
}

static enum lb_status cpu_simd_backward(void *self, const struct lb_backward_io *io,
                                        struct lb_error *err)
{
    (void)err;
    return run(self, lb_cpu_backward_work, (struct lb_cpu_call){.backward = io});
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
