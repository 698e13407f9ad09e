/* The model of the lower bound: its values for known sizes, and how it grows with them. */
#include "machine/ceilings.h"
#include "machine/lower_bound.h"
#include "measure/case_lower_bound.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

/* row_steps: of ragged rows, the sum of their lengths; 0: not known. */
static struct lb_lower_bound bound_of(const struct lb_machine *machine, const char *text,
                                      double row_steps)
{
    struct lb_case c = trial_case(text);
    struct lb_lower_bound bound;
    const struct lb_lower_bound_run run = {.cold = c.cache == LB_COLD,
                                           .row_steps = row_steps,
                                           .threads = machine->cpu ? c.threads : 0};
    lb_lower_bound_of(machine, &c.problem, &run, &bound);
    return bound;
}

static struct lb_lower_bound lower_bound_of_rows(const char *model, const char *text,
                                                 double row_steps)
{
    struct lb_machine machine = trial_machine(model);
    struct lb_lower_bound bound = bound_of(&machine, text, row_steps);
    assert_true(bound.total_ns >= bound.memory_ns && isfinite(bound.total_ns));
    assert_true(bound.step_ns > 0);
    return bound;
}

static struct lb_lower_bound lower_bound_on(const char *model, const char *text)
{
    return lower_bound_of_rows(model, text, 0);
}

static void close_to(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * wanted))
        fail_msg("%.12g is not %.12g", value, wanted);
}

TEST(known_sizes_have_the_bound_that_was_computed_by_hand)
{
    /* 8 clusters of 16 SMs with one row each: 233 clocks to a peer, a tile of 8 rows at 4096 flops
     * per clock (longer than the 960 bytes of the row's h take), 120 for the cell; 1.98 GHz. */
    close_to(lower_bound_on("h100", "x/T1024_B8_H512/f16/infer").step_ns,
             (233 + 8.0 * 512 * 512 * 8 / 16 / 4096 + 120) / 1.98);
    /* 66 SMs for 8 rows, or 132 for 16; cuDNN takes 1960 ns per step here. */
    double step = lower_bound_on("h100", "x/T1024_B16_I768_H768/f16/infer").step_ns;
    assert_true(step > 730 / 1.98 && step < 700);
    /* f32 without tensor cores: 1 row is an eighth of the work of 8. */
    struct lb_lower_bound one = lower_bound_on("h100", "x/T9_B1_H512/f32/infer");
    close_to(one.gemm_ns, 8.0 * 512 * 512 / one.cores / 256 / 1.98);
    /* A T4's tensor cores do not know bf16, and f16 takes as long for one row as for 8. */
    one = lower_bound_on("t4", "x/T9_B1_H512/bf16/infer");
    close_to(one.gemm_ns, 8.0 * 512 * 512 / one.cores / 128 / 1.59);
    one = lower_bound_on("t4", "x/T9_B1_H512/f16/infer");
    close_to(one.gemm_ns, 8 * 8.0 * 512 * 512 / one.cores / 1024 / 1.59);
    /* Copies share out the rows: three on 44 SMs take 1.5 us for 22 rows each, without overlap. */
    struct lb_lower_bound f = lower_bound_on("h100", "x/T1024_B64_H1024/f16/infer");
    assert_true(f.cores <= 66 && f.step_ns < 1500);
    assert_true(f.step_ns >= f.gemm_ns && f.step_ns >= f.exchange_ns);
}

