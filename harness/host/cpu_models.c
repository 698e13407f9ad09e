/* The CPUs that are known by name, with their sources, and files that describe others. */
#include "host/cpu_models.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "host/machine_file.h"

/* Sources.
 *   cores, threads, caches, memory channels, clocks: the product pages of AMD, Intel and NVIDIA;
 *     for Graviton 4 chipsandcheese.com, "Arm's Neoverse V2, in AWS's Graviton 4". clock_hz is the
 *     all-core boost clock where the maker states it (epyc9654, xeon8480), else the base clock, of
 *     Graviton 4 the only one.
 *   memory_bytes_s: channels times their rate: 12 of DDR5-4800, 8 of DDR5-4800, 12 of DDR5-5600, 2
 *     of DDR5-5600; Grace: the data sheet's 512 GB/s for 240 GB.
 *   flops_clock, l1_bytes_clock, l2_bytes_clock: AMD, Software Optimization Guide for Zen 4 (two
 *     256-bit multiply-adds, two 256-bit loads) and Zen 5 (two of 512 bits); Intel, Optimization
 *     Reference Manual (two 512-bit multiply-adds; TDPBF16PS, 16 x 16 x 32 in 16 clocks); Arm,
 *     Neoverse V2 Software Optimization Guide (four 128-bit multiply-adds, three 128-bit loads).
 *   l3_bytes_clock: Zen: the width of the port. Grace: 3.2 TB/s of the fabric among 72 cores. For
 *     the others no figure was found, and 12 is assumed.
 *   core_ns, domain_ns of Zen: AnandTech's review of the 7950X, 15 to 19 and up to 79.5 ns; an
 *     EPYC's larger I/O die is slower. node_ns of Zen, and the figures of Graviton 4 (30 to 60 ns
 *     in a socket, 138.6 across): chipsandcheese.com, the same article, which says that Sapphire
 *     Rapids is similar across sockets; in a socket its figures and Grace's were not found, and
 *     the mean of Graviton's is assumed.
 *   core_memory_bytes_s: assumed. */

#define GHZ(clock) ((clock)*1e9)
#define KIB(count) ((double)(count) * (1 << 10))
#define MIB(count) ((double)(count) * (1 << 20))

#define FLOPS(f64, f32, f16, bf16) \
    .flops_clock = {[LB_F64] = (f64), [LB_F32] = (f32), [LB_F16] = (f16), [LB_BF16] = (bf16)}

#define ZEN4                                                                             \
    .unit = LB_CPU_AVX512, .f16_unit = LB_CPU_AVX512, .bf16_unit = LB_CPU_AVX512BF16,    \
    FLOPS(16, 32, 32, 64), .l1_bytes = KIB(32), .l2_bytes = MIB(1), .l3_bytes = MIB(32), \
    .l1_bytes_clock = 64, .l2_bytes_clock = 32, .l3_bytes_clock = 32, .core_ns = 19,     \
    .domain_ns = 79.5, .node_ns = 200

#define SAPPHIRE_RAPIDS                                                                     \
    .unit = LB_CPU_AVX512, .f16_unit = LB_CPU_AVX512, .bf16_unit = LB_CPU_AMX,              \
    FLOPS(32, 64, 64, 1024), .l1_bytes = KIB(48), .l2_bytes = MIB(2), .l3_bytes = MIB(105), \
    .l1_bytes_clock = 128, .l2_bytes_clock = 64, .l3_bytes_clock = 12, .core_ns = 45,       \
    .domain_ns = 45, .node_ns = 138.6

#define NEOVERSE_V2                                                                         \
    .unit = LB_CPU_PLAIN, .f16_unit = LB_CPU_PLAIN, .bf16_unit = LB_CPU_PLAIN,              \
    FLOPS(16, 32, 32, 32), .l1_bytes = KIB(64), .l1_bytes_clock = 48, .l2_bytes_clock = 32, \
    .core_ns = 45, .domain_ns = 45, .node_ns = 138.6

