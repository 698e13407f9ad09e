/* What no case can be faster than: a lower bound of times, and the highest rate. */
#include "measure/case_lower_bound.h"

#include <math.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "base/clock.h"
#include "device/ceilings.h"
#include "device/device.h"
#include "device/nvml.h"
#include "host/cpu_affinity.h"
#include "host/cpu_ceilings.h"

enum lb_status lb_case_machine(const struct lb_device_info *device, struct lb_machine *machine,
                               struct lb_error *err)
{
    struct lb_gpu_state state;
    struct lb_ceilings ceilings;
    enum lb_status st = lb_machine_of(device, machine, err);
    if (st != LB_OK || !device->uuid[0])
        return st;
    if (lb_nvml_read(device->uuid, &state) && state.sm_max_mhz > 0)
        machine->clock_max_hz = state.sm_max_mhz * 1e6;
    if (lb_ceilings_load(device->uuid, &ceilings))
        lb_machine_measured(machine, device, &ceilings);
    return LB_OK;
}

/* The lower bound by measured rates alone, in ns; NaN for ragged rows, which it does not know. */
static double measured_lower_bound(const struct lb_ceilings *ceilings,
                                   const struct lb_device_info *device, const struct lb_case *c)
{
    const struct lb_problem *p = &c->problem;
    if (p->ragged)
        return (double)NAN;
    if (c->cache == LB_COLD || lb_problem_bytes(p) > device->l2_bytes)
        return lb_ceilings_lower_bound_ns(ceilings, p);
    return lb_problem_flops(p) / ceilings->gemm_flops_s[p->dtype][p->math] * 1e9;
}

void lb_case_lower_bound(struct lb_row *row, const int32_t *lengths)
{
    struct lb_machine machine;
    struct lb_ceilings ceilings;
    struct lb_lower_bound bound;
    const struct lb_problem *problem = &row->c.problem;
    struct lb_lower_bound_run run = {.cold = row->c.cache == LB_COLD};
    const struct lb_device_info *device = lb_device_known(NULL);
    if (!device)
        return;
    for (int64_t b = 0; lengths && b < problem->batch; b++)
        run.row_steps += lengths[b];
    if (lb_case_machine(device, &machine, NULL) == LB_OK) {
        lb_lower_bound_of(&machine, device, problem, &run, &bound);
        row->floor_ns = bound.total_ns;
        row->chain_steps = bound.steps;
        row->chain_ns = bound.steps * bound.step_ns;
    } else if (lb_ceilings_load(device->uuid, &ceilings)) {
        row->floor_ns = measured_lower_bound(&ceilings, device, &row->c);
    }
}

void lb_case_cpu_lower_bound(struct lb_row *row, const int32_t *lengths)
{
    struct lb_cpu_ceilings ceilings;
    struct lb_cpu_lower_bound bound;
    int64_t row_steps = 0;
    for (int64_t b = 0; lengths && b < row->c.problem.batch; b++)
        row_steps += lengths[b];
    if (!lb_cpu_ceilings_load(&ceilings))
        return;
    lb_cpu_lower_bound_of(&ceilings, &row->c.problem, row->c.threads, row->c.cache == LB_COLD,
                          row_steps, &bound);
    row->floor_ns = bound.total_ns;
}

static const double margin = 1.3; /* clocks vary, and a busy machine shows less than it can do */

#ifdef __x86_64__

/* Independent sums: more than the latency of a multiply-add times two per clock, and few enough for
 * 16 registers. */
enum { SUMS = 12, STEPS = 4000, BURSTS = 400 };

/* A burst of SUMS * STEPS multiply-adds on vectors; returns a number that depends on all of them.
 */
#define BURST(name, isa, vector, real, set1, multiply_add)                      \
    __attribute__((target(isa))) static real name(real seed)                    \
    {                                                                           \
        vector sums[SUMS], factor = set1((real)0.999), term = set1((real)1e-3); \
        for (int k = 0; k < SUMS; k++)                                          \
            sums[k] = set1(seed + (real)k);                                     \
        for (int i = 0; i < STEPS; i++) {                                       \
            _Pragma("GCC unroll 12") for (int k = 0; k < SUMS; k++) sums[k] =   \
                multiply_add(sums[k], factor, term);                            \
        }                                                                       \
        vector all = sums[0];                                                   \
        for (int k = 1; k < SUMS; k++)                                          \
            all = all + sums[k];                                                \
        return all[0];                                                          \
    }

