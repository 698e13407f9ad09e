/* Family `grid`: a layer's weights stay in the registers and shared memory of all SMs, one
 * cooperative launch runs a sequence, and h goes through the second-level cache. sm_80 and later,
 * all dtypes but f64. cuda/README.md derives the terms of the cost. */
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

/* Clocks for what is neither moving bytes nor multiplying matrices. Instructions are counted in
 * sm_90a's SASS of the tile of 16 units and 8 columns in f16. Latencies are published ones (HPMLL's
 * Hopper benchmark, RRZE-HPC/gpu-benches), but for MMA_CLOCKS, which is an assumption. Nothing has
 * been measured on a device. */
enum {
    /* From the barrier to the store of h: 126 instructions, and waits in sequence for 8 reads of
     * shared memory (33 clocks, and 32 for the sums), 4 special functions (20 each) and a shuffle
     * (25). */
    CELL_CLOCKS = 300,
    COPY_CLOCKS = 4,     /* an address and a store of h to one more copy */
    BARRIER_CLOCKS = 60, /* __syncthreads of 8 warps */
    READ_CLOCKS = 270,   /* from a read of the second-level cache until its first data arrive */
    /* Instructions of one round of polling, until its loads are issued, and after their arrival. */
    ROUND_CLOCKS = 22,
    BACK_ROUND_CLOCKS = 38,
    /* Instructions per packet from its arrival to its first product: test, vote, epoch, restoring
     * NaN and infinity; backward to its sum, with its four sums of 32 or of 16 bits. */
    PACKET_CLOCKS = 27,
    SUM_CLOCKS = 18,
    HALF_SUM_CLOCKS = 14,
    MMA_CLOCKS = 33, /* from an mma to the next one that adds to its sums */
    /* Instructions per row tile and 8 columns, with those of the product, until its sums are sent:
     * of 16 bits, of 32 bits, and of 32 bits that the lanes of a row add up first. */
    HALF_SEND_CLOCKS = 33,
    SEND_CLOCKS = 42,
    FFMA_SEND_CLOCKS = 85,
    EARLY_MESSAGES = 8,      /* that a thread requests before the product of the chunk before */
    SCHEDULERS = 4,          /* per SM: each issues one instruction per clock */
    SLICE_BYTES = 512 << 10, /* of the second-level cache: 80 slices of an A100 (its whitepaper) */
    SLICE_CLOCK_BYTES = 64,  /* that one slice gives per clock (the same whitepaper) */
    LINE_BYTES = 128
};

/* The share of the peak that is reached: by mma.sync on Hopper (source: HPMLL's benchmark), and by
 * FFMA, which waits for its operands from shared memory half of the time. */
static const double mma_share = 0.62, fma_share = 0.5;

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

/* ---- Cost ---------------------------------------------------------------------------------------
 */

static double flops_clock(const struct lb_machine *m, enum lb_grid_math math)
{
    switch (math) {
    case LB_GRID_F16: return m->flops_clock[LB_F16] * mma_share;
    case LB_GRID_BF16: return m->flops_clock[LB_BF16] * mma_share;
    case LB_GRID_TF32: return m->tf32_flops_clock * mma_share;
    default: return m->flops_clock[LB_F32] * fma_share;
    }
}

/* Returns the batch rows that the fullest chunk moves, in whole messages of `message` columns. */
static double moved_columns(const struct lb_grid_kernel *k, int message)
{
    int rows = k->split.rows < k->tile.columns ? k->split.rows : k->tile.columns;
    return (rows + message - 1) / message * message;
}

/* Returns the clocks until the fullest slice of the second-level cache has sent each of its lines
 * to `readers` blocks. A hash distributes lines over slices: of m slices with a mean of n lines,
 * the fullest is expected to have n + sqrt(2 n ln m) (balls in bins). */
static double slice_clocks(const struct lb_fused_view *v, double lines, double readers)
{
    double slices = fmax(1, v->device->l2_bytes / SLICE_BYTES), mean = lines / slices;
    double fullest = fmin(lines, mean + sqrt(2 * mean * log(slices)));
    return fullest * readers * LINE_BYTES / SLICE_CLOCK_BYTES;
}

/* Returns the clocks that a block takes to move `bytes` through the second-level cache while all
 * blocks do so. Forward, the blocks of a group that share a copy read the same lines. Backward,
 * each block reads and writes its own. */