TEST(weights_stay_where_they_fit)
{
    static const struct {
        const char *machine, *problem;
        enum lb_level level;
    } cases[] = {
        {"h100", "x/T9_B8_H256/f16/infer", LB_INNER},
        {"h100", "x/T9_B8_H2048/f16/infer", LB_OWN},
        {"h100", "x/T9_B8_H3072/f16/infer", LB_CACHE},
        {"h100", "x/T9_B8_H4096/f64/infer", LB_MEMORY},
        {"epyc9654", "x/T9_B1_H32/f32/infer", LB_INNER},
        {"epyc9654", "x/T9_B1_H128/f32/infer", LB_OWN},
        {"epyc9654", "x/T9_B1_H512/f32/infer", LB_CACHE},
        {"epyc9654", "x/T9_B1_H2048/f32/infer", LB_MEMORY},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (lower_bound_on(cases[i].machine, cases[i].problem).residency != cases[i].level)
            fail_msg("%s on %s", cases[i].problem, cases[i].machine);
}

/* Their weights could be in any cache: they need not come from memory. */
TEST(caches_whose_size_is_not_known_make_no_bound_higher)
{
    static const char problem[] = "x/T9_B1_H512/f32/infer";
    for (int level = LB_INNER; level <= LB_CACHE; level++) {
        struct lb_machine machine = trial_machine("grace");
        double known = bound_of(&machine, problem, 0).total_ns;
        machine.bytes[level] = 0;
        assert_true(bound_of(&machine, problem, 0).total_ns <= known);
        machine.bytes[LB_INNER] = machine.bytes[LB_OWN] = machine.bytes[LB_CACHE] = 0;
        assert_true(bound_of(&machine, problem, 0).total_ns <= known);
    }
}

/* Weights of 128 MiB in int8 and 512 MiB in f32, which memory delivers. */
TEST(int8_reads_a_byte_per_weight)
{
    double f32 = lower_bound_on("xeon8480", "x/T1_B1_H4096/f32/infer/cold").memory_ns;
    double int8 = lower_bound_on("xeon8480", "x/T1_B1_H4096/int8/infer/cold").memory_ns;
    if (!(int8 > 0.24 * f32 && int8 < 0.26 * f32))
        fail_msg("%.3g of %.3g", int8, f32);
}

TEST(the_bound_is_its_longest_part)
{
    struct lb_lower_bound f = lower_bound_on("h100", "x/T100_B16_I64_H512/f16/infer");
    assert_true(f.total_ns == 100 * f.step_ns);
    assert_true(f.step_ns <= f.wait_ns + f.exchange_ns + f.weights_ns + f.gemm_ns + f.cell_ns);
    /* 2 T B 4H (I + H) flops at 132 SMs x 4096 flops x 1.98 GHz. */
    close_to(f.all_gemms_ns, 2.0 * 100 * 16 * 2048 * (64 + 512) / (132 * 4096 * 1.98));
    f = lower_bound_on("h100", "x/T100_B4096_H512/f16/infer");
    assert_true(f.total_ns == f.all_gemms_ns);
    f = lower_bound_on("h100", "x/T1_B1_I16384_H4096/f32/infer");
    assert_true(f.memory_ns > 0.5 * f.total_ns);
}

TEST(hot_caches_are_read_at_their_own_rate)
{
    static const struct {
        const char *problem;
        double elements, kept_bytes, bytes_s;
    } cases[] = {
        /* x, y and four states of 1024 rows, w_ih, w_hh and two biases, 2 bytes each */
        {"x/T1_B1024_H256/f16/infer", 6 * 1024 * 256 + 4 * 256 * (256 + 256 + 2), 0, 5.5e12},
        /* With cold caches everything that is read comes from memory: x, two states, the weights.
         */
        {"x/T1_B1024_H256/f16/infer/cold", 3 * 1024 * 256 + 4 * 256 * (256 + 256 + 2), 0, 3.35e12},
        /* All but the 50 MiB that stay in the cache goes through memory. */
        {"x/T1_B65536_H1024/f16/infer", 6.0 * 65536 * 1024 + 4 * 1024 * (1024 + 1024 + 2), 50 << 20,
         3.35e12},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        close_to(lower_bound_on("h100", cases[i].problem).memory_ns,
                 (2 * cases[i].elements - cases[i].kept_bytes) / cases[i].bytes_s * 1e9);
}

TEST(ragged_rows_count_with_their_lengths)
{
    static const char *const ragged = "x/T100_B4096_H512/f16/train/ragged";
    struct lb_lower_bound full = lower_bound_on("h100", "x/T100_B4096_H512/f16/train");
    struct lb_lower_bound half = lower_bound_of_rows("h100", ragged, 100 * 4096 / 2);
    struct lb_lower_bound least = lower_bound_on("h100", ragged);
    close_to(half.all_gemms_ns, full.all_gemms_ns / 2);
    close_to(least.all_gemms_ns, full.all_gemms_ns * (100 + 4095) / (100 * 4096));
    assert_true(least.total_ns < half.total_ns && half.total_ns < full.total_ns);
    assert_true(least.memory_ns < half.memory_ns && half.memory_ns < full.memory_ns);
    assert_true(lower_bound_of_rows("h100", ragged, 100 * 4096).total_ns <= full.total_ns);
    assert_true(least.steps == full.steps); /* one row is full */
}

TEST(more_work_never_takes_less)
{
    static const char *const growing[][2] = {
        {"x/T100_B8_H512/f16/infer", "x/T200_B8_H512/f16/infer"},
        {"x/T100_B8_H512/f16/infer", "x/T100_B64_H512/f16/infer"},
        {"x/T100_B8_H512/f16/infer", "x/T100_B8_H768/f16/infer"},
        {"x/T100_B8_I64_H512/f16/infer", "x/T100_B8_I4096_H512/f16/infer"},
        {"x/T100_B8_H512/f16/infer", "x/T100_B8_H512/f16/train"},
        {"x/T100_B8_H512/f16/infer", "x/T100_B8_H512/f32/infer"},
        {"x/T100_B8_H512/f32/infer/tf32", "x/T100_B8_H512/f32/infer"},
        {"x/T100_B8_H512/f16/infer", "x/T100_B8_H512_L3/f16/infer"},
        {"x/T100_B8_H512_L2/f16/infer", "x/T100_B8_H512_L2_D2/f16/infer"},
        {"x/T100_B9_H512/f16/infer/ragged", "x/T100_B9_H512/f16/infer"},
        {"x/T1_B64_H4096/f16/infer", "x/T1_B64_H4096/f16/infer/cold"},
    };
    for (size_t i = 0; i < sizeof(growing) / sizeof(growing[0]); i++) {
        double less = lower_bound_on("h100", growing[i][0]).total_ns;
        double more = lower_bound_on("h100", growing[i][1]).total_ns;
        if (!(more >= less))
            fail_msg("%s: %g ns, %s: %g ns", growing[i][0], less, growing[i][1], more);
    }
}

/* ---- CPUs ----------------------------------------------------------------------------------- */

/* 4 cores of 100 GFLOP/s in f32, 1 MB of L2, and 8 MB of L3 together. */
static struct lb_machine round_cpu(void)
{
    return (struct lb_machine){.cpu = true,
                               .cores = 4,
                               .cluster = 4,
                               .domains = 1,
                               .nodes = 1,
                               .threads_per_core = 1,
                               .clock_hz = 1e9,
                               .clock_max_hz = 1e9,
                               .flops_clock = {[LB_F32] = 100},
                               .bytes = {32e3, 1e6, 8e6, 0},
                               .bytes_clock = {400, 200, 50, 0},
                               .bytes_s = {[LB_MEMORY] = 20e9},
                               .peer_clocks = 500,
                               .far_clocks = 500};
}

TEST(cpus_are_bound_by_gemms_by_weights_and_by_waiting)
{
    const struct lb_machine m = round_cpu();
    const double weights = 4.0 * 1024 * 1024 * 4;
    struct lb_lower_bound b = bound_of(&m, "T50_B64_I64_H64/f32/infer", 0);
    /* The vector unit also computes 100 flops per cell. */
    const double cells = 100.0 * 50 * 64 * 64 / 100;
    close_to(b.all_cells_ns, cells);
    close_to(b.total_ns, 2.0 * 50 * 64 * 256 * 128 / 100 + cells);
    close_to(bound_of(&m, "T50_B64_I64_H64/f32/train", 0).total_ns, 3 * b.total_ns - 2 * cells);
    close_to(bound_of(&m, "T50_B64_I64_H64/f32/infer/act-relu", 0).all_cells_ns, 0.6 * cells);
    /* A tile unit multiplies beside it: 16 inputs and hidden units take less than their cells. */
    struct lb_machine tiles = m;
    tiles.units[LB_BF16] = LB_CPU_AMX;
    tiles.flops_clock[LB_BF16] = 1600;
    b = bound_of(&tiles, "T50_B64_I16_H16/bf16/infer", 0);
    close_to(b.total_ns, 100.0 * 50 * 64 * 16 / 100);
    b = bound_of(&tiles, "T50_B64_I1024_H1024/bf16/infer", 0);
    close_to(b.total_ns, b.all_gemms_ns);
    b = bound_of(&m, "T50_B64_I64_H64/f32/infer", 0);
    close_to(bound_of(&m, "T50_B64_I64_H64/f32/infer/th4", 0).total_ns, b.total_ns / 4);
    /* One row: L1 and L2 hold 32 kB and 1 MB of the weights, then L3 holds 8 MB. */
    b = bound_of(&m, "T100_B1_I4_H1024/f32/infer", 0);
    close_to(b.weights_ns, fmax((weights - 1.032e6 - 8e6) / 20, (weights - 1.032e6) / 50));
    close_to(b.total_ns, 100 * b.weights_ns);
    /* Two layers read theirs one after the other. */
    close_to(bound_of(&m, "T100_B1_I4_H1024_L2/f32/infer", 0).total_ns, 2 * b.total_ns);
    /* Hidden units are divided with a wait per step, rows without, and too little work not. */
    close_to(bound_of(&m, "T100_B1_I4_H512/f32/infer/th4", 0).wait_ns, 500);
    assert_true(bound_of(&m, "T100_B64_I4_H64/f32/infer/th4", 0).wait_ns == 0);
    assert_true(bound_of(&m, "T100_B1_I4_H16/f32/infer/th4", 0).wait_ns == 0);
    /* Small problems stay in the caches. */
    assert_true(bound_of(&m, "T5_B4_H64/f32/infer", 0).memory_ns == 0);
    double cold = bound_of(&m, "T5_B4_H64/f32/infer/cold", 0).memory_ns;
    close_to(cold, 4.0 * (5 * 4 * 64 + 2 * 4 * 64 + 4 * 64 * (64 + 64 + 2)) / 20);
    /* Without a measured rate there is no bound. */
    assert_true(isnan(bound_of(&m, "T5_B4_H64/bf16/infer", 0).total_ns));
}

/* ---- Rows ----------------------------------------------------------------------------------- */

static struct lb_row row_on(enum lb_memory memory, const char *text, const int32_t *lengths)
{
    struct lb_case c = trial_case(text);
    struct lb_row row = lb_row_make(&c);
    lb_case_lower_bound(memory, &row, lengths);
    return row;
}

TEST(rows_record_the_bound_of_their_device)
{
    static const char ragged[] = "x/T1000_B4_H2048/f32/infer/ragged";
    static const int32_t lengths[] = {1000, 800, 600, 1};
    struct lb_device_info device = trial_device("h100");
    struct lb_lower_bound f = lower_bound_on("h100", "x/T100_B16_H512_L3/f16/train");
    lb_device_use(NULL);
    assert_true(isnan(row_on(LB_DEVICE, "x/T100_B16_H512_L3/f16/train", NULL).floor_ns));
    lb_device_assume(&device, NULL);
    struct lb_row row = row_on(LB_DEVICE, "x/T100_B16_H512_L3/f16/train", NULL);
    assert_true(row.floor_ns == f.total_ns && row.chain_steps == 2 * 102);
    assert_true(row.chain_ns == row.chain_steps * f.step_ns && row.chain_ns <= row.floor_ns);
    row = row_on(LB_DEVICE, ragged, lengths);
    assert_true(row.floor_ns == lower_bound_of_rows("h100", ragged, 2401).total_ns);
    assert_true(row.floor_ns > lower_bound_on("h100", ragged).total_ns);
}

/* NVML's stub reports 1980 MHz for GPU-0, more than an A100's 1410. */
TEST(the_clock_is_the_highest_that_the_driver_allows)
{
    struct lb_device_info device = trial_device("a100");
    struct lb_machine machine;
    lb_case_machine(LB_DEVICE, &device, &machine);
    assert_true(machine.clock_max_hz == 1.41e9);
    strcpy(device.uuid, "GPU-0");
    lb_case_machine(LB_DEVICE, &device, &machine);
    assert_true(machine.clock_max_hz == 1.98e9);
}

/* A measurement better than the published figure lowers the bound; a worse one changes nothing. For
 * a machine that is not known, measured figures alone give the bound. */
TEST(measurements_can_only_lower_the_bound_of_a_known_machine)
{
    static const char problem[] = "x/T100_B16_H512/f16/infer";
    struct lb_device_info device = trial_device("h100");
    struct lb_ceilings c;
    strcpy(device.uuid, "GPU-measured");
    lb_device_assume(&device, NULL);
    double published = row_on(LB_DEVICE, problem, NULL).floor_ns;
    lb_ceilings_clear(&c, device.uuid, device.sm_count);
    c.all[LB_FLOPS + LB_F16] = 7e14;
    c.all[LB_PEER_NS] = c.all[LB_FAR_NS] = 900;
    lb_ceilings_assume(true, &c);
    assert_true(row_on(LB_DEVICE, problem, NULL).floor_ns == published);
    c.all[LB_PEER_NS] = c.all[LB_FAR_NS] = 50;
    lb_ceilings_assume(true, &c);
    assert_true(row_on(LB_DEVICE, problem, NULL).floor_ns < published);
    strcpy(device.uuid, "GPU-other"); /* whose figures these are not */
    lb_device_assume(&device, NULL);
    assert_true(row_on(LB_DEVICE, problem, NULL).floor_ns == published);

    strcpy(device.name, "NVIDIA A40");
    lb_device_assume(&device, NULL);
    assert_true(isnan(row_on(LB_DEVICE, problem, NULL).floor_ns));
    lb_ceilings_clear(&c, device.uuid, device.sm_count);
    c.all[LB_FLOPS + LB_F16] = 7e14;
    lb_ceilings_assume(true, &c);
    struct lb_row row = row_on(LB_DEVICE, problem, NULL);
    close_to(row.floor_ns, lb_problem_flops(&row.c.problem) / 7e14 * 1e9);

    assert_true(isnan(row_on(LB_HOST, "x/T50_B64_H64/f32/infer", NULL).floor_ns));
    lb_ceilings_clear(&c, "cpu", 1);
    c.core[LB_FLOPS + LB_F32] = c.all[LB_FLOPS + LB_F32] = 1e9;
    lb_ceilings_assume(false, &c);
    close_to(row_on(LB_HOST, "x/T50_B64_H64/f32/infer", NULL).floor_ns,
             50 * 64 * (2.0 * 256 * 128 + 100 * 64));
    lb_ceilings_assume(false, NULL);
    lb_ceilings_assume(true, NULL);
}

TEST(a_call_takes_at_least_what_a_graph_node_takes_and_in_a_stream_a_launch)
{
    struct lb_device_info device = trial_device("h100");
    struct lb_ceilings c;
    strcpy(device.uuid, "GPU-measured");
    lb_device_assume(&device, NULL);
    lb_ceilings_clear(&c, device.uuid, device.sm_count);
    c.all[LB_GRAPH_NODE_NS] = 1e6;
    c.all[LB_LAUNCH_NS] = 2e6;
    lb_ceilings_assume(true, &c);
    assert_true(row_on(LB_DEVICE, "x/T1_B1_H64/f16/infer/graph", NULL).floor_ns == 1e6);
    assert_true(row_on(LB_DEVICE, "x/T1_B1_H64/f16/infer/stream", NULL).floor_ns == 2e6);
    assert_true(row_on(LB_DEVICE, "x/T1024_B64_H1024/f32/train", NULL).floor_ns > 1e6);
    lb_ceilings_assume(true, NULL);
}
