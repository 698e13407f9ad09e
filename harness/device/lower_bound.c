/* The model of the lower bound. */
#include "device/lower_bound.h"

#include <math.h>

enum { TILE = 8 /* rows that a tensor core multiplies at once, whether they are used or not */ };

/* Pointwise work of a cell: five functions of two special instructions each, which depend on each
 * other. */
static const double cell_clocks = 120;

/* The smaller of a figure and a measurement in ns, times per_ns to have the figure's unit. A NaN
 * measurement leaves the figure. */
static double smaller(double figure, double measured_ns, double per_ns)
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
    machine->node_ns = smaller(machine->node_ns, ceilings->graph_node_ns, 1);
    machine->l2_clocks = smaller(machine->l2_clocks, ceilings->l2_ns, machine->clock_max_hz / 1e9);
    machine->peer_clocks =
        smaller(machine->peer_clocks, ceilings->peer_ns, machine->clock_max_hz / 1e9);
}

const char *lb_residency_name(enum lb_residency residency)
{
    static const char *const names[] = {"one cluster's SMs", "all SMs", "the cache",
                                        "device memory"};
    return names[residency];
}

/* One problem on one device. */
struct view {
    const struct lb_machine *m;
    const struct lb_device_info *d;
    const struct lb_problem *p;
    double rows; /* per step; the mean over the steps when ragged */
};

static double element_bytes(const struct view *v)
{
    return (double)lb_dtype_size(v->p->dtype);
}

/* Flops per clock and SM for the problem's matrix products. */
static double rate(const struct view *v)
{
    if (v->p->dtype == LB_F32 && v->p->math == LB_TF32)
        return v->m->tf32_flops_clock;
    if (v->p->dtype == LB_F32 && v->p->math == LB_HALF)
        return v->m->flops_clock[LB_F16];
    return v->m->flops_clock[v->p->dtype];
}

/* Devices whose tensor cores do not know the type multiply at f32's rate, and whole tiles are no
 * matter there. */
static bool on_tensor_cores(const struct view *v)
{
    const struct lb_problem *p = v->p;
    bool could = p->dtype == LB_F16 || p->dtype == LB_BF16 || p->math != LB_IEEE;
    return could && rate(v) > v->m->flops_clock[LB_F32];
}

/* The recurrent matrix alone, also where the cell has weights of its own: that errs towards too
 * little, as a lower bound may. */
static double weight_bytes(const struct view *v)
{
    return 4 * (double)v->p->hidden * (double)lb_h_size(v->p) * element_bytes(v);
}

static double clocks_to_ns(const struct view *v, double clocks)
{
    return clocks / v->m->clock_max_hz * 1e9;
}

static double greatest(double a, double b, double c)
{
    return fmax(fmax(a, b), c);
}

/* One way to distribute a step over SMs. */
struct sharing {
    int copies; /* copies of a direction's weights, each serving its own rows */
    int sms;    /* SMs that hold one copy, divided by hidden units */
    int cuts;   /* parts that the sum over h is divided into as well, each on an SM of its own */
};

/* Time in ns that an SM reads its weights in a step: from shared memory what does not fit its
 * registers, from the second-level cache what fits neither, and from device memory what does not
 * fit that cache. Sets the residency where that is cache or memory. */
static double reading_ns(const struct view *v, const struct sharing *s, struct lb_lower_bound *f)
{
    double copy = weight_bytes(v), each = copy / s->sms, directions = (double)v->p->directions;
    double spilled = fmin(fmax(0, each - v->m->register_bytes), v->d->shared_bytes);
    double afar = fmax(0, copy - s->sms * (v->m->register_bytes + v->d->shared_bytes));
    double uncached = fmax(0, afar * directions - v->d->l2_bytes);
    if (afar > 0)
        f->residency = uncached > 0 ? LB_RESIDENCY_MEMORY : LB_RESIDENCY_CACHE;
    return greatest(clocks_to_ns(v, spilled / v->m->shared_bytes_clock),
                    afar * directions * s->copies / v->m->l2_bytes_s * 1e9,
                    uncached / v->m->memory_bytes_s * 1e9);
}

/* Clocks that one row's h takes through an SM's port: the units that the SM multiplies with,
 * without its own, and the partial sums of its own units from the SMs that share them. */
static double row_clocks(const struct view *v, const struct sharing *s, double bytes_clock)
{
    double h = (double)lb_h_size(v->p);
    double units = h / s->cuts - h / s->sms;
    double sums = 4 * (double)v->p->hidden * (s->cuts - 1) / s->sms;
    return (units + sums) * element_bytes(v) / bytes_clock;
}

/* Rounds a number of rows up to what tensor cores multiply, which is whole tiles. */
static double multiplied(const struct view *v, double rows)
{
    return on_tensor_cores(v) && !v->p->ragged ? ceil(rows / TILE) * TILE : rows;
}

/* The time of a step that is distributed in one way: the larger of two bounds. One is the chain
 * that the next step waits for, with a single tile of rows. The other is the time that
 * the busiest part of an SM (port, memory or arithmetic) works for all rows, should the SM work on
 * other rows while one tile's h is on its way. */
