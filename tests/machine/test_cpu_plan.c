/* The division of work among threads: its cost by hand on a machine of round figures, and its
 * choices on CPUs that are described. */
#include "impls/common/simd_kernels.h"
#include "machine/cpu_plan.h"
#include "machine/lower_bound.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

/* A machine and a problem, with their plan. */
struct planned {
    struct lb_cpu_topology topology;
    struct lb_machine machine;
    struct lb_case c;
    struct lb_cpu_task task;
    struct lb_cpu_plan plan;
};

static struct planned *prepared(const struct lb_machine *machine, const char *text)
{
    static struct planned planned;
    struct planned *p = &planned;
    p->c = trial_case(text);
    p->machine = *machine;
    lb_machine_topology(machine, &p->topology);
    enum lb_dtype dtype = p->c.problem.dtype;
    p->task = (struct lb_cpu_task){.problem = &p->c.problem,
                                   .topology = &p->topology,
                                   .machine = &p->machine,
                                   .threads = p->c.threads,
                                   .simd_width = lb_cpu_simd_width(p->machine.units[dtype], dtype)};
    return p;
}

/* The best plan of a case such as "T9_B8_H64/f32/infer/th8". */
static struct planned *best(const struct lb_machine *machine, const char *text)
{
    struct planned *p = prepared(machine, text);
    lb_cpu_plan_of(&p->task, &p->plan);
    return p;
}

static void near(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-6 * fabs(expected)))
        fail_msg("%g, expected %g", actual, expected);
}

/* 8 cores, 4 per domain, at 1 GHz: 32 flops per clock in f32; 100 and 50 bytes per clock from L1
 * and L2, 10 from L3; 20 GB/s of memory, 5 per core. */
static struct lb_machine round_figures(void)
{
    struct lb_machine m = trial_machine("epyc9654");
    m.cores = 8;
    m.threads_per_core = 1;
    m.domains = 2;
    m.cluster = 4;
    m.clock_hz = m.clock_max_hz = 1e9;
    memcpy(m.bytes, (double[LB_LEVEL_COUNT]){32e3, 1e6, 8e6, 0}, sizeof(m.bytes));
    memcpy(m.bytes_clock, (double[LB_LEVEL_COUNT]){100, 50, 10, 5}, sizeof(m.bytes_clock));
    m.bytes_s[LB_MEMORY] = 20e9;
    m.peer_clocks = 10;
    m.far_clocks = 100;
    m.remote_clocks = 1000;
    return m;
}

/* H 1024 has 64 panels of 16 units; w_hh has 4 * 1024 * 1024 weights of 4 bytes. */
TEST(costs_are_those_of_a_calculation_by_hand)
{
    struct lb_machine m = round_figures();
    struct planned *p = prepared(&m, "T10_B12_I1024_H1024/f32/train/th8");
    const double weights = 4.0 * 1024 * 1024 * 4;
    /* Two teams of four threads: 6 rows, a quarter of the units, in one domain. */
    lb_cpu_plan_with(&p->task, 2, 4, &p->plan);
    const struct lb_cpu_step_cost *f = &p->plan.forward, *b = &p->plan.backward;
    assert_int_equal(p->plan.team_domains, 1);
    near(f->gemm_ns, 2 * 2.0 * 6 * 1024 * 1024 / 32); /* w_ih and w_hh alike */
    /* A team of several needs w_ih in each step too. L1 and half of L2 hold some; of what a
     * team's third-level cache should hold, 32 MiB, three quarters of 8 MB fit. */
    double beyond = 2 * weights / 4 - 32e3 - 0.5e6;
    near(f->weights_ns, fmax(beyond / 10, beyond * (1 - 0.75 * 8e6 / (2 * weights)) / (20.0 / 8)));
    assert_int_equal(p->plan.residency, LB_MEMORY);
    near(f->cell_ns, 150.0 * 6 * 256 / 32);
    near(f->exchange_ns, 6.0 * 1024 * 4 * 0.75 / 10);
    near(f->barrier_ns, 4 * 10 + 10);
    assert_true(f->operands_ns == 0);
    near(f->total_ns, f->weights_ns + f->gemm_ns / 4 + f->cell_ns + f->exchange_ns + f->barrier_ns);
    near(b->gemm_ns, 2.0 * 6 * 4096 * 256 / 32); /* 16 groups of 4 panels, 4 per thread */
    near(b->exchange_ns, 4 * f->exchange_ns);
    assert_int_equal(p->plan.group_panels, 4);
    /* One team of eight is in both domains. */
    lb_cpu_plan_with(&p->task, 1, 8, &p->plan);
    assert_int_equal(p->plan.team_domains, 2);
    near(f->barrier_ns, 4 * 10 + 2 * 100 + 100);
    near(f->exchange_ns, 12.0 * 1024 * 4 * 7 / 8 / (20.0 / 8));
    /* Teams of one thread wait for nobody. */
    lb_cpu_plan_with(&p->task, 2, 1, &p->plan);
    assert_true(f->barrier_ns == 0 && f->exchange_ns == 0);
}

