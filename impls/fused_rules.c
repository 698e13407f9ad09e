/* fused: which tile, by what a step is expected to take. cuda/README.md derives the terms. */
#include <math.h>
#include <stdio.h>

#include "floor.h"
#include "fused_impl.h"

#define FIGURES(...) {__VA_ARGS__},
static const struct lb_fused_tile forward_tiles[] = {LB_FUSED_FORWARD_TILES(FIGURES)};
static const struct lb_fused_tile backward_tiles[] = {LB_FUSED_BACKWARD_TILES(FIGURES)};

/* Clocks that are neither moved bytes nor products; guesses, for the first run to correct. */
enum {
    CELL_CLOCKS = 250,   /* five functions, shuffles, packing, issuing the sends */
    PAIR_CLOCKS = 80,    /* a named barrier, a write to and a read from shared memory */
    BARRIER_CLOCKS = 60, /* __syncthreads of 8 to 12 warps */
};

/* What mma.sync reaches of the tensor cores' peak on Hopper: HPMLL's benchmark, 62 %. */
static const double mma_share = 0.62;

struct view {
    const struct lb_problem *p;
    const struct lb_device_info *device;
    struct lb_machine machine;
};

static int needed_clusters(const struct view *v, const struct lb_fused_tile *t)
{
    return (int)((v->p->batch + t->columns - 1) / t->columns * v->p->directions);
}

static int resident_clusters(const struct view *v, const struct lb_fused_tile *t)
{
    return v->device->sm_count / t->blocks;
}

/* Columns that are sent: those of the batch, in whole messages of `message` columns. */
static double sent_columns(const struct view *v, const struct lb_fused_tile *t, int message)
{
    int64_t rows = v->p->batch < t->columns ? v->p->batch : t->columns;
    return (double)((rows + message - 1) / message * message);
}

/* Expected ns of a step, waves of clusters included. */
static double step_ns(const struct view *v, const struct lb_fused_tile *t, bool backward)
{
    const struct lb_machine *m = &v->machine;
    double warps = t->warps, cells = t->columns / 8, own = 4 * warps;
    double spilled = warps * (lb_fused_fragments(t) - t->resident) * 512;
    double moved, read, extra = CELL_CLOCKS;
    if (backward) { /* sums of all blocks for own units; own gate gradients, read by all warps */
        moved = t->blocks * own * sent_columns(v, t, 4) * 4;
        read = t->blocks * own * t->columns * 4 + warps * own * 4 * t->columns * 2;
        extra += BARRIER_CLOCKS;
    } else { /* h of all units, read by each warp over its part of the depth */
        moved = lb_fused_units(t) * sent_columns(v, t, 2) * 2;
        read = warps * lb_fused_units(t) * t->columns * 2 / t->split +
               2 * warps * (t->split - 1) * cells * 512;
        extra += t->split > 1 ? PAIR_CLOCKS : 0;
    }
    double flops = warps * lb_fused_fragments(t) * cells * 2 * 16 * 16 * 8;
    double product = flops / (m->flops_clock[v->p->dtype] * mma_share);
    double reading = (read + spilled) / m->shared_bytes_clock;
    double exchange = m->peer_clocks + moved * (t->blocks - 1) / t->blocks / m->peer_bytes_clock;
    double clocks = exchange + fmax(product, reading) + extra;
    double waves = ceil((double)needed_clusters(v, t) / resident_clusters(v, t));
    return waves * clocks / m->clock_hz * 1e9;
}

static bool fits(const struct view *v, const struct lb_fused_tile *t, bool backward)
{
    size_t shared = backward ? lb_fused_backward_shared(t) : lb_fused_forward_shared(t);
    return lb_fused_units(t) >= v->p->hidden && resident_clusters(v, t) > 0 &&
           (double)shared <= v->device->shared_bytes;
}

/* The best of tiles [count]; how many fit. */
static int choose(const struct view *v, const struct lb_fused_tile *tiles, size_t count,
                  bool backward, struct lb_fused_tile *best, double *best_ns)
{
    int fitting = 0;
    for (size_t i = 0; i < count; i++) {
        if (!fits(v, &tiles[i], backward))
            continue;
        double ns = step_ns(v, &tiles[i], backward);
        if (fitting++ && ns >= *best_ns)
            continue;
        *best = tiles[i];
        *best_ns = ns;
    }
    return fitting;
}

/* What no tile can do. */
static enum lb_status check_problem(const struct lb_problem *p, struct lb_error *why)
{
    if (p->dtype != LB_F16 && p->dtype != LB_BF16)
        return lb_fail(why, LB_UNSUPPORTED, "%s: the cluster kernels multiply f16 and bf16 only",
                       lb_dtype_name(p->dtype));
    if (p->act != LB_ACT_TANH)
        return lb_fail(why, LB_UNSUPPORTED, "%s: the cluster kernels know tanh only",
                       lb_act_name(p->act));
    if (p->seq_len > INT32_MAX || p->batch > INT32_MAX)
        return lb_fail(why, LB_UNSUPPORTED, "seq_len and batch must be below 2^31");
    return LB_OK;
}

enum lb_status lb_fused_choose(const struct lb_problem *problem,
                               const struct lb_device_info *device, struct lb_fused_choice *choice,
                               struct lb_error *why)
{
    enum {
        FORWARD = sizeof(forward_tiles) / sizeof(*forward_tiles),
        BACKWARD = sizeof(backward_tiles) / sizeof(*backward_tiles)
    };
    enum lb_status st = LB_OK;
    struct lb_device_info h100;
    struct view v = {.p = problem};
    LB_TRY(lb_device_model("h100", &h100, why));
    v.device = device ? device : &h100;
    if (lb_machine_of(v.device, &v.machine, NULL) != LB_OK)
        LB_TRY(lb_machine_of(&h100, &v.machine, why));
    LB_TRY(check_problem(problem, why));
    if (v.device->major < 9)
        return lb_fail(why, LB_UNSUPPORTED, "compute capability %d.%d: clusters need 9.0 or later",
                       v.device->major, v.device->minor);
    *choice = (struct lb_fused_choice){.model = v.machine.name};
    choice->forward.dtype = choice->backward.dtype = problem->dtype;
    choice->forward.train = lb_trains(problem);
    choice->backward.backward = true;
    choice->fitting =
        choose(&v, forward_tiles, FORWARD, false, &choice->forward.tile, &choice->forward_ns);
    if (choice->fitting == 0 || choose(&v, backward_tiles, BACKWARD, true, &choice->backward.tile,
                                       &choice->backward_ns) == 0)
        return lb_fail(why, LB_UNSUPPORTED,
                       "hidden %lld: no cluster tile reaches it here (the largest, 768, takes 16 "
                       "SMs with 186 KiB of shared memory each)",
                       (long long)problem->hidden);
    choice->clusters = needed_clusters(&v, &choice->forward.tile);
    choice->resident = resident_clusters(&v, &choice->forward.tile);
done:
    return st;
}