static struct lb_lower_bound step_of(const struct view *v, const struct sharing *s,
                                     enum lb_residency residency)
{
    const struct lb_machine *m = v->m;
    struct lb_lower_bound f = {.residency = residency, .sms = s->sms};
    bool cluster = residency == LB_RESIDENCY_CLUSTER;
    double rows = v->rows / s->copies, gates = 4 * (double)v->p->hidden;
    if (!v->p->ragged)
        rows = ceil(rows);
    double tile = v->p->ragged ? 1 : fmin(rows, on_tensor_cores(v) ? TILE : 1);
    double hops = s->sms == 1 ? 0 : s->cuts > 1 ? 2 : 1;
    double row_ns =
        clocks_to_ns(v, row_clocks(v, s, cluster ? m->peer_bytes_clock : m->l2_bytes_clock));
    double gemm_ns = clocks_to_ns(v, 2 * gates * (double)lb_h_size(v->p) / s->sms / rate(v));
    f.wait_ns = clocks_to_ns(v, hops * (cluster ? m->peer_clocks : m->l2_clocks));
    f.exchange_ns = row_ns * rows;
    f.weights_ns = reading_ns(v, s, &f);
    f.gemm_ns = gemm_ns * multiplied(v, rows);
    f.cell_ns = clocks_to_ns(v, cell_clocks);
    double chain = f.wait_ns + f.cell_ns +
                   greatest(row_ns * tile, f.weights_ns, gemm_ns * multiplied(v, tile));
    f.step_ns = fmax(chain, greatest(f.exchange_ns, f.weights_ns, f.gemm_ns));
    return f;
}

static void keep_better(struct lb_lower_bound *best, const struct view *v, const struct sharing *s,
                        enum lb_residency residency)
{
    struct lb_lower_bound f = step_of(v, s, residency);
    if (best->step_ns == 0 || f.step_ns < best->step_ns)
        *best = f;
}

/* The shortest step over all ways to distribute it. */
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

/* Flops of all matrix products except the recurrent ones that wait for their step; full lengths. */
static double free_flops(const struct lb_problem *p)
{
    double recurrent = 8.0 * (double)p->seq_len * (double)p->batch * (double)p->hidden *
                       (double)lb_h_size(p) * (double)p->layers * (double)p->directions;
    double waits = p->pass == LB_TRAIN ? 2 : 1; /* backward waits for dgates w_hh, not for dw_hh */
    return lb_problem_flops(p) - waits * recurrent;
}

/* Bytes that a call reads and bytes that it writes, each tensor counted once. share: the part of
 * all T*B steps that rows have. */
static void call_bytes(const struct lb_problem *p, double share, double *read, double *written)
{
    struct lb_counts n;
    double size = (double)lb_dtype_size(p->dtype);
    *read = *written = 0;
    if (lb_problem_counts(p, &n, NULL) != LB_OK)
        return;
    double x = (double)n.x * share, y = (double)n.y * share;
    double states = (double)n.state + (double)lb_h_count(p), weights = (double)n.weights;
    *read = (x + states + weights) * size;
    *written = (y + states) * size;
    if (p->pass == LB_BACKWARD) /* reads y too */
        *written = 0, *read += y * size;
    if (lb_has_backward(p)) {
        *read += (y + states) * size;
        *written += (x + states + weights) * size;
    }
}

/* Time in ns of the traffic: all bytes go through the second-level cache. Those that it cannot keep
 * from call to call go through memory too, and with a cold cache everything that is read does. */
static double traffic_ns(const struct view *v, double share, bool cold)
{
    double read, written;
    call_bytes(v->p, share, &read, &written);
    double memory = fmax(cold ? read : 0, read + written - v->d->l2_bytes);
    return fmax((read + written) / v->m->l2_bytes_s, memory / v->m->memory_bytes_s) * 1e9;
}

void lb_lower_bound_of(const struct lb_machine *machine, const struct lb_device_info *device,
                       const struct lb_problem *problem, const struct lb_lower_bound_run *run,
                       struct lb_lower_bound *bound)
{
    double steps = (double)problem->seq_len, batch = (double)problem->batch;
    double row_steps = run->row_steps > 0 ? run->row_steps : steps + batch - 1;
    double share = problem->ragged ? row_steps / (steps * batch) : 1;
    const struct view v = {machine, device, problem, batch * share};
    double sms_ns = clocks_to_ns(&v, share / device->sm_count / rate(&v));
    *bound = best_step(&v);
    /* Both directions must end before the next layer starts; layers of one direction overlap. */
    double chain = problem->directions == 2 ? steps * (double)problem->layers
                                            : steps + (double)problem->layers - 1;
    bound->steps = problem->pass == LB_TRAIN ? 2 * chain : chain;
    bound->input_ns = free_flops(problem) * sms_ns;
    bound->all_gemms_ns = lb_problem_flops(problem) * sms_ns;
    bound->memory_ns = traffic_ns(&v, share, run->cold);
    bound->total_ns =
        greatest(bound->steps * bound->step_ns, bound->all_gemms_ns, bound->memory_ns);
}