static const struct lb_cpu_machine models[] = {
    {.name = "epyc9654",
     .cores = 96,
     .threads_per_core = 2,
     .domains = 12,
     .nodes = 1,
     ZEN4,
     .clock_hz = GHZ(3.55),
     .memory_bytes_s = 460.8e9,
     .core_memory_bytes_s = 30e9},
    {.name = "epyc9654x2",
     .cores = 192,
     .threads_per_core = 2,
     .domains = 24,
     .nodes = 2,
     ZEN4,
     .clock_hz = GHZ(3.55),
     .memory_bytes_s = 921.6e9,
     .core_memory_bytes_s = 30e9},
    {.name = "xeon8480",
     .cores = 56,
     .threads_per_core = 2,
     .domains = 1,
     .nodes = 1,
     SAPPHIRE_RAPIDS,
     .clock_hz = GHZ(3.0),
     .memory_bytes_s = 307.2e9,
     .core_memory_bytes_s = 15e9},
    {.name = "xeon8480x2",
     .cores = 112,
     .threads_per_core = 2,
     .domains = 2,
     .nodes = 2,
     SAPPHIRE_RAPIDS,
     .clock_hz = GHZ(3.0),
     .memory_bytes_s = 614.4e9,
     .core_memory_bytes_s = 15e9},
    {.name = "graviton4",
     .cores = 96,
     .threads_per_core = 1,
     .domains = 1,
     .nodes = 1,
     NEOVERSE_V2,
     .clock_hz = GHZ(2.8),
     .l2_bytes = MIB(2),
     .l3_bytes = MIB(36),
     .l3_bytes_clock = 12,
     .memory_bytes_s = 537.6e9,
     .core_memory_bytes_s = 30e9},
    {.name = "grace",
     .cores = 72,
     .threads_per_core = 1,
     .domains = 1,
     .nodes = 1,
     NEOVERSE_V2,
     .clock_hz = GHZ(3.1),
     .l2_bytes = MIB(1),
     .l3_bytes = MIB(114),
     .l3_bytes_clock = 14,
     .memory_bytes_s = 512e9,
     .core_memory_bytes_s = 30e9},
    {.name = "ryzen9950x",
     .cores = 16,
     .threads_per_core = 2,
     .domains = 2,
     .nodes = 1,
     .unit = LB_CPU_AVX512,
     .f16_unit = LB_CPU_AVX512,
     .bf16_unit = LB_CPU_AVX512BF16,
     .clock_hz = GHZ(4.3),
     FLOPS(32, 64, 64, 128),
     .l1_bytes = KIB(48),
     .l2_bytes = MIB(1),
     .l3_bytes = MIB(32),
     .l1_bytes_clock = 128,
     .l2_bytes_clock = 64,
     .l3_bytes_clock = 32,
     .memory_bytes_s = 89.6e9,
     .core_memory_bytes_s = 40e9,
     .core_ns = 19,
     .domain_ns = 79.5,
     .node_ns = 200},
};

enum { MODEL_COUNT = sizeof(models) / sizeof(models[0]) };

static bool take_model(const char *name, void *description)
{
    for (int i = 0; i < MODEL_COUNT; i++)
        if (strcmp(models[i].name, name) == 0) {
            memcpy(description, &models[i], sizeof(models[i]));
            return true;
        }
    return false;
}

static bool read_unit(const char *value, void *to)
{
    for (int unit = 0; unit < LB_CPU_UNIT_COUNT; unit++)
        if (strcmp(value, lb_cpu_unit_name((enum lb_cpu_unit)unit)) == 0) {
            *(enum lb_cpu_unit *)to = (enum lb_cpu_unit)unit;
            return true;
        }
    return false;
}

#define AT(field) offsetof(struct lb_cpu_machine, field)
#define REAL(field)                            \
    {                                          \
#field, LB_REAL, AT(field), NULL, NULL \
    }
#define WHOLE(field)                            \
    {                                           \
#field, LB_WHOLE, AT(field), NULL, NULL \
    }
#define UNIT(field)                                                                      \
    {                                                                                    \
#field, LB_OTHER, AT(field), read_unit, "plain, avx2, avx512, avx512bf16 or amx" \
    }
#define RATE(name, type)                                 \
    {                                                    \
        name, LB_REAL, AT(flops_clock[type]), NULL, NULL \
    }

static const struct lb_machine_key keys[] = {
    {"name", LB_NAME, AT(name), NULL, NULL},
    WHOLE(cores),
    WHOLE(threads_per_core),
    WHOLE(domains),
    WHOLE(nodes),
    UNIT(unit),
    UNIT(f16_unit),
    UNIT(bf16_unit),
    REAL(clock_hz),
    RATE("f64_flops_clock", LB_F64),
    RATE("f32_flops_clock", LB_F32),
    RATE("f16_flops_clock", LB_F16),
    RATE("bf16_flops_clock", LB_BF16),
    REAL(l1_bytes),
    REAL(l2_bytes),
    REAL(l3_bytes),
    REAL(l1_bytes_clock),
    REAL(l2_bytes_clock),
    REAL(l3_bytes_clock),
    REAL(memory_bytes_s),
    REAL(core_memory_bytes_s),
    REAL(core_ns),
    REAL(domain_ns),
    REAL(node_ns),
};

