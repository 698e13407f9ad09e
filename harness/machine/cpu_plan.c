/* The cost model that divides the steps of an LSTM among threads. */
#include "machine/cpu_plan.h"

#include <math.h>

/* Below so many rows per team a panel of weights is read for too few products. */
enum { MIN_ROWS_PER_TEAM = 6 };

/* An input GEMM covers at least so many rows, of several steps if need be. */
enum { INPUT_ROWS = 24 };

/* Flops that cost as much time as the cell of one hidden unit and row, in f32 (measured with
 * AVX-512: 7 % of a step with 256 hidden units). */
static const double cell_flops = 150;

/* The part of a cache that weights may fill; the rest is for rows, gates and states. */
static const double weights_part_of_l2 = 0.5, weights_part_of_l3 = 0.75;

/* Part of the peak rate that a backward GEMM reaches with groups of 1, 2 and 4 panels: the fewer
 * columns share a row's element, the more of the time is spent on loading elements. */
static const double group_rate[] = {[1] = 0.55, [2] = 0.85, [4] = 1};

/* Reading operands from and writing them to the L2 cache, by its rate of reading. */
static const double operand_rate = 1.0 / 3;

static double cover(double n, double parts)
{
    return ceil(n / parts);
}

/* A plan while its cost is computed. */
struct costing {
    const struct lb_cpu_task *task;
    struct lb_cpu_plan *plan;
    double threads, size;        /* of all teams, of one */
    double H, input, elem;       /* input: mean I_l of the layers */
    double panels, gates;        /* of a row, padded */
    double rows;                 /* of the largest team */
    double flops_ns, f32_ns;     /* per thread: flops per ns in the dtype, and in f32 */
    double read[LB_LEVEL_COUNT]; /* bytes per ns of one thread */
    double l3_bytes;
    double rows_per_load; /* that share the weights of a panel that a kernel loads */
    bool half;
};

static struct costing open_costing(const struct lb_cpu_task *task, struct lb_cpu_plan *plan)
{
    const struct lb_problem *p = task->problem;
    const struct lb_machine *m = task->machine;
    double L = (double)p->layers, wide = (double)p->directions * (double)p->hidden;
    struct costing k = {.task = task,
                        .plan = plan,
                        .threads = plan->threads,
                        .size = plan->team_size,
                        .H = (double)p->hidden,
                        .input = ((double)p->input + (L - 1) * wide) / L,
                        .elem = (double)lb_dtype_size(p->dtype),
                        .half = lb_dtype_size(p->dtype) == 2};
    /* A step takes as long as on the core with the most threads. */
    int cores = (int)task->topology->cores, busy = plan->threads < cores ? plan->threads : cores;
    double sharers = busy * cover(plan->threads, cores);
    k.panels = cover(k.H, (double)task->simd_width);
    k.gates = 4 * (double)task->simd_width * k.panels;
    k.rows = cover((double)p->batch, plan->teams);
    double flops = busy * m->clock_hz / sharers * 1e-9;
    k.flops_ns = m->flops_clock[p->dtype] * flops;
    k.f32_ns = m->flops_clock[p->dtype == LB_F64 ? LB_F64 : LB_F32] * flops;
    for (int level = 0; level < LB_LEVEL_COUNT; level++)
        k.read[level] =
            lb_machine_read_s(m, (enum lb_level)level, busy, m->clock_hz) / sharers * 1e-9;
    k.l3_bytes = m->bytes[LB_CACHE];
    enum lb_cpu_unit unit = m->units[p->dtype];
    k.rows_per_load = unit == LB_CPU_AMX ? 32 : unit >= LB_CPU_AVX512 ? 6 : 3;
    return k;
}

/* How many third-level caches, or NUMA nodes, the threads [first, first + count) use. */
static int count_places(const struct lb_cpu_topology *topology, int first, int count, bool nodes)
{
    int places = 1;
    for (int i = first + 1; i < first + count; i++) {
        const struct lb_cpu_place *last = &topology->places[i - 1], *next = last + 1;
        places += nodes ? next->node != last->node : next->domain != last->domain;
    }
    return places;
}

/* The latency of a barrier between `count` threads in so many domains: arrivals within domains, one
 * after another, then of one thread per domain; at last the news goes out to all. */
