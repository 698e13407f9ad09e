/* Family `step`: the matrix product and the cells of one step in one kernel, launched T times. It
 * takes every dtype and size, and reads the weights from the second-level cache in each step. */
#include <math.h>
#include <stdio.h>

#include "cuda/fused/step/step.h"
#include "impls/fused/fused.h"

#define FIGURES(...) {__VA_ARGS__},
static const struct lb_step_tile tiles[] = {LB_STEP_TILES(FIGURES) LB_STEP_TENSOR_TILES(FIGURES)
                                                LB_STEP_CLUSTER_TILES(FIGURES)};

#define ONE(...) +1
enum {
    TILES = sizeof(tiles) / sizeof(*tiles),
    PLAIN_TILES = 0 LB_STEP_TILES(ONE), /* the first, for all types */
    FORWARD_TILES = PLAIN_TILES LB_STEP_TENSOR_TILES(ONE)
};

/* The cost of what is neither moving bytes nor multiplying matrices, estimated before the first run
 * on a device. */
enum {
    LAUNCH_NS =
        1300, /* from one node of a graph to the next: RRZE-HPC/gpu-benches, 1.26 to 1.37 us */
    /* From the end of a step to a step whose blocks wait for it. No figure is published; that of a
     * barrier of all blocks by atomics is taken (gpu-benches, 1.04 to 1.08 us). */
    FOLLOW_NS = 1040,
    CELL_CLOCKS = 400, /* sums through shared memory, one cell per thread, late inputs */
    /* Until inputs arrive that are in memory or in the far half of the cache: HPMLL's benchmark, on
     * Hopper. A thread requests those of a group of cells together; each further group waits. */
    MEMORY_CLOCKS = 470,
    /* Instructions per cell in the SASS of sm_90a, f16, 64 x 64, in training, without branches not
     * taken. Backward has two parts: until its inputs are requested, and once they and dh are
     * there. */
    FORWARD_INSTRUCTIONS = 105,
    REQUEST_INSTRUCTIONS = 75,
    BACKWARD_INSTRUCTIONS = 100,
    SCHEDULERS = 4, /* of an SM; each issues one instruction of a warp per clock */
};

/* An H100 took measured_factor times what the terms predict, less MEASURED_NS: launches cost less
 * than they say, and bytes more. */
enum { MEASURED_NS = 1800 };
static const double measured_factor = 2.2;

/* The share of the peak that is reached: by mma.sync on Hopper (source: HPMLL's benchmark), and by
 * plain units that read operands from shared memory. */
static const double tensor_share = 0.62, plain_share = 0.5;

static bool on_tensor_cores(const struct lb_problem *p)
{
    return p->dtype == LB_F16 || p->dtype == LB_BF16 || (p->dtype == LB_F32 && p->math != LB_IEEE);
}

/* Returns the tiles of both directions together: one block each, or one cluster. */
static int64_t tile_count(const struct lb_problem *p, const struct lb_step_tile *t, bool backward)
{
    int64_t units = lb_step_units(t, backward);
    return (p->hidden + units - 1) / units * ((p->batch + t->columns - 1) / t->columns) *
           p->directions;
}

/* Returns how many tiles run at the same time where an SM has room for one block. */
static int tiles_at_a_time(const struct lb_device_info *device, const struct lb_step_tile *t)
{
    return t->blocks == 1 ? device->sm_count
                          : lb_fused_resident_clusters(device->sm_count, t->blocks);
}

/* Whether the blocks of a step are resident before the step before has ended. */
static bool follows(const struct lb_fused_view *v, const struct lb_fused_plan *plan)
{
    int driver = v->device->driver; /* 0: not known */
    return v->device->major >= 9 && (driver == 0 || driver >= 12030) &&
           2 * plan->needed <= plan->resident;
}

/* Returns the clocks of a step behind its products that CELL_CLOCKS does not have: for all cells of
 * a thread but the first, and for the sums that a block of a cluster receives from its peers, while
 * it requests the inputs of its first cells. */
static double late_clocks(const struct lb_fused_view *v, const struct lb_fused_plan *plan)
{
    const struct lb_step_tile *t = &tiles[plan->tile];
    double warps = lb_step_threads(t) / 32.0, columns = fmin(t->columns, (double)v->problem->batch);
    double own = lb_step_units(t, plan->backward) * ceil(columns / t->blocks);
    double cells = ceil(own / (32 * warps)), each = warps / SCHEDULERS;
    if (!plan->backward)
        return (cells - 1) * FORWARD_INSTRUCTIONS * each;
    double groups = ceil(cells / LB_STEP_GROUP);
    double first = fmin(cells, LB_STEP_GROUP); /* cells of the first group */
    double requests = (first - 1) * REQUEST_INSTRUCTIONS * each;
    if (t->blocks > 1)
        requests = fmax(requests, v->machine.peer_clocks +
                                      (t->blocks - 1) * own * 4 / v->machine.peer_bytes_clock);
    return requests + (cells - first) * REQUEST_INSTRUCTIONS * each + (groups - 1) * MEMORY_CLOCKS +
           (cells - 1) * BACKWARD_INSTRUCTIONS * each;
}

/* Predicts the time of a step and its parts: the launch, the first bytes, and then the longest of
 * moving bytes through an SM's port, moving all bytes through the cache or from device memory, and
 * multiplying. Steps that follow each other have fetched the first slices of their weights. */