TEST(small_groups_of_panels_serve_threads_that_had_no_work)
{
    struct lb_machine m = round_figures();
    struct planned *p = prepared(&m, "T10_B4_H128/f32/train/th8");
    lb_cpu_plan_with(&p->task, 1, 8, &p->plan); /* 8 panels: two groups of four */
    assert_int_equal(p->plan.group_panels, 1);
    lb_cpu_plan_with(&p->task, 1, 2, &p->plan);
    assert_int_equal(p->plan.group_panels, 4);
}

/* The machine on which 1 and 2 threads were measured: there the plan divides as the measurements in
 * impls/cpu_simd/PERFORMANCE.md say. */
static struct lb_machine measured(void)
{
    struct lb_machine m = trial_machine("ryzen9950x");
    m.cores = 2;
    m.domains = m.threads_per_core = 1;
    m.bytes_clock[LB_CACHE] = 31;
    m.bytes_clock[LB_MEMORY] *= 4.3 / 3.85; /* as much per second */
    m.bytes_s[LB_MEMORY] = 81e9;
    m.peer_clocks = 91 * 3.85;
    m.clock_hz = m.clock_max_hz = 3.85e9;
    return m;
}

/* Large batches divide rows, single rows hidden units, and too little work stays on fewer threads.
 */