static double barrier_ns(const struct lb_cpu_task *task, int count, int domains)
{
    const struct lb_machine *m = task->machine;
    int size = (m->cores + m->domains - 1) / m->domains;
    int per_node = m->domains > m->nodes ? m->domains / m->nodes : 1; /* nodes may share an L3 */
    int near = domains < per_node ? domains : per_node;
    double out = domains > per_node ? m->remote_clocks
                 : domains > 1      ? m->far_clocks
                                    : m->peer_clocks;
    double clocks = out + (count < size ? count : size) * m->peer_clocks;
    if (domains > 1)
        clocks += near * m->far_clocks + (domains - near) * m->remote_clocks;
    return count < 2 ? 0 : clocks / m->clock_hz * 1e9;
}

/* Reading, per step, the weights [bytes of this thread] that its L2 cache does not hold. */
static double outer_reads_ns(struct costing *k, double bytes, double team_bytes)
{
    const double *size = k->task->machine->bytes;
    double near = size[LB_INNER] + weights_part_of_l2 * size[LB_OWN];
    double beyond = bytes - near;
    if (!(beyond > 0)) {
        k->plan->residency = bytes <= size[LB_INNER] ? LB_INNER : LB_OWN;
        return 0;
    }
    double held = weights_part_of_l3 * k->l3_bytes * k->plan->team_domains / team_bytes;
    double from_memory = held < 1 ? beyond * (1 - held) : 0;
    k->plan->residency = from_memory > 0 ? LB_MEMORY : LB_CACHE;
    return fmax(beyond / k->read[LB_CACHE], from_memory / k->read[LB_MEMORY]);
}

/* The time of a thread's GEMM of `rows` rows with weights [terms, columns], which it reads `passes`
 * times from an inner cache. */
static double gemm_ns(const struct costing *k, double rows, double terms, double columns,
                      double passes)
{
    double bytes = terms * columns * k->elem;
    bool near = bytes <= k->task->machine->bytes[LB_INNER] / 2;
    return fmax(2 * rows * terms * columns / k->flops_ns,
                passes * bytes / k->read[near ? LB_INNER : LB_OWN]);
}

/* Reading rows [bytes] of which the other threads of the team have written their part. */
static double exchange_ns(const struct costing *k, double bytes)
{
    enum lb_level level = k->plan->team_domains > 1 ? LB_MEMORY : LB_CACHE;
    return bytes * (k->size - 1) / k->size / k->read[level];
}

/* Adds what follows from the bytes of a step's rows (those of 16 bits are written for the unit),
 * and the total. */
static void add_up(const struct costing *k, double shared_bytes, double operand_bytes,
                   struct lb_cpu_step_cost *cost)
{
    cost->operands_ns = k->half ? operand_bytes / (operand_rate * k->read[LB_OWN]) : 0;
    cost->exchange_ns = exchange_ns(k, shared_bytes);
    cost->barrier_ns = barrier_ns(k->task, k->plan->team_size, k->plan->team_domains);
    cost->total_ns = fmax(cost->gemm_ns, cost->weights_ns) +
                     fmin(cost->gemm_ns, cost->weights_ns) / 4 + cost->cell_ns + cost->operands_ns +
                     cost->exchange_ns + cost->barrier_ns;
}

static void forward_cost(struct costing *k)
{
    struct lb_cpu_step_cost *cost = &k->plan->forward;
    double columns = cover(k->panels, k->size) * 4 * (double)k->task->simd_width;
    double loads = cover(k->rows, k->rows_per_load);
    /* Of a team that has all rows of several steps, the input GEMM covers several steps. */
    double few = k->plan->teams == 1 ? fmin(k->rows / INPUT_ROWS, 1) : 1;
    double terms = k->H + few * k->input;
    cost->gemm_ns = gemm_ns(k, k->rows, k->H, columns, loads) +
                    gemm_ns(k, k->rows, k->input, columns,
                            k->plan->teams == 1 ? k->rows / k->rows_per_load : loads);
    cost->weights_ns = outer_reads_ns(k, terms * columns * k->elem, terms * k->gates * k->elem);
    cost->cell_ns = cell_flops * k->rows * columns / 4 / k->f32_ns;
    add_up(k, k->rows * k->H * k->elem, k->rows * (k->H + k->input) * k->elem, cost);
}

/* With the best size of a group of panels. */
static void backward_cost(struct costing *k)
{
    static const int sizes[] = {4, 2, 1};
    double loads = cover(k->rows, k->rows_per_load), width = (double)k->task->simd_width;
    k->plan->backward.total_ns = INFINITY;
    for (int i = 0; i < 3; i++) {
        struct lb_cpu_step_cost cost = {0};
        double groups = cover(k->panels, sizes[i]);
        double columns = fmin(cover(groups, k->size) * sizes[i], k->panels) * width;
        double row_bytes = k->rows * k->gates * k->elem;
        enum lb_level residency = k->plan->residency;
        cost.gemm_ns = gemm_ns(k, k->rows, k->gates, columns, loads) / group_rate[sizes[i]];
        cost.weights_ns =
            outer_reads_ns(k, columns * k->gates * k->elem, k->H * k->gates * k->elem);
        k->plan->residency = residency;
        cost.cell_ns = cell_flops * k->rows * columns / k->f32_ns;
        add_up(k, row_bytes, row_bytes, &cost);
        if (cost.total_ns < k->plan->backward.total_ns) {
            k->plan->backward = cost;
            k->plan->group_panels = sizes[i];
        }
    }
}