void lb_cpu_model_names(char *names, size_t size)
{
    size_t used = 0;
    names[0] = '\0';
    for (int i = 0; i < MODEL_COUNT && used < size; i++)
        used +=
            (size_t)snprintf(names + used, size - used, "%s%s", i > 0 ? ", " : "", models[i].name);
}

static bool is_path(const char *name)
{
    return strpbrk(name, "./") != NULL;
}

/* Checks what a single line cannot show. */
static enum lb_status check_whole(const char *path, const struct lb_cpu_machine *m,
                                  struct lb_error *err)
{
    if (m->cores % m->domains != 0 || m->domains % m->nodes != 0)
        return lb_fail(err, LB_INVALID,
                       "%.300s: cores must be a multiple of domains, and domains of nodes", path);
    if ((double)m->cores * m->threads_per_core > LB_CPU_MAX)
        return lb_fail(err, LB_INVALID, "%.300s: cores times threads_per_core is above %d", path,
                       LB_CPU_MAX);
    return LB_OK;
}

enum lb_status lb_cpu_model(const char *name, struct lb_cpu_machine *machine, struct lb_error *err)
{
    char known[256];
    struct lb_cpu_machine described = {.cores = 0};
    enum lb_status st = LB_OK;
    if (take_model(name, machine))
        return LB_OK;
    lb_cpu_model_names(known, sizeof(known));
    if (!is_path(name))
        return lb_fail(err, LB_INVALID, "'%.200s': no CPU of that name is known; there are %s",
                       name, known);
    const struct lb_machine_kind kind = {.noun = "CPU",
                                         .keys = keys,
                                         .key_count = sizeof(keys) / sizeof(keys[0]),
                                         .known = known,
                                         .example = "epyc9654",
                                         .like = take_model};
    LB_TRY(lb_machine_file_read(name, &kind, &described, err));
    LB_TRY(check_whole(name, &described, err));
    *machine = described;
done:
    return st;
}

bool lb_cpu_model_is(const char *name)
{
    for (int i = 0; i < MODEL_COUNT; i++)
        if (strcmp(name, models[i].name) == 0 ||
            (is_path(name) && lb_machine_file_has(name, "like", models[i].name)))
            return true;
    return is_path(name) && lb_machine_file_has(name, "cores", NULL);
}

/* The first arrivals of a barrier are within domains, one after another; then one thread per domain
 * arrives, at last the news goes out to all. */
static double barrier_ns(const struct lb_cpu_machine *m, int threads)
{
    int size = m->cores / m->domains, per_node = m->domains / m->nodes;
    int domains = (threads + size - 1) / size, near = domains < per_node ? domains : per_node;
    double out = domains > per_node ? m->node_ns : domains > 1 ? m->domain_ns : m->core_ns;
    double arrive = (threads < size ? threads : size) * m->core_ns;
    if (threads < 2)
        return 0;
    if (domains > 1)
        arrive += near * m->domain_ns + (domains - near) * m->node_ns;
    return arrive + out;
}

void lb_cpu_machine_ceilings(const struct lb_cpu_machine *machine, struct lb_cpu_ceilings *ceilings)
{
    const struct lb_cpu_machine *m = machine;
    const double sizes[] = {m->l1_bytes, m->l2_bytes, m->l3_bytes * m->domains, (double)NAN};
    const double clock[] = {m->l1_bytes_clock, m->l2_bytes_clock, m->l3_bytes_clock};
    *ceilings = (struct lb_cpu_ceilings){.count = 0};
    snprintf(ceilings->cpu, sizeof(ceilings->cpu), "%s", m->name);
    memcpy(ceilings->cache_bytes, sizes, sizeof(sizes));
    ceilings->units[LB_F64] = ceilings->units[LB_F32] = m->unit;
    ceilings->units[LB_F16] = m->f16_unit;
    ceilings->units[LB_BF16] = m->bf16_unit;
    for (int n = 1; ceilings->count < LB_CPU_MAX_COUNTS; n = 2 * n < m->cores ? 2 * n : m->cores) {
        struct lb_cpu_rates *rates = &ceilings->rates[ceilings->count++];
        rates->threads = n;
        for (int d = 0; d < LB_DTYPE_COUNT; d++)
            rates->flops_s[d] = n * m->flops_clock[d] * m->clock_hz;
        for (int level = 0; level < LB_CPU_MEMORY; level++)
            rates->read_bytes_s[level] = n * clock[level] * m->clock_hz;
        rates->read_bytes_s[LB_CPU_MEMORY] = fmin(n * m->core_memory_bytes_s, m->memory_bytes_s);
        rates->barrier_ns = barrier_ns(m, n);
        if (n == m->cores)
            break;
    }
}

