/* The floor model, and the figures of the devices that it knows. */
#include "device/lower_bound.h"

#include <math.h>
#include <string.h>

/* A node after a node of a graph. RRZE-HPC/gpu-benches: 1.26 to 1.37 us on an H200. */
#define NODE_NS 1260

/* Sources.
 *   memory, flops: NVIDIA's data sheets of A100, H100 SXM and H200 SXM; dense.
 *   clock_max_hz: the highest that NVML names of them; clock_hz: what long runs are seen to keep.
 *   l2_bytes_s, l2_clocks: RRZE-HPC/gpu-benches (second-level bandwidth; a store and a load, 264 to
 *     470 clocks each on Hopper by HPMLL's benchmark, 200 to 400 on Ampere).
 *   l2_bytes_clock: an SM's port; RRZE-HPC/gpu-benches comes close to it.
 *   peer_clocks, peer_bytes_clock: "Dissecting the NVIDIA Hopper Architecture" (HPMLL): 181 to 213
 *     clocks to a peer's shared memory, 33 to one's own; 3.27 TB/s between SMs, all together. */
static const struct lb_machine machines[] = {
    {.name = "a100",
     .clock_hz = 1.41e9,
     .clock_max_hz = 1.41e9,
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
     .clock_max_hz = 1.98e9,
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
     .clock_max_hz = 1.98e9,
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
    TILE = 8 /* rows that a tensor core multiplies at once, be they there or not */
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
    double clocks_s = device->sm_count * machine->clock_max_hz;
    for (int d = 0; d < LB_DTYPE_COUNT; d++)
        machine->flops_clock[d] =
            fmax(machine->flops_clock[d], ceilings->gemm_flops_s[d][LB_IEEE] / clocks_s);
    machine->tf32_flops_clock =
        fmax(machine->tf32_flops_clock, ceilings->gemm_flops_s[LB_F32][LB_TF32] / clocks_s);
    machine->memory_bytes_s = fmax(machine->memory_bytes_s, ceilings->copy_bytes_s);
    machine->node_ns = less(machine->node_ns, ceilings->graph_node_ns, 1);
    machine->l2_clocks = less(machine->l2_clocks, ceilings->l2_ns, machine->clock_max_hz / 1e9);
    machine->peer_clocks =
        less(machine->peer_clocks, ceilings->peer_ns, machine->clock_max_hz / 1e9);
}

const char *lb_residency_name(enum lb_residency rest)
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
    double rows; /* that a step has; of ragged ones the mean */
};

static double element_bytes(const struct view *v)
{
    return (double)lb_dtype_size(v->p->dtype);
}

static bool on_tensor_cores(const struct lb_problem *p)
{
    return p->dtype == LB_F16 || p->dtype == LB_BF16 || p->math != LB_IEEE;
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
    return clocks / v->m->clock_max_hz * 1e9;
}

static double greatest(double a, double b, double c)
{
    return fmax(fmax(a, b), c);
}

/* One way to share a step out. */
struct sharing {
    int copies; /* of a direction's weights, each for its own rows */
    int sms;    /* that hold a copy, cut by units */
    int cuts;   /* that a unit's depth is cut in as well: SMs that add up what each has of it */
};

/* What an SM reads of its weights in a step, ns: from shared memory what its registers don't take;
 * from the cache, and from behind it, what neither takes. */
static double reading_ns(const struct view *v, const struct sharing *s, struct lb_lower_bound *f)
{
    double copy = weight_bytes(v), each = copy / s->sms, directions = (double)v->p->directions;
    double spilled = fmin(fmax(0, each - v->m->register_bytes), v->d->shared_bytes);
    double afar = fmax(0, copy - s->sms * (v->m->register_bytes + v->d->shared_bytes));
    double uncached = fmax(0, afar * directions - v->d->l2_bytes);
    if (afar > 0)
        f->rest = uncached > 0 ? LB_RESIDENCY_MEMORY : LB_RESIDENCY_CACHE;
    return greatest(clocks_to_ns(v, spilled / v->m->shared_bytes_clock),
                    afar * directions * s->copies / v->m->l2_bytes_s * 1e9,
                    uncached / v->m->memory_bytes_s * 1e9);
}

/* Clocks in which one row's h comes to an SM: the units that it multiplies with, but for its own,
 * and of its own units what the other cuts have. */
static double row_clocks(const struct view *v, const struct sharing *s, double bytes_clock)
{
    double hidden = (double)v->p->hidden;
    double units = hidden / s->cuts - hidden / s->sms;
    double sums = 4 * hidden * (s->cuts - 1) / s->sms;
    return (units + sums) * element_bytes(v) / bytes_clock;
}

/* Rows of which a product's time is that of so many. */
static double multiplied(const struct view *v, double rows)
{
    return on_tensor_cores(v->p) && !v->p->ragged ? ceil(rows / TILE) * TILE : rows;
}

/* A step shared out in one way: what the next one waits for, were there only one tile of rows, or,
 * should the SM work on other rows while one tile's h is on its way, what its busiest part does for
 * all of them. */