static void predict(const struct lb_fused_view *v, struct lb_fused_plan *plan)
{
    const struct lb_problem *p = v->problem;
    const struct lb_machine *m = &v->machine;
    const struct lb_step_tile *t = &tiles[plan->tile];
    double weights = (double)p->directions *
                     (double)lb_step_weight_bytes(t, plan->backward, p->dtype, p->hidden);
    double slice = 64.0 * t->split;
    double all = (double)lb_step_row_bytes(t, plan->backward, p->dtype, p->hidden) / slice;
    double row = ceil(all / t->blocks) * slice; /* of the depth that a block multiplies */
    double rows = 16.0 * t->row_tiles; /* of weights; of the state only existing rows are read */
    double fetched = plan->kernel.step.follows ? (LB_STEP_STAGES - 1) * slice : 0;
    double bytes = rows * fmax(row - fetched, 0) + fmin(t->columns, (double)p->batch) * row;
    double flops = 2 * rows * t->columns * row / (double)lb_dtype_size(p->dtype);
    double tf32 = p->dtype == LB_F32 ? m->tf32_flops_clock : m->flops_clock[p->dtype];
    double rate = on_tensor_cores(p) ? tf32 * tensor_share : m->flops_clock[p->dtype] * plain_share;
    double each =
        ceil((double)plan->needed / tiles_at_a_time(v->device, t)); /* on the busiest SM */
    double port = each * bytes / m->bytes_clock[LB_CACHE], product = each * flops / rate;
    double cache = plan->needed * t->blocks * bytes / m->bytes_s[LB_CACHE];
    if (weights > v->device->l2_bytes)
        cache = fmax(cache, weights / m->bytes_s[LB_MEMORY]);
    double work = fmax(fmax(port, product) / m->clock_hz, cache);
    double begin = plan->kernel.step.follows ? FOLLOW_NS : LAUNCH_NS;
    double clocks = m->far_clocks + CELL_CLOCKS + late_clocks(v, plan);
    plan->product_ns = measured_factor * work * 1e9;
    plan->exchange_ns = measured_factor * begin - MEASURED_NS;
    plan->step_ns =
        plan->product_ns + plan->exchange_ns + measured_factor * clocks / m->clock_hz * 1e9;
}

static bool fits(const struct lb_fused_view *v, const struct lb_step_tile *t, bool backward)
{
    bool clusters = v->device->major >= 9 && v->machine.cluster >= t->blocks;
    return tile_count(v->problem, t, backward) * t->blocks <= INT32_MAX &&
           (double)lb_step_shared(t) <= v->device->shared_bytes &&
           (t->blocks == 1 || (clusters && tiles_at_a_time(v->device, t) > 0));
}

static int step_plan(const struct lb_fused_view *view, bool backward, struct lb_fused_plan *plans,
                     struct lb_error *why)
{
    const struct lb_problem *p = view->problem;
    int count = 0, candidates = !on_tensor_cores(p) ? PLAIN_TILES
                                : backward          ? TILES
                                                    : FORWARD_TILES;
    if (lb_device_needs(view->device, 8, "", why) != LB_OK)
        return 0;
    for (int i = 0; i < candidates; i++) {
        const struct lb_step_tile *t = &tiles[i];
        if (!fits(view, t, backward))
            continue;
        struct lb_fused_plan *plan = &plans[count++];
        *plan = (struct lb_fused_plan){
            .backward = backward, .tile = i, .needed = (int)tile_count(p, t, backward)};
        double each = lb_step_pairs(t, p->dtype, p->math) ? 2 : 1;
        each = fmin(each, view->device->shared_bytes / (double)lb_step_shared(t));
        plan->resident = tiles_at_a_time(view->device, t) * (int)each;
        plan->kernel.step = (struct lb_step_kernel){
            .tile = *t,
            .dtype = p->dtype,
            .math = p->math,
            .act = p->act,
            .backward = backward,
            .follows = follows(view, plan),
        };
        predict(view, plan);
    }
    if (count == 0)
        lb_fail(why, LB_UNSUPPORTED, "no step tile fits: %lld blocks, %.0f KiB of shared memory",
                (long long)tile_count(p, &tiles[0], backward), view->device->shared_bytes / 1024);
    return count;
}

static void step_describe(const struct lb_problem *problem, const struct lb_fused_plan *plan,
                          char *text, size_t size)
{
    const struct lb_step_tile *t = &tiles[plan->tile];
    const char *units = !on_tensor_cores(problem)  ? "plain units"
                        : problem->dtype == LB_F32 ? "tensor cores in TF32"
                                                   : "tensor cores";
    char tile[40] = "blocks";
    if (t->blocks > 1)
        snprintf(tile, sizeof(tile), "clusters of %d blocks", t->blocks);
    snprintf(text, size, "one kernel per step, %d %s, %d at a time, %d units x %d rows; %s",
             plan->needed, tile, plan->resident, lb_step_units(t, plan->backward), t->columns,
             units);
}

static struct lb_weight_layout step_layout(const struct lb_problem *problem,
                                           const struct lb_fused_plan *plan)
{
    return lb_step_layout(&tiles[plan->tile], plan->backward, problem->dtype, problem->math,
                          problem->hidden);
}

static enum lb_status step_ready(struct lb_fused_plan *plan, struct lb_error *err)
{
    return lb_step_ready(&plan->kernel.step, &plan->resident, err);
}

const struct lb_fused_family lb_fused_step = {
    .name = "step",
    .plan = step_plan,
    .describe = step_describe,
    .layout = step_layout,
    .ready = step_ready,
    .launch = lb_step_launch,
};
