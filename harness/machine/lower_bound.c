/* The model of the lower bound. */
#include "machine/lower_bound.h"

#include <math.h>

/* One problem on one machine. */
struct view {
    const struct lb_machine *m;
    const struct lb_problem *p;
    double rows;  /* per step; the mean over the steps when ragged */
    int cores;    /* that work: all, or those with threads */
    double flops; /* per ns and core */
};

/* Of weights and of h that cores exchange. */
static double element_bytes(const struct view *v)
{
    return v->p->dtype == LB_INT8 ? 1 : (double)lb_dtype_size(v->p->dtype);
}

/* Rows that a core multiplies at once: one where tensor cores do not know the type. */
static int tile_rows(const struct view *v)
{
    struct lb_problem plain = {.dtype = LB_F32};
    bool could = v->p->dtype == LB_F16 || v->p->dtype == LB_BF16 || v->p->math != LB_IEEE;
    bool faster = v->flops > lb_machine_flops_s(v->m, &plain, 1) / 1e9;
    return could && faster && v->m->tile_rows > 1 ? v->m->tile_rows : 1;
}

/* The recurrent matrix alone: a lower bound may leave out weights that a cell has of its own. */
static double weight_bytes(const struct view *v)
{
    return 4 * (double)v->p->hidden * (double)lb_h_size(v->p) * element_bytes(v);
}

static double clocks_to_ns(const struct view *v, double clocks)
{
    return clocks / v->m->clock_max_hz * 1e9;
}

/* The time in ns in which so many cores read the bytes from the level. */
static double read_ns(const struct view *v, enum lb_level level, double cores, double bytes)
{
    return bytes / lb_machine_read_s(v->m, level, fmin(cores, v->cores), v->m->clock_max_hz) * 1e9;
}

static double greatest(double a, double b, double c)
{
    return fmax(fmax(a, b), c);
}

/* The bytes of the caches of the cores that work. A CPU's domain has a cache of its own. */
static double cache_bytes(const struct view *v)
{
    double per_domain = fmax(1, (double)v->m->cores / v->m->domains);
    return v->m->bytes[LB_CACHE] * fmin(ceil(v->cores / per_domain), v->m->domains);
}

/* One way to distribute a step over cores. */
struct sharing {
    int copies; /* copies of a direction's weights, each serving its own rows */
    int cores;  /* that hold one copy, divided by hidden units */
    int cuts;   /* parts that the sum over h is divided into as well, each on a core of its own */
};

/* Time in ns that a core reads its weights in a step, each part from the innermost level that has
 * room for it. Sets the residency. */
static double reading_ns(const struct view *v, const struct sharing *s, struct lb_lower_bound *f)
{
    const double *size = v->m->bytes;
    double copy = weight_bytes(v), each = copy / s->cores, directions = (double)v->p->directions;
    double spilled = fmin(fmax(0, each - size[LB_INNER]), size[LB_OWN]);
    double afar = fmax(0, copy - s->cores * (size[LB_INNER] + size[LB_OWN]));
    double uncached = fmax(0, afar * directions - cache_bytes(v));
    double readers = s->cores * s->copies * directions;
    f->residency = uncached > 0 ? LB_MEMORY : afar > 0 ? LB_CACHE : spilled > 0 ? LB_OWN : LB_INNER;
    return greatest(read_ns(v, LB_OWN, 1, spilled),
                    read_ns(v, LB_CACHE, readers, afar * directions * s->copies),
                    read_ns(v, LB_MEMORY, readers, uncached));
}

/* Clocks that one row's h takes through a core's port: units of other cores, and the partial sums
 * of its own units from the cores that share them. */
static double row_clocks(const struct view *v, const struct sharing *s, double bytes_clock)
{
    double h = (double)lb_h_size(v->p);
    double units = h / s->cuts - h / s->cores;
    double sums = 4 * (double)v->p->hidden * (s->cuts - 1) / s->cores;
    return bytes_clock > 0 ? (units + sums) * element_bytes(v) / bytes_clock : 0;
}