static struct lb_lower_bound step_of(const struct view *v, const struct sharing *s,
                                     enum lb_residency rest)
{
    const struct lb_machine *m = v->m;
    struct lb_lower_bound f = {.rest = rest, .sms = s->sms};
    bool cluster = rest == LB_RESIDENCY_CLUSTER;
    double rows = v->rows / s->copies, hidden = (double)v->p->hidden;
    if (!v->p->ragged)
        rows = ceil(rows);
    double tile = v->p->ragged ? 1 : fmin(rows, on_tensor_cores(v->p) ? TILE : 1);
    double hops = s->sms == 1 ? 0 : s->cuts > 1 ? 2 : 1;
    double row_ns =
        clocks_to_ns(v, row_clocks(v, s, cluster ? m->peer_bytes_clock : m->l2_bytes_clock));
    double product_ns = clocks_to_ns(v, 8 * hidden * hidden / s->sms / rate(v));
    f.wait_ns = clocks_to_ns(v, hops * (cluster ? m->peer_clocks : m->l2_clocks));
    f.exchange_ns = row_ns * rows;
    f.weights_ns = reading_ns(v, s, &f);
    f.product_ns = product_ns * multiplied(v, rows);
    f.cell_ns = clocks_to_ns(v, cell_clocks);
    double chain = f.wait_ns + f.cell_ns +
                   greatest(row_ns * tile, f.weights_ns, product_ns * multiplied(v, tile));
    f.step_ns = fmax(chain, greatest(f.exchange_ns, f.weights_ns, f.product_ns));
    return f;
}

static void keep_better(struct lb_lower_bound *best, const struct view *v, const struct sharing *s,
                        enum lb_residency rest)
{
    struct lb_lower_bound f = step_of(v, s, rest);
    if (best->step_ns == 0 || f.step_ns < best->step_ns)
        *best = f;
}

/* The best step over all ways to share it out. */
static struct lb_lower_bound best_step(const struct view *v)
{
    struct lb_lower_bound best = {0};
    double room = v->m->register_bytes + v->d->shared_bytes;
    int all = v->d->sm_count / (int)v->p->directions;
    int most = (int)fmin(ceil(v->rows), all);
    for (int sms = 1; sms <= v->m->cluster; sms++)
        for (int cuts = 1; cuts <= sms && weight_bytes(v) / sms <= room; cuts++) {
            struct sharing s = {(int)fmin(most, all / sms), sms, cuts};
            keep_better(&best, v, &s, LB_RESIDENCY_CLUSTER);
        }
    for (int copies = 1; copies <= most; copies++)
        for (int cuts = 1; cuts <= all / copies; cuts++) {
            struct sharing s = {copies, all / copies, cuts};
            keep_better(&best, v, &s, LB_RESIDENCY_DEVICE);
        }
    return best;
}

/* Flops of all products but the recurrent ones that wait for their step, of full lengths. */
static double free_flops(const struct lb_problem *p)
{
    double recurrent = 8.0 * (double)p->seq_len * (double)p->batch * (double)p->hidden *
                       (double)p->hidden * (double)p->layers * (double)p->directions;
    double waits = p->pass == LB_TRAIN ? 2 : 1; /* backward waits for dgates w_hh, not for dw_hh */
    return lb_problem_flops(p) - waits * recurrent;
}

/* Bytes of all that a call reads and of all that it writes, each counted once; share: of the steps
 * of all rows that there are. */
static void call_bytes(const struct lb_problem *p, double share, double *read, double *written)
{
    struct lb_counts n;
    double size = (double)lb_dtype_size(p->dtype);
    *read = *written = 0;
    if (lb_problem_counts(p, &n, NULL) != LB_OK)
        return;
    double x = (double)n.x * share, y = (double)n.y * share, states = 2 * (double)n.state;
    double weights = (double)n.weights;
    *read = (x + states + weights) * size;
    *written = (y + states) * size;
    if (p->pass == LB_BACKWARD) /* reads y too */
        *written = 0, *read += y * size;
    if (lb_has_backward(p)) {
        *read += (y + states) * size;
        *written += (x + states + weights) * size;
    }
}

/* All bytes pass the cache. Those that it can't keep from call to call pass memory; where it is
 * emptied before each call, all that is read does. */
static double traffic_ns(const struct view *v, double share, bool cold)
{
    double read, written;
    call_bytes(v->p, share, &read, &written);
    double memory = fmax(cold ? read : 0, read + written - v->d->l2_bytes);
    return fmax((read + written) / v->m->l2_bytes_s, memory / v->m->memory_bytes_s) * 1e9;
}

void lb_lower_bound_of(const struct lb_machine *machine, const struct lb_device_info *device,
                       const struct lb_problem *problem, const struct lb_lower_bound_run *run,
                       struct lb_lower_bound *floor)
{
    double steps = (double)problem->seq_len, batch = (double)problem->batch;
    double row_steps = run->row_steps > 0 ? run->row_steps : steps + batch - 1;
    double share = problem->ragged ? row_steps / (steps * batch) : 1;
    const struct view v = {machine, device, problem, batch * share};
    double sms_ns = clocks_to_ns(&v, share / device->sm_count / rate(&v));
    *floor = best_step(&v);
    /* Two directions must both end before the next layer; one direction is a wavefront. */
    double chain = problem->directions == 2 ? steps * (double)problem->layers
                                            : steps + (double)problem->layers - 1;
    floor->steps = problem->pass == LB_TRAIN ? 2 * chain : chain;
    floor->input_ns = free_flops(problem) * sms_ns;
    floor->products_ns = lb_problem_flops(problem) * sms_ns;
    floor->memory_ns = traffic_ns(&v, share, run->cold);
    floor->total_ns = greatest(floor->steps * floor->step_ns, floor->products_ns, floor->memory_ns);
}
