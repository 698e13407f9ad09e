/* Family `cluster`: weights stay in the registers of a thread-block cluster, and one launch runs a
 * sequence. sm_90 and later, f16 and bf16, H up to 768. cuda/README.md lists the terms of the
 * cost. */
#include <math.h>
#include <stdio.h>

#include "cuda/fused/cluster/cluster.h"
#include "impls/fused/fused.h"

#define FIGURES(...) {__VA_ARGS__},
static const struct lb_cluster_tile forward_tiles[] = {LB_CLUSTER_FORWARD_TILES(FIGURES)};
static const struct lb_cluster_tile backward_tiles[] = {LB_CLUSTER_BACKWARD_TILES(FIGURES)};

enum {
    FORWARD = sizeof(forward_tiles) / sizeof(*forward_tiles),
    BACKWARD = sizeof(backward_tiles) / sizeof(*backward_tiles)
};

/* What a step costs: clocks in any case, per block of the cluster, per cell of a thread beyond the
 * first, and per warp beyond two that share a depth; how many times the product takes what tensor
 * cores or shared memory need for it alone; and the bytes per clock that a block receives from its
 * peers, of the first 8 columns and of those beyond. Fitted to what an H100 took. In
 * results/h100/try_fused.txt, all plans of H = 256 and above whose clusters run at the same time
 * are within 8 %; where they do not, within 21 %. */
struct costs {
    double step, block, cell, third_warp, product, peer_bytes, peer_bytes_beyond;
};
static const struct costs forward_costs = {940, 27, 620, 640, 1.0, 30, 8.3},
                          backward_costs = {1250, 49, 520, 0, 1.66, 106, 6.5};

/* The share of the tensor cores' peak that mma.sync reaches, measured on an H100: an m16n8k16 takes
 * 6.1 clocks. */
static const double mma_share = 0.66;

/* plan->tile is ROWS_CHOICES * the index in the list of tiles, plus how often the tile's columns
 * are halved: fewer batch rows per cluster are fewer bytes to exchange, while the device has
 * clusters left. */
enum { ROWS_CHOICES = 3 };

static const struct lb_cluster_tile *tile_of(const struct lb_fused_plan *plan)
{
    return &(plan->backward ? backward_tiles : forward_tiles)[plan->tile / ROWS_CHOICES];
}

static int rows_of(const struct lb_fused_plan *plan)
{
    return tile_of(plan)->columns >> plan->tile % ROWS_CHOICES;
}

/* Returns the bytes of shared memory that a block asks for at least. Where the clusters of all
 * layers have an SM for each block, they ask for more than half of an SM's memory, 228 KiB on an
 * H100, so that neither another cluster nor a block of a GEMM shares the SM. Where they have not,
 * clusters that share an SM are better than clusters that wait. */
static size_t shared_least(const struct lb_fused_view *v, const struct lb_fused_plan *plan)
{
    enum { ALONE_BYTES = 116 << 10 };
    return lb_fused_layers_fit(v->problem, plan)
               ? (size_t)fmin(ALONE_BYTES, v->device->shared_bytes)
               : 0;
}

static double waves_of(const struct lb_fused_plan *plan)
{
    return ceil((double)plan->needed / plan->resident);
}

/* Returns how many columns are sent: the batch rows of a cluster in whole messages of `message`
 * columns. */
static double sent_columns(const struct lb_problem *p, int rows_each, int message)
{
    int64_t rows = p->batch < rows_each ? p->batch : rows_each;
    return (double)((rows + message - 1) / message * message);
}

/* Predicts the time of a step and its parts, with all waves of clusters. While products are
 * computed, shared memory delivers the operands of the next ones: the slower of both counts. */
static void predict(const struct lb_fused_view *v, struct lb_fused_plan *plan)
{
    const struct lb_machine *m = &v->machine;
    const struct lb_cluster_tile *t = tile_of(plan);
    double warps = t->warps, cells = t->columns / 8, own = 4 * warps;
    double spilled = warps * (lb_cluster_fragments(t) - t->resident) * 512;
    const struct costs *costs = plan->backward ? &backward_costs : &forward_costs;
    double column, columns, read,
        other = costs->step + costs->block * t->blocks + costs->cell * (cells - 1);
    if (plan->backward) { /* sums from all blocks for own units; own gate gradients, read by all
                             warps */
        column = t->blocks * own * 4;
        columns = sent_columns(v->problem, rows_of(plan), 4);
        read = t->blocks * own * t->columns * 4 + warps * own * 4 * t->columns * 2;
    } else { /* h of all units, of which each warp reads its part of the depth; with spilled weights
                without the columns that have no row, four at a time */
        bool all = spilled == 0 || cells > 1;
        double operand = all ? t->columns : sent_columns(v->problem, rows_of(plan), 4);
        column = lb_cluster_reach(t) * 2;
        columns = sent_columns(v->problem, rows_of(plan), 2);
        read = warps * lb_cluster_reach(t) * operand * 2 / t->split +
               2 * warps * (t->split - 1) * cells * 512;
        other += costs->third_warp * fmax(t->split - 2, 0);
    }
    double flops = warps * lb_cluster_fragments(t) * cells * 2 * 16 * 16 * 8;
    double product = flops / (m->flops_clock[v->problem->dtype] * mma_share);
    double reading = (read + spilled) / m->bytes_clock[LB_OWN];
    double exchange =
        column * (t->blocks - 1) / t->blocks *
        (fmin(columns, 8) / costs->peer_bytes + fmax(columns - 8, 0) / costs->peer_bytes_beyond);
    double clock_ns = waves_of(plan) / m->clock_hz * 1e9;
    plan->product_ns = costs->product * fmax(product, reading) * clock_ns;
    plan->exchange_ns = exchange * clock_ns;
    plan->step_ns = plan->product_ns + plan->exchange_ns + other * clock_ns;
}