/* Rounds a number of rows up to what is multiplied, which is whole tiles. */
static double multiplied(const struct view *v, double rows)
{
    return v->p->ragged ? rows : ceil(rows / tile_rows(v)) * tile_rows(v);
}

/* The time of a step that is distributed in one way: the larger of the chain that the next step
 * waits for, with a single tile of rows, and the time that the busiest part of a core (port, memory
 * or arithmetic) works for all rows. near: all cores of a copy are in one cluster. */
static struct lb_lower_bound step_of(const struct view *v, const struct sharing *s, bool near)
{
    const struct lb_machine *m = v->m;
    struct lb_lower_bound f = {.cores = s->cores};
    double rows = v->rows / s->copies, gates = 4 * (double)v->p->hidden;
    if (!v->p->ragged)
        rows = ceil(rows);
    double tile = v->p->ragged ? 1 : fmin(rows, tile_rows(v));
    double hops = s->cores == 1 ? 0 : s->cuts > 1 ? 2 : 1;
    double port = near ? m->peer_bytes_clock : m->bytes_clock[LB_CACHE];
    double row_ns = clocks_to_ns(v, row_clocks(v, s, port));
    double gemm_ns = 2 * gates * (double)lb_h_size(v->p) / s->cores / v->flops;
    f.wait_ns = clocks_to_ns(v, hops * (near ? m->peer_clocks : m->far_clocks));
    f.exchange_ns = row_ns * rows;
    f.weights_ns = reading_ns(v, s, &f);
    f.gemm_ns = gemm_ns * multiplied(v, rows);
    f.cell_ns = clocks_to_ns(v, m->cell_clocks);
    double chain = f.wait_ns + f.cell_ns +
                   greatest(row_ns * tile, f.weights_ns, gemm_ns * multiplied(v, tile));
    f.step_ns = fmax(chain, greatest(f.exchange_ns, f.weights_ns, f.gemm_ns));
    return f;
}

/* Keeps the shortest step, and the least time of reading weights. */
static void keep_better(struct lb_lower_bound *best, double *reading, const struct view *v,
                        const struct sharing *s, bool near)
{
    struct lb_lower_bound f = step_of(v, s, near);
    *reading = fmin(*reading, f.weights_ns);
    if (best->step_ns == 0 || f.step_ns < best->step_ns)
        *best = f;
}

/* The shortest step over all ways to distribute it. *reading: the least time of its reads. */
static struct lb_lower_bound best_step(const struct view *v, double *reading)
{
    struct lb_lower_bound best = {0};
    int directions = (int)v->p->directions, all = (v->cores + directions - 1) / directions;
    double held = v->m->bytes[LB_INNER] + v->m->bytes[LB_OWN];
    int most = (int)fmin(ceil(v->rows), all);
    *reading = (double)INFINITY;
    for (int cores = 1; cores <= v->m->cluster && cores <= all; cores++)
        for (int cuts = 1; cuts <= cores && (v->m->cpu || weight_bytes(v) / cores <= held);
             cuts++) {
            struct sharing s = {(int)fmin(most, all / cores), cores, cuts};
            keep_better(&best, reading, v, &s, true);
        }
    for (int copies = 1; copies <= most; copies++)
        for (int cuts = 1; cuts <= all / copies; cuts++) {
            struct sharing s = {copies, all / copies, cuts};
            keep_better(&best, reading, v, &s, false);
        }
    return best;
}

/* Bytes that a call reads and writes, each tensor counted once. share: the part of all T*B steps
 * that rows have. */
static void call_bytes(const struct lb_problem *p, double share, double *read, double *written)
{
    struct lb_counts n;
    double size = (double)lb_dtype_size(p->dtype);
    *read = *written = 0;
    if (lb_problem_counts(p, &n, NULL) != LB_OK)
        return;
    double x = (double)n.x * share, y = (double)n.y * share;
    double states = (double)n.state + (double)lb_h_count(p);
    double weights = (double)n.weights * (p->dtype == LB_INT8 ? 1 / size : 1); /* a byte each */
    *read = (x + states + weights) * size;
    *written = (y + states) * size;
    if (p->pass == LB_BACKWARD) /* reads y too */
        *written = 0, *read += y * size;
    if (lb_has_backward(p)) {
        *read += (y + states) * size;
        *written += (x + states + weights) * size;
    }
}