TEST(plans_do_not_change_unnoticed)
{
    static const struct {
        const char *machine, *problem; /* NULL: the machine that was measured */
        int teams, size;
    } cases[] = {
        {"epyc9654", "T25_B16_H512/f32/infer/th8", 1, 8},
        {"epyc9654", "T25_B16_H512/f32/infer/th16", 2, 8},
        {"epyc9654", "T25_B16_H512/f32/infer/th64", 2, 32},
        {"epyc9654", "T100_B64_H1024/bf16/train/th8", 2, 4},
        {"epyc9654", "T100_B64_H1024/bf16/train/th16", 2, 8},
        {"epyc9654", "T100_B64_H1024/bf16/train/th64", 8, 8},
        {"grace", "T100_B64_H1024/bf16/train/th8", 2, 4},
        {"grace", "T100_B64_H1024/bf16/train/th16", 2, 8},
        {"grace", "T100_B64_H1024/bf16/train/th64", 4, 16},
        {"epyc9654", "T50_B1_H1024/f32/infer/th8", 1, 8},
        {"epyc9654", "T50_B1_H1024/f32/infer/th16", 1, 16},
        {"epyc9654", "T50_B1_H1024/f32/infer/th64", 1, 64},
        {"epyc9654", "T50_B1_H2048/f32/infer/th8", 1, 8},
        {"epyc9654", "T50_B512_H128/f32/infer/th64", 64, 1},
        {"epyc9654", "T50_B1_H256/f32/infer/th64", 1, 16},
        {"epyc9654", "T50_B1_H16/f32/infer/th8", 1, 1},
        {NULL, "T20_B1_I100_H128/f32/infer/th2", 1, 2},
        {NULL, "T50_B32_I16_H64/f32/infer/th2", 2, 1},
        {NULL, "T128_B8_I256_H256/f32/train/th2", 1, 2},
        {NULL, "T25_B16_I512_H512/f32/infer/th2", 1, 2},
        {NULL, "T50_B1_I1024_H1024/f32/infer/th2", 1, 2},
        {NULL, "T300_B64_I512_H256/f32/train/th2", 1, 2},
        {NULL, "T100_B64_I512_H512/bf16/infer/th2", 1, 2},
        {NULL, "T25_B32_I1760_H1760/bf16/train/th2", 1, 2},
        {NULL, "T50_B32_I16_H64/bf16/train/th2", 2, 1},
        {NULL, "T50_B1_H16/f32/infer/th2", 1, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_machine m = cases[i].machine ? trial_machine(cases[i].machine) : measured();
        struct planned *p = best(&m, cases[i].problem);
        if (p->plan.teams != cases[i].teams || p->plan.team_size != cases[i].size)
            fail_msg("%s on %s: %d teams of %d", cases[i].problem, m.label, p->plan.teams,
                     p->plan.team_size);
    }
}

/* A machine that is given more threads never gets slower by the model, because it need not use
 * them. The plan counts what the lower bound counts, and more. */
TEST(more_threads_are_never_slower_and_no_plan_is_below_the_lower_bound)
{
    static const char *const machines[] = {"epyc9654",  "epyc9654x2", "xeon8480",  "xeon8480x2",
                                           "graviton4", "grace",      "ryzen9950x"};
    static const char *const problems[] = {
        "T9_B1_H1024/f32/infer",       "T9_B64_H512/bf16/train", "T9_B8_H100/f16/forward",
        "T9_B8_H100_L2_D2/f16/train",  "T9_B200_H64/f64/train",  "T9_B200_H64/f64/backward",
        "T300_B64_I512_H256/f32/infer"};
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
        for (size_t k = 0; k < sizeof(problems) / sizeof(problems[0]); k++) {
            struct lb_machine m = trial_machine(machines[i]);
            double before = INFINITY;
            for (int threads = 1; threads <= m.cores; threads *= 2) {
                char text[128];
                struct lb_lower_bound bound;
                const struct lb_lower_bound_run run = {.threads = threads};
                snprintf(text, sizeof(text), "%s/th%d", problems[k], threads);
                struct planned *p = best(&m, text);
                lb_lower_bound_of(&m, &p->c.problem, &run, &bound);
                if (!(p->plan.total_ns >= bound.total_ns && p->plan.total_ns <= before))
                    fail_msg("%s on %s: %g; the bound is %g, fewer threads take %g", text,
                             machines[i], p->plan.total_ns, bound.total_ns, before);
                assert_true(p->plan.threads == p->plan.teams * p->plan.team_size);
                assert_true(p->plan.threads <= threads);
                before = p->plan.total_ns;
            }
        }
}

/* Every row and panel belongs to one thread, and no thread of a plan is without work. */
TEST(every_row_and_panel_has_one_owner)
{
    struct lb_machine m = trial_machine("epyc9654x2");
    struct planned *p = best(&m, "T9_B100_H1000/f32/train/th192");
    const size_t shares[][2] = {{100, (size_t)p->plan.teams}, {63, (size_t)p->plan.team_size}};
    for (int i = 0; i < 2; i++) {
        size_t next = 0;
        assert_true(shares[i][1] > 1);
        for (size_t part = 0; part < shares[i][1]; part++) {
            struct lb_cpu_range range = lb_cpu_share(shares[i][0], shares[i][1], part);
            assert_true(range.from == next && range.to > range.from);
            next = range.to;
        }
        assert_int_equal(next, shares[i][0]);
    }
}

TEST(weights_are_in_the_node_of_their_threads)
{
    struct lb_machine m = trial_machine("epyc9654x2");
    struct planned *p = prepared(&m, "T9_B128_H1024/f32/infer/th192");
    lb_cpu_plan_with(&p->task, 24, 8, &p->plan);
    assert_true(p->plan.copies == 2 && p->plan.team_domains == 1);
    for (size_t thread = 0; thread < 192; thread++)
        assert_int_equal(lb_cpu_plan_copy(&p->plan, &p->topology, thread), thread >= 96);
    lb_cpu_plan_with(&p->task, 1, 192, &p->plan); /* the team is in both nodes */
    assert_int_equal(p->plan.copies, 1);
    assert_int_equal(lb_cpu_plan_copy(&p->plan, &p->topology, 191), 0);
    lb_cpu_plan_with(&p->task, 2, 8, &p->plan); /* both teams are in the first node */
    assert_int_equal(p->plan.copies, 1);
}

TEST(hyper_threads_come_after_all_cores)
{
    struct lb_machine m = trial_machine("epyc9654");
    double cores_alone = best(&m, "T9_B512_H64/f32/infer/th96")->plan.total_ns;
    struct planned *p = best(&m, "T9_B512_H64/f32/infer/th192");
    assert_int_equal(p->topology.cores, 96);
    for (size_t i = 0; i < 192; i++)
        assert_int_equal(p->topology.places[i].sibling, i / 96);
    assert_true(p->plan.total_ns >= 0.99 * cores_alone); /* the second threads add no rate */
}

TEST(tiles_share_weight_gradients_evenly)
{
    static const struct {
        size_t panels, blocks;
        int threads, panel_parts, column_parts;
    } cases[] = {
        {8, 20, 2, 2, 1},
        {8, 20, 64, 8, 8},
        {3, 18, 2, 1, 2}, /* 1.5 panels are not whole, but 9 blocks of columns are */
        {1, 1, 64, 1, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_cpu_tiling t =
            lb_cpu_tiling_of(cases[i].panels, cases[i].blocks, cases[i].threads);
        assert_int_equal(t.panel_parts, cases[i].panel_parts);
        assert_int_equal(t.column_parts, cases[i].column_parts);
    }
}

/* The width of panels that a plan counts with is that of the kernels that run. */
TEST(widths_are_those_of_the_kernels)
{
    for (int d = 0; d < LB_DTYPE_COUNT; d++) {
        const struct lb_simd_kernels *list[LB_CPU_UNIT_COUNT];
        enum lb_cpu_unit units[LB_CPU_UNIT_COUNT];
        enum lb_dtype dtype = (enum lb_dtype)d;
        size_t count = lb_simd_kernels_all(dtype, list);
        assert_int_equal(count, lb_cpu_units_for(dtype, units));
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(lb_cpu_simd_width(units[i], dtype), list[i]->simd_width);
            for (size_t j = 0; j < i; j++)
                assert_ptr_not_equal(list[j], list[i]);
        }
    }
}

/* Without a measurement a plan is made with the figures of a usual CPU, and none is unknown. */
TEST(this_machine_is_planned_for_as_a_usual_cpu)
{
    struct lb_cpu_topology topology;
    struct lb_machine m;
    lb_cpu_topology_make(4, 4, 2, 1, 32e6, &topology);
    lb_machine_here(&topology, true, &m);
    assert_true(m.cores == 4 && m.domains == 2 && m.cluster == 2 && m.bytes[LB_CACHE] == 32e6);
    near(m.peer_clocks / m.clock_hz, 19e-9);
    for (int d = 0; d < LB_DTYPE_COUNT; d++)
        assert_true(m.flops_clock[d] > 0 && m.units[d] == lb_cpu_best_unit((enum lb_dtype)d));
    for (int level = 0; level < LB_MEMORY; level++)
        assert_true(m.bytes[level] > 0 && m.bytes_clock[level] > 0);
    lb_machine_here(&topology, false, &m);
    assert_true(m.flops_clock[LB_F32] == 0 && m.peer_clocks == 0 && m.bytes_clock[LB_OWN] == 0);
}