/* The GEMMs over all steps of a layer and direction: weight gradients in tiles of panels and
 * columns, and input gradients by rows. */
static double late_gemms_ns(const struct costing *k)
{
    const struct lb_problem *p = k->task->problem;
    double rows = (double)p->seq_len * (double)p->batch;
    double blocks = cover(k->input + k->H, INPUT_ROWS);
    struct lb_cpu_tiling tiling =
        lb_cpu_tiling_of((size_t)k->panels, (size_t)blocks, k->plan->threads);
    double part = cover(k->panels, tiling.panel_parts) / k->panels *
                  cover(blocks, tiling.column_parts) / blocks;
    return 2 * rows * k->gates * ((k->input + k->H) * part + k->input / k->threads) / k->flops_ns;
}

void lb_cpu_plan_with(const struct lb_cpu_task *task, int teams, int team_size,
                      struct lb_cpu_plan *plan)
{
    const struct lb_problem *p = task->problem;
    const struct lb_cpu_topology *t = task->topology;
    double layer_dirs = (double)lb_layer_dir_count(p), T = (double)p->seq_len;
    bool apart = false; /* a team is in several nodes */
    *plan = (struct lb_cpu_plan){.threads = teams * team_size,
                                 .teams = teams,
                                 .team_size = team_size,
                                 .group_panels = 4,
                                 .team_domains = 1};
    for (int team = 0; team < teams; team++) {
        int domains = count_places(t, team * team_size, team_size, false);
        plan->team_domains = domains > plan->team_domains ? domains : plan->team_domains;
        apart |= count_places(t, team * team_size, team_size, true) > 1;
    }
    /* A team in several nodes shares one copy, as do teams that are all in one node. */
    plan->copies = apart ? 1 : count_places(t, 0, plan->threads, true);
    struct costing k = open_costing(task, plan);
    double all_barrier = barrier_ns(task, plan->threads, count_places(t, 0, plan->threads, false));
    forward_cost(&k);
    if (p->pass != LB_BACKWARD)
        plan->total_ns += layer_dirs * T * plan->forward.total_ns + 2 * all_barrier;
    if (!lb_has_backward(p))
        return;
    backward_cost(&k);
    plan->total_ns += layer_dirs * (T * plan->backward.total_ns + late_gemms_ns(&k)) +
                      (2 + 3 * layer_dirs) * all_barrier;
}

void lb_cpu_plan_of(const struct lb_cpu_task *task, struct lb_cpu_plan *plan)
{
    int B = task->problem->batch < INT32_MAX ? (int)task->problem->batch : INT32_MAX;
    int panels = (int)fmin(cover((double)task->problem->hidden, (double)task->simd_width), 1e6);
    lb_cpu_plan_with(task, 1, 1, plan);
    for (int teams = 1; teams <= task->threads; teams++) {
        if (teams > 1 && B / teams < MIN_ROWS_PER_TEAM)
            break;
        for (int size = 1; size <= panels && teams * size <= task->threads; size++) {
            struct lb_cpu_plan other;
            lb_cpu_plan_with(task, teams, size, &other);
            if (other.total_ns < plan->total_ns)
                *plan = other;
        }
    }
}

int lb_cpu_plan_copy(const struct lb_cpu_plan *plan, const struct lb_cpu_topology *topology,
                     size_t thread)
{
    return plan->copies == 1 ? 0 : count_places(topology, 0, (int)thread + 1, true) - 1;
}

struct lb_cpu_tiling lb_cpu_tiling_of(size_t panels, size_t column_blocks, int threads)
{
    struct lb_cpu_tiling best = {1, 1};
    double least = INFINITY;
    for (int parts = threads; parts >= 1; parts--) {
        int columns = threads / parts;
        if ((size_t)parts > panels)
            continue;
        if ((size_t)columns > column_blocks)
            columns = column_blocks > 0 ? (int)column_blocks : 1;
        double work = cover((double)panels, parts) * cover((double)column_blocks, columns);
        if (work < least) {
            least = work;
            best = (struct lb_cpu_tiling){parts, columns};
        }
    }
    return best;
}