static bool fits(const struct lb_fused_view *v, const struct lb_fused_plan *plan)
{
    const struct lb_cluster_tile *t = tile_of(plan);
    size_t shared = lb_cluster_shared(t, plan->backward);
    return lb_cluster_reach(t) >= v->problem->hidden && plan->resident > 0 &&
           t->blocks <= v->machine.cluster && (double)shared <= v->device->shared_bytes;
}

/* Checks the limits that all tiles have. */
static enum lb_status check_problem(const struct lb_fused_view *v, struct lb_error *why)
{
    const struct lb_problem *p = v->problem;
    if (p->dtype != LB_F16 && p->dtype != LB_BF16)
        return lb_fail(why, LB_UNSUPPORTED, "%s: the cluster kernels multiply f16 and bf16 only",
                       lb_dtype_name(p->dtype));
    if (p->act != LB_ACT_TANH)
        return lb_fail(why, LB_UNSUPPORTED, "%s: the cluster kernels know tanh only",
                       lb_act_name(p->act));
    return lb_device_needs(v->device, 9, "a cluster of blocks", why);
}

static int cluster_plan(const struct lb_fused_view *view, bool backward,
                        struct lb_fused_plan *plans, struct lb_error *why)
{
    int count = 0;
    if (check_problem(view, why) != LB_OK)
        return 0;
    for (int i = 0; i < (backward ? BACKWARD : FORWARD) * ROWS_CHOICES; i++) {
        struct lb_fused_plan *plan = &plans[count];
        *plan = (struct lb_fused_plan){.backward = backward, .tile = i};
        int64_t rows = rows_of(plan), parts = (view->problem->batch + rows - 1) / rows;
        plan->needed = (int)(parts * view->problem->directions);
        plan->resident = lb_fused_resident_clusters(view->device->sm_count, tile_of(plan)->blocks);
        if (!fits(view, plan))
            continue;
        plan->kernel.cluster = (struct lb_cluster_kernel){
            .tile = *tile_of(plan),
            .dtype = view->problem->dtype,
            .backward = backward,
            .train = !backward && lb_trains(view->problem),
            .rows = rows_of(plan),
            .shared_least = shared_least(view, plan),
        };
        predict(view, plan);
        count++;
    }
    if (count == 0)
        lb_fail(why, LB_UNSUPPORTED,
                "hidden %lld: no cluster tile reaches it here (the largest, 768, takes 16 SMs with "
                "186 KiB of shared memory each)",
                (long long)view->problem->hidden);
    return count;
}

static void cluster_describe(const struct lb_problem *problem, const struct lb_fused_plan *plan,
                             char *text, size_t size)
{
    const struct lb_cluster_tile *t = tile_of(plan);
    int fragments = lb_cluster_fragments(t);
    (void)problem;
    snprintf(text, size,
             "%d clusters, %d at a time, %d blocks x %d warps x %d rows; weights per warp: %d "
             "fragments in registers, %d in shared memory",
             plan->needed, plan->resident, t->blocks, t->warps, rows_of(plan), t->resident,
             fragments - t->resident);
}

static struct lb_weight_layout cluster_layout(const struct lb_problem *problem,
                                              const struct lb_fused_plan *plan)
{
    return lb_cluster_layout(tile_of(plan), plan->backward, (int)problem->hidden);
}

static enum lb_status cluster_ready(struct lb_fused_plan *plan, struct lb_error *err)
{
    double expected = waves_of(plan);
    enum lb_status st = lb_cluster_ready(&plan->kernel.cluster, &plan->resident, err);
    if (st == LB_OK && !plan->tuned)
        plan->step_ns *= waves_of(plan) / expected;
    return st;
}

const struct lb_fused_family lb_fused_cluster = {
    .name = "cluster",
    .plan = cluster_plan,
    .describe = cluster_describe,
    .layout = cluster_layout,
    .ready = cluster_ready,
    .launch = lb_cluster_launch,
};
