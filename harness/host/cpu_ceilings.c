/* What the CPUs of a machine can do at best. */
#include "host/cpu_ceilings.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

#include "base/atomic_file.h"
#include "base/cache_path.h"
#include "base/json_out.h"

static const char *const unit_names[LB_CPU_UNIT_COUNT] = {"plain", "avx2", "avx512", "avx512bf16",
                                                          "amx"};
static const char *const level_names[LB_CPU_LEVEL_COUNT] = {"L1", "L2", "L3", "memory"};

const char *lb_cpu_unit_name(enum lb_cpu_unit unit)
{
    return unit_names[unit];
}

const char *lb_cpu_level_name(enum lb_cpu_level level)
{
    return level_names[level];
}

#if defined(__x86_64__) && defined(__linux__)

enum { EAX, ECX, EDX };

/* A bit of CPUID for features that not every compiler's __builtin_cpu_supports knows. */
static bool cpuid_bit(unsigned leaf, unsigned subleaf, int reg, int bit)
{
    unsigned a, b, c, d, most;
    if ((unsigned)__get_cpuid_max(0, NULL) < leaf)
        return false;
    __cpuid_count(leaf, 0, most, b, c, d);
    if (subleaf > 0 && most < subleaf)
        return false;
    __cpuid_count(leaf, subleaf, a, b, c, d);
    return (reg == EAX ? a : reg == ECX ? c : d) >> bit & 1;
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

/* AMX needs the tiles, the instruction for the type, and Linux's permission to use the tiles'
 * state, which a process asks for once, for all its threads. Source: Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 1, chapter 18; Linux,
 * Documentation/arch/x86/xstate.rst. */
static bool has_amx(enum lb_dtype dtype)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, TILE_STATE = 3 << 17 };
    unsigned state, high;
    bool known = dtype == LB_BF16  ? cpuid_bit(7, 0, EDX, 22)
                 : dtype == LB_F16 ? cpuid_bit(7, 1, EAX, 21)
                                   : false;
    if (!known || !has_avx512() || !cpuid_bit(7, 0, EDX, 24))
        return false;
    __asm__("xgetbv" : "=a"(state), "=d"(high) : "c"(0));
    return (state & TILE_STATE) == TILE_STATE &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

bool lb_cpu_has(enum lb_cpu_unit unit, enum lb_dtype dtype)
{
    switch (unit) {
    case LB_CPU_AMX: return has_amx(dtype);
    case LB_CPU_AVX512BF16: return dtype == LB_BF16 && has_avx512() && cpuid_bit(7, 1, EAX, 5);
    case LB_CPU_AVX512: return has_avx512();
    case LB_CPU_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               cpuid_bit(1, 0, ECX, 29);
    default: return true;
    }
}

#else

bool lb_cpu_has(enum lb_cpu_unit unit, enum lb_dtype dtype)
{
    (void)dtype;
    return unit == LB_CPU_PLAIN;
}

#endif

enum lb_cpu_unit lb_cpu_best_unit(enum lb_dtype dtype)
{
    int unit = LB_CPU_UNIT_COUNT - 1;
    while (unit > LB_CPU_PLAIN && !lb_cpu_has((enum lb_cpu_unit)unit, dtype))
        unit--;
    return (enum lb_cpu_unit)unit;
}

void lb_cpu_key(char key[96])
{
    char line[256], name[64] = "cpu";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            snprintf(name, sizeof(name), "%.60s", strchr(line, ':') + 1);
            break;
        }
    if (file)
        fclose(file);
    size_t length = 0;
    for (const char *c = name; *c; c++)
        if (isalnum((unsigned char)*c))
            key[length++] = *c;
        else if (length > 0 && key[length - 1] != '-')
            key[length++] = '-';
    if (length > 0 && key[length - 1] == '-')
        length--;
    snprintf(key + length, 96 - length, "-%ld-cpus", sysconf(_SC_NPROCESSORS_ONLN));
}

