/* The floor model, and the figures of the devices that it knows. */
#include "floor.h"

#include <math.h>
#include <string.h>

/* What a step costs at least where nothing stays on the SMs: a node after a node of a graph.
 * RRZE-HPC/gpu-benches: 1.26 to 1.37 us on an H200. */
#define NODE_NS 1260

/* Sources.
 *   clock, memory, flops: NVIDIA's data sheets of A100, H100 SXM and H200 SXM; dense, boost clock.
 *   l2_bytes_s, l2_clocks: RRZE-HPC/gpu-benches (second-level bandwidth; a store and a load, 264 to
 *     470 clocks each on Hopper by HPMLL's benchmark, 200 to 400 on Ampere).
 *   l2_bytes_clock: an SM's port; RRZE-HPC/gpu-benches comes close to it.
 *   peer_clocks, peer_bytes_clock: "Dissecting the NVIDIA Hopper Architecture" (HPMLL): 181 to 213
 *     clocks to a peer's shared memory, 33 to one's own; 3.27 TB/s between SMs, all together. */
static const struct lb_machine machines[] = {
    {.name = "a100",
     .clock_hz = 1.41e9,
     .memory_bytes_s = 2.04e12,
     .l2_bytes_s = 4.5e12,
     .flops_clock = {[LB_F64] = 128, [LB_F32] = 128, [LB_F16] = 2048, [LB_BF16] = 2048},
     .tf32_flops_clock = 1024,
     .shared_bytes_clock = 128,
     .l2_bytes_clock = 64,
     .l2_clocks = 600,
     .node_ns = NODE_NS,
     .register_bytes = 192 << 10},
    {.name = "h100",
     .clock_hz = 1.755e9,
     .memory_bytes_s = 3.35e12,
     .l2_bytes_s = 5.5e12,
     .flops_clock = {[LB_F64] = 256, [LB_F32] = 256, [LB_F16] = 4096, [LB_BF16] = 4096},
     .tf32_flops_clock = 2048,
     .shared_bytes_clock = 128,
     .peer_bytes_clock = 14,
     .peer_clocks = 233,
     .l2_bytes_clock = 64,
     .l2_clocks = 730,
     .node_ns = NODE_NS,
     .register_bytes = 192 << 10,
     .cluster = 16},
    {.name = "h200",
     .clock_hz = 1.755e9,
     .memory_bytes_s = 4.8e12,
     .l2_bytes_s = 5.5e12,
     .flops_clock = {[LB_F64] = 256, [LB_F32] = 256, [LB_F16] = 4096, [LB_BF16] = 4096},
     .tf32_flops_clock = 2048,
     .shared_bytes_clock = 128,
     .peer_bytes_clock = 14,
     .peer_clocks = 233,
     .l2_bytes_clock = 64,
     .l2_clocks = 730,
     .node_ns = NODE_NS,
     .register_bytes = 192 << 10,
     .cluster = 16},
};

enum {
    MACHINES = sizeof(machines) / sizeof(machines[0]),
    TILE = 8 /* rows that share a product */
};

/* Pointwise work of a cell: five functions of two special instructions each, one after the other.
 */
static const double cell_clocks = 120;

enum lb_status lb_machine_of(const struct lb_device_info *device, struct lb_machine *machine,
                             struct lb_error *err)
{
    for (int i = 0; i < MACHINES; i++) {
        char upper[8] = "";
        for (size_t k = 0; k < strlen(machines[i].name); k++)
            upper[k] = machines[i].name[k] == 'a' || machines[i].name[k] == 'h'
                           ? (char)(machines[i].name[k] - 'a' + 'A')
                           : machines[i].name[k];
        if (strstr(device->name, upper)) {
            *machine = machines[i];
            return LB_OK;
        }
    }
    return lb_fail(err, LB_UNSUPPORTED,
                   "%s: the floor model has figures of A100, H100 and H200 only", device->name);
}

/* The smaller of a figure and a measurement in ns, in the figure's unit; NaN leaves it. */
static double less(double figure, double measured_ns, double per_ns)
{
    return fmin(figure, measured_ns * per_ns);
}

void lb_machine_measured(struct lb_machine *machine, const struct lb_device_info *device,
                         const struct lb_ceilings *ceilings)
{
    double clocks_s = device->sm_count * machine->clock_hz;
    for (int d = 0; d < LB_DTYPE_COUNT; d++)
        machine->flops_clock[d] =
            fmax(machine->flops_clock[d], ceilings->gemm_flops_s[d][LB_IEEE] / clocks_s);
    machine->tf32_flops_clock =
        fmax(machine->tf32_flops_clock, ceilings->gemm_flops_s[LB_F32][LB_TF32] / clocks_s);
    machine->memory_bytes_s = fmax(machine->memory_bytes_s, ceilings->copy_bytes_s);
    machine->node_ns = less(machine->node_ns, ceilings->graph_node_ns, 1);
    machine->l2_clocks = less(machine->l2_clocks, ceilings->l2_ns, machine->clock_hz / 1e9);
    machine->peer_clocks = less(machine->peer_clocks, ceilings->peer_ns, machine->clock_hz / 1e9);
}

const char *lb_rest_name(enum lb_rest rest)
{
    static const char *const names[] = {"one cluster's SMs", "all SMs", "the cache",
                                        "device memory"};
    return names[rest];
}

/* One problem on one device. */
struct view {
    const struct lb_machine *m;
    const struct lb_device_info *d;
    const struct lb_problem *p;
};