void lb_cpu_machine_topology(const struct lb_cpu_machine *machine, struct lb_cpu_topology *topology)
{
    lb_cpu_topology_make((size_t)machine->cores * (size_t)machine->threads_per_core,
                         (size_t)machine->cores, (size_t)machine->domains, (size_t)machine->nodes,
                         machine->l3_bytes, topology);
}

/* A usual CPU of a topology, with the units and caches of this machine. */
static struct lb_cpu_machine usual_cpu(const struct lb_cpu_topology *topology)
{
    static const double f32_flops[LB_CPU_UNIT_COUNT] = {8, 32, 64, 64, 64};
    struct lb_cpu_machine m = models[0];
    double sizes[LB_CPU_LEVEL_COUNT];
    lb_cpu_cache_bytes(sizes);
    snprintf(m.name, sizeof(m.name), "usual CPU");
    m.cores = (int)topology->cores;
    m.domains = topology->cores % topology->domains == 0 ? (int)topology->domains : 1;
    m.nodes = m.domains % (int)topology->nodes == 0 ? (int)topology->nodes : 1;
    m.unit = lb_cpu_best_unit(LB_F32);
    m.f16_unit = lb_cpu_best_unit(LB_F16);
    m.bf16_unit = lb_cpu_best_unit(LB_BF16);
    m.clock_hz = GHZ(3);
    m.flops_clock[LB_F32] = f32_flops[m.unit];
    m.flops_clock[LB_F64] = f32_flops[m.unit] / 2;
    m.flops_clock[LB_F16] = f32_flops[m.unit] * (m.f16_unit == LB_CPU_AMX ? 16 : 1);
    m.flops_clock[LB_BF16] = f32_flops[m.unit] * (m.bf16_unit == LB_CPU_AMX          ? 16
                                                  : m.bf16_unit == LB_CPU_AVX512BF16 ? 2
                                                                                     : 1);
    m.l1_bytes = isfinite(sizes[LB_CPU_L1]) ? sizes[LB_CPU_L1] : m.l1_bytes;
    m.l2_bytes = isfinite(sizes[LB_CPU_L2]) ? sizes[LB_CPU_L2] : m.l2_bytes;
    m.l3_bytes = isfinite(topology->domain_bytes) ? topology->domain_bytes : m.l3_bytes;
    return m;
}

static void replace_unknown(double *figure, double usual)
{
    *figure = isfinite(*figure) ? *figure : usual;
}

bool lb_cpu_ceilings_assume(const struct lb_cpu_topology *topology,
                            struct lb_cpu_ceilings *ceilings)
{
    struct lb_cpu_machine machine = usual_cpu(topology);
    struct lb_cpu_ceilings usual;
    lb_cpu_machine_ceilings(&machine, &usual);
    if (!lb_cpu_ceilings_load(ceilings)) {
        *ceilings = usual;
        return false;
    }
    for (int level = 0; level < LB_CPU_MEMORY; level++)
        replace_unknown(&ceilings->cache_bytes[level], usual.cache_bytes[level]);
    for (size_t i = 0; i < ceilings->count; i++) {
        struct lb_cpu_rates *rates = &ceilings->rates[i];
        struct lb_cpu_rates other = lb_cpu_rates_of(&usual, rates->threads);
        for (int d = 0; d < LB_DTYPE_COUNT; d++)
            replace_unknown(&rates->flops_s[d], other.flops_s[d]);
        for (int level = 0; level < LB_CPU_LEVEL_COUNT; level++)
            replace_unknown(&rates->read_bytes_s[level], other.read_bytes_s[level]);
        replace_unknown(&rates->barrier_ns, other.barrier_ns);
    }
    return true;
}

static struct lb_cpu_machine assumed; /* without cores: none */

void lb_cpu_assume(const struct lb_cpu_machine *machine)
{
    assumed = machine ? *machine : (struct lb_cpu_machine){.cores = 0};
}

const struct lb_cpu_machine *lb_cpu_assumed(void)
{
    return assumed.cores > 0 ? &assumed : NULL;
}