#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))

BURST(burst_f32_avx512, "avx512f", __m512, float, _mm512_set1_ps, _mm512_fmadd_ps)
BURST(burst_f64_avx512, "avx512f", __m512d, double, _mm512_set1_pd, _mm512_fmadd_pd)
BURST(burst_f32_fma, "avx2,fma", __m256, float, _mm256_set1_ps, _mm256_fmadd_ps)
BURST(burst_f64_fma, "avx2,fma", __m256d, double, _mm256_set1_pd, _mm256_fmadd_pd)
BURST(burst_f32_sse, "sse2", __m128, float, _mm_set1_ps, MULTIPLY_ADD)
BURST(burst_f64_sse, "sse2", __m128d, double, _mm_set1_pd, MULTIPLY_ADD)

/* What this CPU has, the widest first. */
static const struct kernel {
    float (*f32)(float);
    double (*f64)(double);
    int bytes; /* of a vector */
} kernels[] = {
    {burst_f32_avx512, burst_f64_avx512, 64},
    {burst_f32_fma, burst_f64_fma, 32},
    {burst_f32_sse, burst_f64_sse, 16},
};

static const struct kernel *widest(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return &kernels[0];
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kernels[1]
                                                                           : &kernels[2];
}

/* How many times as many flops as in f32 instructions on 16-bit operands can do: matrix units do 16
 * times as many, vectors twice. Twice that is assumed, for CPUs to come. */
static double half_factor(void)
{
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    bool matrices = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && edx & (AMX_BF16 | AMX_TILE);
    return matrices ? 32 : 4;
}

/* The best rate seen, of f32 and of f64. */
static double best[2];

/* lb_cpu_visit: measures on the current CPU. *user: whether in double. */
static void measure_here(void *user, bool last)
{
    const bool in_double = *(const bool *)user;
    const struct kernel *kernel = widest();
    volatile double sink = 0;
    (void)last;
    for (int i = 0; i < BURSTS; i++) {
        double start = lb_now_ns();
        sink += in_double ? kernel->f64((double)i) : (double)kernel->f32((float)i);
        double ns = lb_now_ns() - start;
        double elements = kernel->bytes / (in_double ? 8.0 : 4.0);
        best[in_double] = fmax(best[in_double], 2 * elements * SUMS * STEPS / ns * 1e9);
    }
}

double lb_cpu_peak_flops_s(const struct lb_problem *problem, bool again)
{
    bool in_double = problem->dtype == LB_F64;
    bool halves = problem->dtype == LB_F16 || problem->dtype == LB_BF16 || problem->math != LB_IEEE;
    if (again)
        lb_visit_cpus(measure_here, &in_double);
    else if (best[in_double] == 0)
        measure_here(&in_double, true);
    return margin * best[in_double] * (halves ? half_factor() : 1);
}

#else

double lb_cpu_peak_flops_s(const struct lb_problem *problem, bool again)
{
    (void)problem, (void)again;
    return (double)NAN;
}

#endif

double lb_gpu_peak_flops_s(const struct lb_problem *problem)
{
    struct lb_machine machine;
    struct lb_ceilings ceilings;
    const struct lb_device_info *device = lb_device_known(NULL);
    if (!device)
        return (double)NAN;
    if (lb_case_machine(device, &machine, NULL) == LB_OK) {
        double clock = machine.flops_clock[problem->math == LB_HALF ? LB_F16 : problem->dtype];
        if (problem->math == LB_TF32)
            clock = machine.tf32_flops_clock;
        return margin * clock * device->sm_count * machine.clock_max_hz;
    }
    if (device->uuid[0] && lb_ceilings_load(device->uuid, &ceilings))
        return margin * ceilings.gemm_flops_s[problem->dtype][problem->math];
    return (double)NAN;
}