static double element_bytes(const struct view *v)
{
    return (double)lb_dtype_size(v->p->dtype);
}

/* Flops a clock of an SM for the problem's products. */
static double rate(const struct view *v)
{
    if (v->p->dtype == LB_F32 && v->p->math == LB_TF32)
        return v->m->tf32_flops_clock;
    if (v->p->dtype == LB_F32 && v->p->math == LB_HALF)
        return v->m->flops_clock[LB_F16];
    return v->m->flops_clock[v->p->dtype];
}

static double weight_bytes(const struct view *v)
{
    return 4 * (double)v->p->hidden * (double)v->p->hidden * element_bytes(v);
}

static double clocks_to_ns(const struct view *v, double clocks)
{
    return clocks / v->m->clock_hz * 1e9;
}

/* A step where `sms` SMs hold one copy of the weights and serve `rows` of the batch. */
static void held_step(const struct view *v, int sms, double rows, struct lb_floor *f)
{
    double hidden = (double)v->p->hidden;
    double each = weight_bytes(v) / sms, spilled = fmax(0, each - v->m->register_bytes);
    double state = hidden * rows * element_bytes(v) * (sms - 1) / sms;
    bool cluster = f->rest == LB_REST_CLUSTER;
    double tiles = ceil(rows / TILE) * TILE;
    f->sms = sms;
    f->exchange_ns = clocks_to_ns(v, cluster ? v->m->peer_clocks + state / v->m->peer_bytes_clock
                                             : v->m->l2_clocks + state / v->m->l2_bytes_clock);
    if (sms == 1)
        f->exchange_ns = 0;
    f->weights_ns = clocks_to_ns(v, spilled / v->m->shared_bytes_clock);
    f->product_ns = clocks_to_ns(v, 8 * hidden * hidden * tiles / sms / rate(v));
    f->cell_ns = clocks_to_ns(v, cell_clocks);
    f->step_ns = f->exchange_ns + f->weights_ns + f->product_ns + f->cell_ns;
}

/* A step where the weights come from afar. */
static void streamed_step(const struct view *v, double bytes_s, struct lb_floor *f)
{
    double hidden = (double)v->p->hidden, rows = (double)v->p->batch;
    f->sms = 0;
    f->exchange_ns = v->m->node_ns;
    f->weights_ns = weight_bytes(v) * (double)v->p->directions / bytes_s * 1e9;
    f->product_ns = clocks_to_ns(v, 8 * hidden * hidden * rows / v->d->sm_count / rate(v));
    f->cell_ns = clocks_to_ns(v, cell_clocks);
    f->step_ns = f->exchange_ns + fmax(f->weights_ns, f->product_ns) + f->cell_ns;
}

static void keep_better(struct lb_floor *best, const struct lb_floor *f)
{
    if (best->step_ns == 0 || f->step_ns < best->step_ns)
        *best = *f;
}

/* The best step over where the weights may rest, and over how many rows share a copy of them. */
static struct lb_floor best_step(const struct view *v)
{
    struct lb_floor best = {0};
    double room = v->m->register_bytes + v->d->shared_bytes, rows = (double)v->p->batch;
    int all = v->d->sm_count / (int)v->p->directions;
    for (int sms = 1; sms <= v->m->cluster && weight_bytes(v) > 0; sms *= 2) {
        if (weight_bytes(v) / sms > room)
            continue;
        double share = ceil(rows / TILE / floor((double)all / sms)) * TILE;
        struct lb_floor f = {.rest = LB_REST_CLUSTER};
        held_step(v, sms, fmin(share, rows), &f);
        keep_better(&best, &f);
    }
    if (weight_bytes(v) / all <= room) {
        struct lb_floor f = {.rest = LB_REST_DEVICE};
        held_step(v, all, rows, &f);
        keep_better(&best, &f);
    }
    bool cached = weight_bytes(v) * (double)v->p->directions <= v->d->l2_bytes;
    struct lb_floor f = {.rest = cached ? LB_REST_CACHE : LB_REST_MEMORY};
    streamed_step(v, cached ? v->m->l2_bytes_s : v->m->memory_bytes_s, &f);
    keep_better(&best, &f);
    return best;
}

/* Flops of all products but the recurrent ones that wait for their step. */
static double free_flops(const struct lb_problem *p)
{
    double recurrent = 8.0 * (double)p->seq_len * (double)p->batch * (double)p->hidden *
                       (double)p->hidden * (double)p->layers * (double)p->directions;
    double waits = p->pass == LB_TRAIN ? 2 : 1; /* backward waits for dgates w_hh, not for dw_hh */
    return lb_problem_flops(p) - waits * recurrent;
}

void lb_floor_of(const struct lb_machine *machine, const struct lb_device_info *device,
                 const struct lb_problem *problem, struct lb_floor *floor)
{
    const struct view v = {machine, device, problem};
    double chain = (double)problem->seq_len;
    *floor = best_step(&v);
    /* Two directions must both end before the next layer; one direction is a wavefront. */
    chain = problem->directions == 2 ? chain * (double)problem->layers
                                     : chain + (double)problem->layers - 1;
    floor->steps = problem->pass == LB_TRAIN ? 2 * chain : chain;
    floor->input_ns = clocks_to_ns(&v, free_flops(problem) / device->sm_count / rate(&v));
    floor->memory_ns = lb_problem_bytes(problem) / machine->memory_bytes_s * 1e9;
    floor->total_ns = fmax(floor->input_ns + floor->steps * floor->step_ns, floor->memory_ns);
}
