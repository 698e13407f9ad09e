/* What a machine was measured to do at best. */
#include "machine/ceilings.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

/* The figures as users see them: `unit` of the key's unit make one of what is printed. */
static const struct {
    const char *key, *title, *of_cpu; /* of_cpu: the title for a CPU, where it differs */
    double unit;
    const char *text;
} figures[LB_FIGURE_COUNT] = {
    [LB_FLOPS + LB_F64] = {"f64_flops_s", "f64", NULL, 1e9, "GFLOP/s"},
    [LB_FLOPS + LB_F32] = {"f32_flops_s", "f32", NULL, 1e9, "GFLOP/s"},
    [LB_FLOPS + LB_F16] = {"f16_flops_s", "f16", NULL, 1e9, "GFLOP/s"},
    [LB_FLOPS + LB_BF16] = {"bf16_flops_s", "bf16", NULL, 1e9, "GFLOP/s"},
    [LB_FLOPS + LB_INT8] = {"int8_flops_s", "int8", NULL, 1e9, "GFLOP/s"},
    [LB_TF32_FLOPS] = {"f32_tf32_flops_s", "f32 tf32", NULL, 1e9, "GFLOP/s"},
    [LB_HALF_FLOPS] = {"f32_half_flops_s", "f32 half", NULL, 1e9, "GFLOP/s"},
    [LB_READ + LB_INNER] = {"inner_bytes_s", "read registers", "read L1", 1e9, "GB/s"},
    [LB_READ + LB_OWN] = {"own_bytes_s", "read shared memory", "read L2", 1e9, "GB/s"},
    [LB_READ + LB_CACHE] = {"cache_bytes_s", "read the cache", "read L3", 1e9, "GB/s"},
    [LB_READ + LB_MEMORY] = {"memory_bytes_s", "copy", "read memory", 1e9, "GB/s"},
    [LB_PEER_NS] = {"peer_ns", "store to a peer", "store to a core", 1e3, "us"},
    [LB_FAR_NS] = {"far_ns", "store to the cache", NULL, 1e3, "us"},
    [LB_BARRIER_NS] = {"barrier_ns", "grid barrier", "barrier", 1e3, "us"},
    [LB_CLUSTER_BARRIER_NS] = {"cluster_barrier_ns", "cluster barrier", NULL, 1e3, "us"},
    [LB_LAUNCH_NS] = {"launch_ns", "launch", NULL, 1e3, "us"},
    [LB_GRAPH_NODE_NS] = {"graph_node_ns", "graph node", NULL, 1e3, "us"},
    [LB_EVENT_NS] = {"event_ns", "event pair", NULL, 1e3, "us"},
};

void lb_ceilings_clear(struct lb_ceilings *ceilings, const char *of, int cores)
{
    *ceilings = (struct lb_ceilings){.cores = cores};
    snprintf(ceilings->of, sizeof(ceilings->of), "%s", of);
    for (int i = 0; i < LB_FIGURE_COUNT; i++)
        ceilings->all[i] = ceilings->core[i] = (double)NAN;
}

static json_t *values_to_json(const double values[LB_FIGURE_COUNT])
{
    json_t *object = json_object();
    for (int i = 0; i < LB_FIGURE_COUNT; i++)
        if (isfinite(values[i]))
            json_object_set_new(object, figures[i].key, json_real(values[i]));
    return object;
}

static void values_from_json(const json_t *object, double values[LB_FIGURE_COUNT])
{
    for (int i = 0; i < LB_FIGURE_COUNT; i++) {
        const json_t *value = json_object_get(object, figures[i].key);
        if (json_is_number(value))
            values[i] = json_number_value(value);
    }
}

json_t *lb_ceilings_to_json(const struct lb_ceilings *ceilings)
{
    return json_pack("{s:s, s:i, s:o, s:o}", "of", ceilings->of, "cores", ceilings->cores, "all",
                     values_to_json(ceilings->all), "core", values_to_json(ceilings->core));
}

void lb_ceilings_from_json(const json_t *object, struct lb_ceilings *ceilings)
{
    lb_ceilings_clear(ceilings, lb_json_text(object, "of", ""),
                      (int)json_integer_value(json_object_get(object, "cores")));
    values_from_json(json_object_get(object, "all"), ceilings->all);
    values_from_json(json_object_get(object, "core"), ceilings->core);
}