void lb_cpu_cache_bytes(double bytes[LB_CPU_LEVEL_COUNT])
{
    long sizes[] = {sysconf(_SC_LEVEL1_DCACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE),
                    sysconf(_SC_LEVEL3_CACHE_SIZE)};
    for (int level = 0; level < LB_CPU_MEMORY; level++)
        bytes[level] = sizes[level] > 0 ? (double)sizes[level] : (double)NAN;
    bytes[LB_CPU_MEMORY] = (double)NAN;
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static json_t *rates_to_json(const struct lb_cpu_rates *rates)
{
    json_t *object = json_object(), *flops = json_object(), *reads = json_object();
    for (int d = 0; d < LB_DTYPE_COUNT; d++)
        json_object_set_new(flops, lb_dtype_name((enum lb_dtype)d),
                            number_or_null(rates->flops_s[d]));
    for (int level = 0; level < LB_CPU_LEVEL_COUNT; level++)
        json_object_set_new(reads, level_names[level], number_or_null(rates->read_bytes_s[level]));
    json_object_set_new(object, "threads", json_integer(rates->threads));
    json_object_set_new(object, "flops_s", flops);
    json_object_set_new(object, "read_bytes_s", reads);
    json_object_set_new(object, "barrier_ns", number_or_null(rates->barrier_ns));
    return object;
}

static void rates_from_json(const json_t *object, struct lb_cpu_rates *rates)
{
    rates->threads = (int)json_integer_value(json_object_get(object, "threads"));
    for (int d = 0; d < LB_DTYPE_COUNT; d++)
        rates->flops_s[d] =
            number_of(json_object_get(object, "flops_s"), lb_dtype_name((enum lb_dtype)d));
    for (int level = 0; level < LB_CPU_LEVEL_COUNT; level++)
        rates->read_bytes_s[level] =
            number_of(json_object_get(object, "read_bytes_s"), level_names[level]);
    rates->barrier_ns = number_of(object, "barrier_ns");
}

json_t *lb_cpu_ceilings_to_json(const struct lb_cpu_ceilings *ceilings)
{
    json_t *object = json_object(), *caches = json_object(), *units = json_object();
    json_t *rates = json_array();
    for (int level = 0; level < LB_CPU_MEMORY; level++)
        json_object_set_new(caches, level_names[level],
                            number_or_null(ceilings->cache_bytes[level]));
    for (int d = 0; d < LB_DTYPE_COUNT; d++)
        json_object_set_new(units, lb_dtype_name((enum lb_dtype)d),
                            json_string(unit_names[ceilings->units[d]]));
    for (size_t i = 0; i < ceilings->count; i++)
        json_array_append_new(rates, rates_to_json(&ceilings->rates[i]));
    json_object_set_new(object, "cpu", json_string(ceilings->cpu));
    json_object_set_new(object, "cache_bytes", caches);
    json_object_set_new(object, "units", units);
    json_object_set_new(object, "rates", rates);
    return object;
}

void lb_cpu_ceilings_from_json(const json_t *object, struct lb_cpu_ceilings *ceilings)
{
    const json_t *rates = json_object_get(object, "rates");
    const char *cpu = json_string_value(json_object_get(object, "cpu"));
    *ceilings = (struct lb_cpu_ceilings){.count = json_array_size(rates)};
    snprintf(ceilings->cpu, sizeof(ceilings->cpu), "%s", cpu ? cpu : "");
    for (int level = 0; level < LB_CPU_LEVEL_COUNT; level++)
        ceilings->cache_bytes[level] =
            number_of(json_object_get(object, "cache_bytes"), level_names[level]);
    for (int d = 0; d < LB_DTYPE_COUNT; d++) {
        const char *name = json_string_value(
            json_object_get(json_object_get(object, "units"), lb_dtype_name((enum lb_dtype)d)));
        for (int unit = 0; name && unit < LB_CPU_UNIT_COUNT; unit++)
            if (strcmp(name, unit_names[unit]) == 0)
                ceilings->units[d] = (enum lb_cpu_unit)unit;
    }
    if (ceilings->count > LB_CPU_MAX_COUNTS)
        ceilings->count = LB_CPU_MAX_COUNTS;
    for (size_t i = 0; i < ceilings->count; i++)
        rates_from_json(json_array_get(rates, i), &ceilings->rates[i]);
}

static void file_path(const char *cpu, bool make, char path[4096])
{
    char name[128];
    snprintf(name, sizeof(name), "ceilings-%s.json", cpu);
    lb_cache_path(name, make, path);
}

static enum lb_status write_json(FILE *out, const void *user, struct lb_error *err)
{
    return lb_json_write(lb_cpu_ceilings_to_json(user), true, "ceilings", out, err);
}

enum lb_status lb_cpu_ceilings_save(const struct lb_cpu_ceilings *ceilings, struct lb_error *err)
{
    char path[4096];
    file_path(ceilings->cpu, true, path);
    return lb_write_file_atomically(path, write_json, ceilings, err);
}

bool lb_cpu_ceilings_load(struct lb_cpu_ceilings *ceilings)
{
    char key[96], path[4096];
    lb_cpu_key(key);
    file_path(key, false, path);
    json_t *object = json_load_file(path, 0, NULL);
    lb_cpu_ceilings_from_json(object, ceilings);
    json_decref(object);
    return ceilings->count > 0;
}

struct lb_cpu_rates lb_cpu_rates_of(const struct lb_cpu_ceilings *ceilings, int threads)
{
    const struct lb_cpu_rates *one = &ceilings->rates[0], *next = NULL;
    struct lb_cpu_rates rates = {.threads = threads};
    for (size_t i = 0; i < ceilings->count && !next; i++)
        if (ceilings->rates[i].threads >= threads)
            next = &ceilings->rates[i];
    if (next && next->threads == threads)
        return *next;
    for (int d = 0; d < LB_DTYPE_COUNT; d++)
        rates.flops_s[d] = fmin(threads * one->flops_s[d], next ? next->flops_s[d] : INFINITY);
    for (int l = 0; l < LB_CPU_LEVEL_COUNT; l++)
        rates.read_bytes_s[l] =
            fmin(threads * one->read_bytes_s[l], next ? next->read_bytes_s[l] : INFINITY);
    /* The least latency of any number of threads. */
    rates.barrier_ns = ceilings->count > 1 ? ceilings->rates[1].barrier_ns : 0;
    return rates;
}

/* How a step of a layer and direction is divided among the threads of a group. */
struct division {
    double bytes; /* of the recurrent weights that one thread reads */
    int threads;  /* that have work */
    int parts;    /* different ones that they read: 1 where all threads read the same weights */
    bool barrier;
};

/* The time to read, per step, the part of a thread's weights that each level has to deliver because
 * the inner levels cannot hold it; the levels deliver at the same time. The third level holds, and
 * memory delivers, weights that several threads read only once. */
static double weights_ns(const struct lb_cpu_ceilings *ceilings, const struct lb_cpu_rates *rates,
                         const struct division *division, enum lb_cpu_level *residency)
{
    double held = 0, longest = 0;
    *residency = LB_CPU_L1;
    for (int level = LB_CPU_L2; level < LB_CPU_LEVEL_COUNT; level++) {
        int inner = level - 1;
        /* Caches of a core serve one thread, the third level all of them. */
        double size = ceilings->cache_bytes[inner];
        held += inner == LB_CPU_L3 ? size / division->parts : size;
        double beyond = division->bytes - held;
        if (!(beyond > 0)) /* it fits, or a size is not known */
            break;
        *residency = (enum lb_cpu_level)level;
        int readers = level == LB_CPU_MEMORY ? division->parts : division->threads;
        double rate = rates->read_bytes_s[level] / readers;
        if (isfinite(rate))
            longest = fmax(longest, beyond / rate * 1e9);
    }
    return longest;
}

/* One step of one layer and direction, by a group of threads, divided in the better of two ways. */
static void best_step(const struct lb_cpu_ceilings *ceilings, const struct lb_problem *p,
                      int threads, double rows, struct lb_cpu_lower_bound *bound)
{
    double gates = 4 * (double)p->hidden, h_size = (double)lb_h_size(p), bytes = gates * h_size;
    bytes *= (double)lb_dtype_size(p->dtype);
    int with_rows = threads < p->batch ? threads : (int)p->batch;
    const struct division ways[] = {{bytes / threads, threads, threads, threads > 1},
                                    {bytes, with_rows, 1, false}};
    bound->step_ns = INFINITY;
    for (int i = 0; i < 2; i++) {
        enum lb_cpu_level residency;
        struct lb_cpu_rates rates = lb_cpu_rates_of(ceilings, ways[i].threads);
        double gemm = 2 * rows * gates * h_size / rates.flops_s[p->dtype] * 1e9;
        double weights = weights_ns(ceilings, &rates, &ways[i], &residency);
        double barrier = ways[i].barrier && isfinite(rates.barrier_ns) ? rates.barrier_ns : 0;
        double step = fmax(gemm, weights) + barrier;
        if (!(step < bound->step_ns))
            continue;
        bound->step_ns = step;
        bound->gemm_ns = gemm;
        bound->weights_ns = weights;
        bound->barrier_ns = barrier;
        bound->residency = residency;
    }
}

void lb_cpu_lower_bound_of(const struct lb_cpu_ceilings *ceilings, const struct lb_problem *problem,
                           int threads, bool cold, int64_t row_steps,
                           struct lb_cpu_lower_bound *bound)
{
    const struct lb_problem *p = problem;
    struct lb_cpu_rates rates = lb_cpu_rates_of(ceilings, threads);
    double T = (double)p->seq_len, B = (double)p->batch, chains = (double)lb_layer_dir_count(p);
    double passes = p->pass == LB_TRAIN ? 2 : 1, part = 1;
    if (p->ragged)
        part = (row_steps > 0 ? (double)row_steps : T + B - 1) / (T * B);
    double held = 0, bytes = part * lb_problem_bytes(p);
    for (int level = LB_CPU_L2; level <= LB_CPU_L3; level++)
        held += ceilings->cache_bytes[level] * (level == LB_CPU_L3 ? 1 : threads);
    *bound = (struct lb_cpu_lower_bound){.chain_ns = INFINITY};
    bound->all_gemms_ns = part * lb_problem_flops(p) / rates.flops_s[p->dtype] * 1e9;
    double moved = cold ? bytes : bytes - held;
    if (moved > 0 && isfinite(rates.read_bytes_s[LB_CPU_MEMORY]))
        bound->memory_ns = moved / rates.read_bytes_s[LB_CPU_MEMORY] * 1e9;
    for (int groups = 1; groups <= threads && groups <= chains; groups++) {
        struct lb_cpu_lower_bound try = {0};
        int size =
            (threads + groups - 1) / groups; /* optimistic: all groups are of the largest size */
        best_step(ceilings, p, size, part * B, &try);
        try.chain_ns = passes * T * fmax(chains / groups, 1) * try.step_ns;
        if (try.chain_ns < bound->chain_ns) {
            try.all_gemms_ns = bound->all_gemms_ns;
            try.memory_ns = bound->memory_ns;
            *bound = try;
        }
    }
    bound->total_ns = isnan(bound->all_gemms_ns)
                          ? (double)NAN
                          : fmax(bound->all_gemms_ns, fmax(bound->chain_ns, bound->memory_ns));
}