/* Time in ns of the traffic. What the caches of a CPU's cores keep from call to call moves nowhere;
 * all else goes through the cache, and what that cannot keep through memory too. With cold caches
 * everything that is read comes from memory. */
static double traffic_ns(const struct view *v, double share, bool cold)
{
    double read, written;
    call_bytes(v->p, share, &read, &written);
    double kept = v->m->cpu ? v->cores * (v->m->bytes[LB_INNER] + v->m->bytes[LB_OWN]) : 0;
    double moved = fmax(cold ? read : 0, read + written - kept);
    double memory = fmax(cold ? read : 0, read + written - kept - cache_bytes(v));
    return fmax(read_ns(v, LB_CACHE, v->cores, moved), read_ns(v, LB_MEMORY, v->cores, memory));
}

/* Multiply-adds, or what takes a multiply-add's place in a CPU's vector unit, per activation of a
 * cell: the range is reduced, a polynomial of degree 4 evaluated, a quotient formed. cpu_simd's
 * cell for bf16, the shortest one of the project, takes 10 for sigmoid and 14 for tanh. */
enum { ACTIVATION_STEPS = 10 };

/* Time in ns of all cells of the forward pass; 0 where the rate is not known. A GPU has units of
 * its own for them. */
static double cells_ns(const struct view *v, double share)
{
    const struct lb_problem *p = v->p, vectors = {.dtype = p->dtype == LB_F64 ? LB_F64 : LB_F32};
    double activations = p->act == LB_ACT_RELU ? 3 : 5;
    double cells = (double)p->seq_len * (double)p->batch * share * (double)p->hidden *
                   (double)p->layers * (double)p->directions;
    double rate = lb_machine_flops_s(v->m, &vectors, v->cores) / 1e9;
    bool computes = v->m->cpu && p->pass != LB_BACKWARD && rate > 0;
    return computes ? cells * activations * 2 * ACTIVATION_STEPS / rate : 0;
}

void lb_lower_bound_of(const struct lb_machine *machine, const struct lb_problem *problem,
                       const struct lb_lower_bound_run *run, struct lb_lower_bound *bound)
{
    struct lb_machine m = *machine;
    for (int level = 0; level < LB_LEVEL_COUNT; level++)
        if (!(m.bytes[level] > 0)) /* a size that is not known limits nothing */
            m.bytes[level] = (double)INFINITY;
    double T = (double)problem->seq_len, L = (double)problem->layers, reading;
    double batch = (double)problem->batch, passes = problem->pass == LB_TRAIN ? 2 : 1;
    double row_steps = run->row_steps > 0 ? run->row_steps : T + batch - 1;
    double share = problem->ragged ? row_steps / (T * batch) : 1;
    int cores = run->threads > 0 && run->threads < machine->cores ? run->threads : machine->cores;
    double all_flops = lb_machine_flops_s(machine, problem, cores) / 1e9;
    const struct view v = {&m, problem, batch * share, cores, all_flops / cores};
    *bound = best_step(&v, &reading);
    /* Both directions must end before the next layer starts; layers of one direction overlap. */
    bound->steps = passes * (problem->directions == 2 ? T * L : T + L - 1);
    bound->all_gemms_ns = lb_problem_flops(problem) * share / all_flops;
    bound->all_cells_ns = cells_ns(&v, share);
    bound->memory_ns = traffic_ns(&v, share, run->cold);
    bound->all_weights_ns = passes * T * L * reading;
    /* Tiles are multiplied beside the vector unit, everything else in it. */
    bool beside = machine->units[problem->dtype] == LB_CPU_AMX;
    double computing = beside ? fmax(bound->all_gemms_ns, bound->all_cells_ns)
                              : bound->all_gemms_ns + bound->all_cells_ns;
    bound->total_ns = fmax(greatest(bound->steps * bound->step_ns, computing, bound->memory_ns),
                           bound->all_weights_ns);
    if (!(all_flops > 0))
        bound->total_ns = (double)NAN;
}