static void raise_to(double *figure, double measured)
{
    *figure = fmax(*figure, measured); /* a NaN leaves the figure */
}

/* Replaces clocks by a latency that is lower, or where there are none. */
static void lower_to(double *clocks, double measured_ns, double clock_hz)
{
    double measured = measured_ns * clock_hz / 1e9;
    if (measured < *clocks || (*clocks == 0 && isfinite(measured)))
        *clocks = measured;
}

void lb_machine_measured(struct lb_machine *machine, const struct lb_ceilings *ceilings)
{
    double clock = machine->clock_max_hz;
    const double *all = ceilings->all, *core = ceilings->core;
    for (int d = 0; d < LB_DTYPE_COUNT; d++) {
        bool one = isfinite(core[LB_FLOPS + d]);
        raise_to(&machine->flops_clock[d],
                 (one ? core[LB_FLOPS + d] : all[LB_FLOPS + d] / machine->cores) / clock);
        if (one) /* measured later, all cores together may have met a slower moment than one */
            raise_to(&machine->flops_s[d], fmax(all[LB_FLOPS + d], core[LB_FLOPS + d]));
    }
    raise_to(&machine->tf32_flops_clock, all[LB_TF32_FLOPS] / machine->cores / clock);
    for (int level = 0; level < LB_LEVEL_COUNT; level++) {
        if (isfinite(all[LB_READ + level])) /* one core's rate is no limit for all of them */
            raise_to(&machine->bytes_s[level], fmax(all[LB_READ + level], core[LB_READ + level]));
        raise_to(&machine->bytes_clock[level], core[LB_READ + level] / clock);
    }
    lower_to(&machine->peer_clocks, all[LB_PEER_NS], clock);
    lower_to(&machine->far_clocks, all[LB_FAR_NS], clock);
}

/* What is published of a figure; 0: nothing. */
static double published_figure(const struct lb_machine *m, int figure)
{
    double flops = m->cores * m->clock_hz, ns = 1e9 / m->clock_hz;
    if (figure < LB_TF32_FLOPS)
        return m->flops_clock[figure - LB_FLOPS] * flops;
    if (figure >= LB_READ && figure < LB_PEER_NS)
        return m->bytes_s[figure - LB_READ];
    return figure == LB_TF32_FLOPS ? m->tf32_flops_clock * flops
           : figure == LB_PEER_NS  ? m->peer_clocks * ns
           : figure == LB_FAR_NS   ? m->far_clocks * ns
                                   : 0;
}

void lb_ceilings_print_figures(FILE *to, const struct lb_ceilings *ceilings,
                               const struct lb_machine *published)
{
    bool cpu = strcmp(ceilings->of, "cpu") == 0;
    for (int i = 0; i < LB_FIGURE_COUNT; i++) {
        double value = ceilings->all[i], unit = figures[i].unit;
        double known = published ? published_figure(published, i) : 0;
        if (!isfinite(value))
            continue;
        fprintf(to, "  %-22s%10.5g %s",
                cpu && figures[i].of_cpu ? figures[i].of_cpu : figures[i].title, value / unit,
                figures[i].text);
        if (isfinite(ceilings->core[i]))
            fprintf(to, ", %.4g of one core", ceilings->core[i] / unit);
        if (known > 0)
            fprintf(to, "; published %.4g", known / unit);
        fputc('\n', to);
    }
}

static struct lb_ceilings assumed[2]; /* of the CPUs and of the GPU; without `of`: none */

void lb_ceilings_assume(bool gpu, const struct lb_ceilings *ceilings)
{
    assumed[gpu] = ceilings ? *ceilings : (struct lb_ceilings){.of = ""};
}

const struct lb_ceilings *lb_ceilings_assumed(bool gpu)
{
    return assumed[gpu].of[0] ? &assumed[gpu] : NULL;
}

void lb_ceilings_assume_all(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct lb_ceilings ceilings;
        lb_ceilings_from_json(json_array_get(list, i), &ceilings);
        lb_ceilings_assume(strcmp(ceilings.of, "cpu") != 0, &ceilings);
    }
}