static double cache_clocks(const struct lb_fused_view *v, const struct lb_fused_plan *plan,
                           const struct lb_grid_kernel *k, double bytes)
{
    const struct lb_machine *m = &v->machine;
    double group = lb_grid_blocks(&k->tile, (int)v->problem->hidden);
    double readers = k->backward ? 1 : ceil(group / LB_GRID_COPIES);
    double lines = bytes * plan->needed / readers / LINE_BYTES;
    return fmax(slice_clocks(v, lines, readers),
                fmax(bytes / m->bytes_clock[LB_CACHE],
                     bytes * plan->needed / (m->bytes_s[LB_CACHE] / m->clock_hz)));
}

/* Returns the clocks by which the slowest of all warps is later than a warp that reads at the
 * moment when its data arrive. Data arrive at any time during a round of polling, and a read finds
 * what arrived before the read was half done. Therefore the last of many warps is half a round
 * late. */
static double missed_clocks(const struct lb_fused_plan *plan, const struct lb_grid_kernel *k)
{
    double warps = (double)plan->needed * k->tile.warps;
    int round = k->backward ? BACK_ROUND_CLOCKS : ROUND_CLOCKS;
    return (READ_CLOCKS + round) * (warps / (warps + 1) - 0.5);
}

/* Returns the clocks until a backward block has multiplied its gate gradients and sent all sums.
 * Tensor cores multiply while the sums before are sent, as many row tiles side by side as fill
 * eight columns twice. `product`: the clocks of the multiplications alone. */
static double send_clocks(const struct lb_grid_kernel *k, double units, double product)
{
    const struct lb_grid_tile *t = &k->tile;
    double tiles = ceil(ceil(units / 16) / t->warps); /* row tiles of a warp */
    double eights = t->columns / 8.0, deep = 4.0 * t->units / lb_grid_deep(k->math);
    double warps = (double)t->warps / SCHEDULERS;
    if (k->math == LB_GRID_F32)
        return product + warps * tiles * eights * FFMA_SEND_CLOCKS;
    double each = lb_grid_lane_units(k->math) == 8 ? HALF_SEND_CLOCKS : SEND_CLOCKS;
    double chains = ceil(tiles * eights / 2) * 2 * deep * MMA_CLOCKS + 2 * each;
    return fmax(fmax(product, chains), warps * tiles * eights * each);
}

/* Returns the clocks until `count` packets of a forward warp have been read and used. It uses the
 * first while the others are read, and these when all have arrived: in the SASS they share a
 * scoreboard. */
static double forward_received(double reading, double using, double count)
{
    return fmax((reading + using) / count, reading) + using - using / count;
}

/* Returns the clocks of a forward chunk whose packets are requested during the products of the
 * chunk before. rest: clocks from the last product until the next state has been sent. A request
 * comes too early where not all blocks have sent the state; it is then repeated after the cells.
 * Since each repetition delays the next requests, at most every second one is. */
static double early_clocks(const struct lb_fused_view *v, const struct lb_grid_kernel *k,
                           double reading, double using, double count, double rest)
{
    double before = fmin(lb_grid_ahead(&k->tile, k->math), count);
    double lead = using * (1 - before / count); /* of the first request before the last product */
    double arrival = READ_CLOCKS + fmax(reading - lead, reading / count);
    double early = fmax(rest, arrival) + using;
    double late = rest + READ_CLOCKS + forward_received(reading, using, count);
    bool seen = (k->split.chunks - 1) * early >= rest + v->machine.far_clocks - READ_CLOCKS + lead;
    return seen ? early : (early + late) / 2;
}

/* Whether a block requests data of its next chunk while it computes the one before. Backward, the
 * sums are there by then: peers sent them before they began the chunk before, and its sums and
 * cells take longer than far_clocks - READ_CLOCKS. */
static bool asks_early(const struct lb_grid_kernel *k)
{
    bool can =
        k->backward ? lb_grid_lane_units(k->math) == 8 : lb_grid_ahead(&k->tile, k->math) > 0;
    return k->split.chunks > 1 && can;
}

/* Returns the clocks of one chunk from the arrival of its data until the next state has been sent.
 * early: of several chunks one after the other, as asks_early says; backward, the first
 * EARLY_MESSAGES of each thread are then read while the chunk before is computed. */
