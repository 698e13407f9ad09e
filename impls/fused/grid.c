/* Family `grid`: a layer's weights stay in the registers and shared memory of all SMs, one
 * cooperative launch runs a sequence, and h goes through the second-level cache. sm_80 and later,
 * all dtypes but f64. cuda/README.md lists the terms of the cost. */
#include <math.h>
#include <stdio.h>

#include "cuda/fused/grid/grid.h"
#include "impls/fused/fused.h"

#define FIGURES(...) {__VA_ARGS__},
static const struct lb_grid_tile half_tiles[] = {LB_GRID_HALF_TILES(FIGURES)};
static const struct lb_grid_tile float_tiles[] = {LB_GRID_FLOAT_TILES(FIGURES)};

enum {
    HALF = sizeof(half_tiles) / sizeof(*half_tiles),
    FLOAT = sizeof(float_tiles) / sizeof(*float_tiles)
};

/* The share of the peak that products reach: by mma.sync on Hopper (source: HPMLL's benchmark), and
 * by FFMA, which waits for its operands from shared memory half of the time (an assumption). */
static const double mma_share = 0.62, fma_share = 0.5;

/* Clocks of a step: in any case, per chunk, per byte that a block moves through the second-level
 * cache, per cell of a block, and per clock that shared memory needs to deliver a chunk's spilled
 * weights; the product comes on top. Fitted to what an H100 took in f16. In
 * results/h100/try_fused.txt, forward 27 of 30 plans are within 10 % and all within 14 %, backward
 * 22 of 30 and all within 23 %. */
struct costs {
    double step, chunk, byte, cell, spilled;
};
static const struct costs forward_costs = {1820, 760, 1 / 28.0, 4.1, 0.65},
                          backward_costs = {1100, 1470, 1 / 27.6, 1.05, 0};

/* Returns the kernel of a plan whose tile is set, for at most `room` groups per direction.
 * plan->tile is 2 * the index in the list of tiles, plus 1 where one direction runs after the
 * other. */
static struct lb_grid_kernel kernel_of(const struct lb_problem *p, const struct lb_fused_plan *plan,
                                       int room)
{
    struct lb_grid_kernel k = {.backward = plan->backward};
    bool half = p->dtype != LB_F32;
    k.beside = p->directions == 1 || plan->tile % 2 == 0;
    k.tile = (half ? half_tiles : float_tiles)[plan->tile / 2];
    k.math = p->math == LB_IEEE ? LB_GRID_F32 : LB_GRID_TF32;
    if (half)
        k.math = p->dtype == LB_F16 ? LB_GRID_F16 : LB_GRID_BF16;
    k.split = lb_grid_split_of(&k.tile, (int)p->batch, room);
    return k;
}

/* ---- Cost ------------------------------------------------------------------------------------ */

static double flops_clock(const struct lb_machine *m, enum lb_grid_math math)
{
    switch (math) {
    case LB_GRID_F16: return m->flops_clock[LB_F16] * mma_share;
    case LB_GRID_BF16: return m->flops_clock[LB_BF16] * mma_share;
    case LB_GRID_TF32: return m->tf32_flops_clock * mma_share;
    default: return m->flops_clock[LB_F32] * fma_share;
    }
}

/* Predicts the time of a step and its parts. Forward a block receives h of all units; backward it
 * sends sums for all units, and receives as many. */