static double chunk_clocks(const struct lb_fused_view *v, const struct lb_fused_plan *plan,
                           const struct lb_grid_kernel *k, bool early)
{
    const struct lb_machine *m = &v->machine;
    const struct lb_grid_tile *t = &k->tile;
    double units = (double)lb_grid_blocks(t, (int)v->problem->hidden) * t->units;
    double own = t->units, columns = t->columns, warps = t->warps;
    double fragments = warps * lb_grid_fragments(t) * units / lb_grid_reach(t, k->math);
    double spilled = warps * (lb_grid_fragments(t) - t->resident) * 512;
    double product = fmax(8 * own * units * columns / flops_clock(m, k->math),
                          fmin(spilled, fragments * 512) / m->bytes_clock[LB_OWN]);
    double cells = CELL_CLOCKS * ceil(own * columns / (32 * warps)) + BARRIER_CLOCKS;
    double moved, parts, arrived; /* arrived: clocks until all that moves has come and is used */
    if (k->backward) {            /* sends sums for all units, receives sums from all blocks */
        bool half = lb_grid_lane_units(k->math) == 8;
        double sum_bytes = half ? 2 : 4;
        moved = 2 * units * moved_columns(k, half ? 2 : 4) * sum_bytes;
        parts = 2 * warps * 512 + warps * 4 * own * columns * 4;
        double packets = ceil(moved / 2 / (warps * 128 * sum_bytes)); /* per thread */
        double reading = cache_clocks(v, plan, k, moved), sent = send_clocks(k, units, product);
        double using = packets * (half ? HALF_SUM_CLOCKS : SUM_CLOCKS);
        cells += BARRIER_CLOCKS;
        if (early) {
            double hidden = reading * fmin(1, EARLY_MESSAGES / packets);
            return fmax(hidden, sent + using + parts / m->bytes_clock[LB_OWN] + cells) + reading -
                   hidden;
        }
        arrived = sent + reading + using; /* all of a window: in the SASS they share a scoreboard */
    } else { /* receives h of all units; each warp has sums of its part of the depth */
        double packets = ceil(units / lb_grid_deep(k->math) / warps); /* per warp */
        moved = units * moved_columns(k, 1) * 16 / lb_grid_lane_units(k->math);
        parts = (2 * warps + 1) * own * columns * 16; /* and the pre-activations */
        double reading = cache_clocks(v, plan, k, moved);
        double using = packets * columns / 8 * PACKET_CLOCKS + product;
        cells += (LB_GRID_COPIES - 1) * COPY_CLOCKS;
        if (early)
            return early_clocks(v, k, reading, using, packets,
                                parts / m->bytes_clock[LB_OWN] + cells);
        arrived = forward_received(reading, using, packets);
    }
    return arrived + parts / m->bytes_clock[LB_OWN] + cells;
}

/* What an H100 took beyond the terms above, which were written before the first run: ns in any
 * case, times their sum, and times that where a group has several chunks (cuda/LOG.md, entry 17).
 */
struct measured {
    double ns, factor, chunks;
};
static const struct measured measured_forward = {210, 1.72, 1.2},
                             measured_backward = {1020, 0.89, 1.6};

/* Returns the predicted time of a step in ns. With several chunks, the state of one is exchanged
 * while the others are computed; a single chunk waits for its own state. */
static double step_ns(const struct lb_fused_view *v, const struct lb_fused_plan *plan,
                      const struct lb_grid_kernel *k)
{
    double chunk = chunk_clocks(v, plan, k, false);
    double each = asks_early(k) ? chunk_clocks(v, plan, k, true) : READ_CLOCKS + chunk;
    double clocks =
        fmax(v->machine.far_clocks + missed_clocks(plan, k) + chunk, k->split.chunks * each);
    double launches = k->beside ? 1 : (double)v->problem->directions;
    const struct measured *m = k->backward ? &measured_backward : &measured_forward;
    double ns = m->ns + m->factor * clocks / v->machine.clock_hz * 1e9;
    return launches * ns * (k->split.chunks > 1 ? m->chunks : 1);
}

/* ---- Plans --------------------------------------------------------------------------------------
 */

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
    return lb_device_needs(v->device, 8, 0, "", why);
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
    plan->step_ns = step_ns(v, plan, k);
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

/* ---- Family -------------------------------------------------------------------------------------
 */

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

static enum lb_status grid_ready(const struct lb_problem *problem, struct lb_fused_plan *plan,
                                 struct lb_error *err)
{
    (void)problem;
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
    .forward = lb_grid_forward,
    .backward = lb_grid_backward,
};