static void predict(const struct lb_fused_view *v, struct lb_fused_plan *plan)
{
    const struct lb_grid_kernel *k = &plan->kernel.grid;
    const struct costs *costs = k->backward ? &backward_costs : &forward_costs;
    double units = (double)lb_grid_blocks(&k->tile, (int)v->problem->hidden) * k->tile.units;
    double cells = (double)k->tile.units * k->tile.columns;
    double columns = fmin(k->split.rows, k->tile.columns);
    double bytes = columns * units * (double)lb_grid_element_bytes(k->math);
    double product = 8 * units * cells / flops_clock(&v->machine, k->math);
    double moved = k->backward ? 2 * bytes : bytes;
    double spilled = (lb_grid_fragments(&k->tile) - k->tile.resident) * 512.0 * k->tile.warps;
    double other =
        costs->step + k->split.chunks * (costs->chunk + costs->cell * cells +
                                         costs->spilled * spilled / v->machine.bytes_clock[LB_OWN]);
    double launches = k->beside ? 1 : (double)v->problem->directions;
    double clock_ns = launches / v->machine.clock_hz * 1e9;
    plan->product_ns = k->split.chunks * product * clock_ns;
    plan->exchange_ns = k->split.chunks * costs->byte * moved * clock_ns;
    plan->step_ns = plan->product_ns + plan->exchange_ns + other * clock_ns;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* Checks the limits that all tiles have. */
static enum lb_status check_problem(const struct lb_fused_view *v, struct lb_error *why)
{
    const struct lb_problem *p = v->problem;
    if (p->dtype == LB_F64)
        return lb_fail(why, LB_UNSUPPORTED,
                       "f64: the grid kernels multiply f32, f16 and bf16 only");
    if (p->act != LB_ACT_TANH)
        return lb_fail(why, LB_UNSUPPORTED,
                       "%s: the grid kernels mark a step in a bit of h that only tanh leaves free",
                       lb_act_name(p->act));
    return lb_device_needs(v->device, 8, "", why);
}

/* Fills in a plan whose tile is set. Returns false where it does not fit the device. */
static bool fit(const struct lb_fused_view *v, struct lb_fused_plan *plan)
{
    const struct lb_problem *p = v->problem;
    const struct lb_grid_tile *t = &(p->dtype == LB_F32 ? float_tiles : half_tiles)[plan->tile / 2];
    int blocks = lb_grid_blocks(t, (int)p->hidden);
    int beside = plan->tile % 2 == 0 ? (int)p->directions : 1;
    plan->resident = v->device->sm_count; /* registers leave room for one block per SM */
    int room = plan->resident / blocks / beside;
    if (room < 1)
        return false;
    struct lb_grid_kernel *k = &plan->kernel.grid;
    *k = kernel_of(p, plan, room);
    plan->needed = k->split.groups * blocks * beside;
    double shared = (double)lb_grid_shared(t, k->math, k->backward, k->split.chunks);
    if (p->hidden > lb_grid_reach(t, k->math) || shared > v->device->shared_bytes)
        return false;
    predict(v, plan);
    return true;
}

static int grid_plan(const struct lb_fused_view *view, bool backward, struct lb_fused_plan *plans,
                     struct lb_error *why)
{
    const struct lb_problem *p = view->problem;
    int count = 0, tiles = p->dtype == LB_F32 ? FLOAT : HALF;
    if (check_problem(view, why) != LB_OK)
        return 0;
    for (int i = 0; i < 2 * tiles; i++) {
        struct lb_fused_plan *plan = &plans[count];
        *plan = (struct lb_fused_plan){.backward = backward, .tile = i};
        if (i % 2 == 1 && p->directions == 1)
            continue;
        count += fit(view, plan);
    }
    if (count == 0)
        lb_fail(
            why, LB_UNSUPPORTED,
            "hidden %lld, batch %lld: no grid tile keeps the weights in %d SMs with %.0f KiB of "
            "shared memory each",
            (long long)p->hidden, (long long)p->batch, view->device->sm_count,
            view->device->shared_bytes / 1024);
    return count;
}

static void grid_describe(const struct lb_problem *problem, const struct lb_fused_plan *plan,
                          char *text, size_t size)
{
    const struct lb_grid_kernel k = plan->kernel.grid;
    int fragments = lb_grid_fragments(&k.tile);
    bool half = k.backward && lb_grid_lane_units(k.math) == 8;
    snprintf(text, size,
             "%d blocks of %d at a time, %d units each; %d groups x %d rows in %d chunks of %d%s; "
             "weights per warp: %d fragments in registers, %d in shared memory%s%s",
             plan->needed, plan->resident, k.tile.units, k.split.groups, k.split.rows,
             k.split.chunks, k.tile.columns, k.beside ? "" : ", one direction after the other",
             k.tile.resident, fragments - k.tile.resident, half ? "; blocks exchange sums in " : "",
             half ? lb_dtype_name(problem->dtype) : "");
}

/* ---- Family ---------------------------------------------------------------------------------- */

static struct lb_weight_layout grid_layout(const struct lb_problem *problem,
                                           const struct lb_fused_plan *plan)
{
    const struct lb_grid_kernel k = plan->kernel.grid;
    return lb_grid_layout(&k.tile, k.math, k.backward, (int)problem->hidden);
}

static size_t grid_scratch_bytes(const struct lb_problem *problem, const struct lb_fused_plan *plan)
{
    const struct lb_grid_kernel k = plan->kernel.grid;
    return lb_grid_exchange(&k.tile, k.math, k.backward, (int)problem->hidden, &k.split,
                            (int)problem->directions);
}

static enum lb_status grid_ready(struct lb_fused_plan *plan, struct lb_error *err)
{
    return lb_grid_ready(&plan->kernel.grid, plan->needed, &plan->resident, err);
}

const struct lb_fused_family lb_fused_grid = {
    .name = "grid",
    .cooperative = true,
    .plan = grid_plan,
    .describe = grid_describe,
    .layout = grid_layout,
    .scratch_bytes = grid_scratch_bytes,
    .ready = grid_ready,
    .clear = lb_grid_clear,
    .launch = lb_grid_launch,
};
