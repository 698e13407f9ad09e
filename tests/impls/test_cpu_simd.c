/* Checks that cpu_simd gives the same bits on several threads as on one, and that it is right on
 * each SIMD unit for bf16 and f16. */
#include <unistd.h>

#include "base/clock.h"
#include "machine/cpu_plan.h"
#include "model/registry.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"
#include "tests/impls/amx_model.h"

/* A problem with each cell other than the standard one. */
#define CELLS(sizes, rest)                                                      \
    sizes "/" rest "/cell-layernorm", sizes "/" rest "/cell-recurrent-dropout", \
        sizes "_P37/" rest, sizes "/" rest "/cell-peephole", sizes "/" rest "/cell-residual"

/* True while cpu_simd gets the AMX kernels that run on a model of the tiles. */
static bool tiles_are_modelled;

/* How many of the fastest units of this CPU cpu_simd does without. */
static size_t skipped_units;

__typeof__(lb_simd_kernels_best) __real_lb_simd_kernels_best, __wrap_lb_simd_kernels_best;

const struct lb_simd_kernels *__wrap_lb_simd_kernels_best(enum lb_dtype dtype)
{
    const struct lb_simd_kernels *list[LB_CPU_UNIT_COUNT];
    if (tiles_are_modelled && dtype == LB_INT8)
        return &lb_simd_kernels_amx_model_int8;
    if (tiles_are_modelled && lb_dtype_size(dtype) == 2)
        return dtype == LB_BF16 ? &lb_simd_kernels_amx_model_bf16 : &lb_simd_kernels_amx_model_f16;
    size_t last = lb_simd_kernels_all(dtype, list) - 1;
    return list[skipped_units < last ? skipped_units : last];
}

/* Instead of the best plan, cpu_simd gets this division, unless it is zero. */
static struct {
    int teams, size;
} division;

__typeof__(lb_cpu_plan_of) __real_lb_cpu_plan_of, __wrap_lb_cpu_plan_of;
__typeof__(lb_cpu_topology_here) __real_lb_cpu_topology_here, __wrap_lb_cpu_topology_here;

void __wrap_lb_cpu_plan_of(const struct lb_cpu_task *task, struct lb_cpu_plan *plan)
{
    if (division.teams > 0)
        lb_cpu_plan_with(task, division.teams, division.size, plan);
    else
        __real_lb_cpu_plan_of(task, plan);
}

/* For a division it makes up a machine: threads take turns on the CPUs, four neighbours share a
 * third-level cache and eight a node. */
void __wrap_lb_cpu_topology_here(struct lb_cpu_topology *topology)
{
    __real_lb_cpu_topology_here(topology);
    size_t cpus = topology->count, threads = (size_t)(division.teams * division.size);
    for (size_t i = 0; i < threads; i++) {
        topology->places[i] = topology->places[i % cpus];
        topology->places[i].domain = (int)i / 4;
        topology->places[i].node = (int)i / 8;
    }
    topology->count = threads > 0 ? threads : cpus;
}

/* CPU time of other threads that each reading of the process' clock counts late; 0: the real clock.
 */
static double counted_late_ns;

__typeof__(lb_process_cpu_ns) __real_lb_process_cpu_ns, __wrap_lb_process_cpu_ns;

double __wrap_lb_process_cpu_ns(void)
{
    static double late_ns;
    late_ns += counted_late_ns;
    return counted_late_ns > 0 ? lb_thread_cpu_ns() + late_ns : __real_lb_process_cpu_ns();
}

static bool has_two_cpus(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN) >= 2;
}

/* Runs the case of a problem; the caller frees the row. */
static struct lb_row run(const char *problem)
{
    char text[LB_CASE_ID_SIZE];
    extern const struct lb_impl lb_impl_cpu_simd;
    struct lb_run_options options = {
        .seed = 1, .sampler = lb_sampler_defaults(), .cache = trial_cache};
    struct lb_row row;
    options.sampler.min_samples = options.sampler.max_samples = 2;
    snprintf(text, sizeof(text), "cpu_simd/%s", problem);
    trial_case_run(&lb_impl_cpu_simd, text, &options, &row);
    return row;
}

/* Runs the case of a problem and what follows it, such as "/th2", checks the verdict, and returns
 * the hash of the results. */
static uint64_t hash_of(const char *problem, const char *suffix)
{
    char text[LB_CASE_ID_SIZE];
    snprintf(text, sizeof(text), "%s%s", problem, suffix);
    struct lb_row row = run(text);
    if (row.verdict != LB_VERDICT_OK)
        fail_msg("%s: %s", text, row.reason);
    uint64_t hash = row.hash;
    lb_row_free(&row);
    return hash;
}

/* Runs a case and checks that its reason says something. */
static void expect_reason(const char *text, const char *says)
{
    struct lb_row row = run(text);
    if (!strstr(row.reason, says))
        fail_msg("%s: %s", text, row.reason);
    lb_row_free(&row);
}

TEST(results_do_not_depend_on_threads_where_rows_stay_whole)
{
    static const char *const problems[] = {
        "T9_B13_I37_H100_L2_D2/f32/infer",
        "T9_B13_I37_H100_L2_D2/f32/infer/ragged",
        "T5_B7_I33_H130_D2/f64/infer",
        "T7_B31_I20_H200/f32/forward/ragged",
        "T6_B8_I1200_H80_L2/f32/infer",
        "T9_B13_I37_H100_L2_D2/bf16/infer/ragged",
        "T7_B31_I20_H200/f16/forward/ragged",
        "T12_B20_I64_H64/bf16/infer",
        "T9_B13_I37_H100_L2_D2/int8/infer/ragged",
    };
    if (!has_two_cpus())
        skip();
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++)
        assert_int_equal(hash_of(problems[i], ""), hash_of(problems[i], "/th2"));
}

/* The clock of the process may count what the second thread did before the calls, up to a tick of
 * 10 ms in all. What is beyond that was used in the calls. */
TEST(cpu_time_that_is_counted_late_is_no_finding)
{
    if (!has_two_cpus())
        skip();
    counted_late_ns = 4e6;
    hash_of("T4_B2_I16_H16/f32/infer", "/th2");
    counted_late_ns = 8e6;
    expect_reason("T4_B2_I16_H16/f32/infer/th2", "CPUs while it was timed");
    counted_late_ns = 0;
}

/* Every problem has padding, ragged rows or several layers, and fewer panels or rows than some
 * divisions have threads, so that some of them have no work. More threads than CPUs take turns. */
TEST(results_are_the_same_for_every_division)
{
    static const int divisions[][2] = {{1, 2}, {2, 1}, {1, 3}, {3, 1},  {2, 2},  {1, 8},  {2, 4},
                                       {4, 2}, {8, 1}, {3, 5}, {1, 16}, {4, 16}, {16, 4}, {64, 1}};
    static const char *const problems[] = {
        "T4_B13_I37_H100_L2_D2/f32/train/ragged", "T3_B7_I33_H130/f64/backward",
        "T5_B29_I20_H200_L3/f32/infer/ragged",    "T3_B9_I45_H80_D2/bf16/train",
        "T4_B20_I7_H290/f16/forward/ragged",      "T2_B3_I300_H17/f32/train",
        "T4_B20_I70_H290_D2/int8/infer/ragged",   CELLS("T4_B13_I9_H70_L2_D2", "f32/train/ragged"),
    };
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        const uint64_t alone = hash_of(problems[i], "");
        for (size_t d = 0; d < sizeof(divisions) / sizeof(divisions[0]); d++) {
            char threads[16];
            division.teams = divisions[d][0];
            division.size = divisions[d][1];
            snprintf(threads, sizeof(threads), "/th%d", division.teams * division.size);
            if (hash_of(problems[i], threads) != alone)
                fail_msg("%s in %d teams of %d differs from one thread", problems[i],
                         division.teams, division.size);
            division.teams = division.size = 0;
        }
    }
}

/* Nobody measures threads that take turns on a CPU. */
TEST(a_benchmark_has_no_more_threads_than_cpus)
{
    expect_reason("T2_B64_H256/f32/infer/th2000", "threads 2000");
    if (sysconf(_SC_NPROCESSORS_ONLN) < 255)
        expect_reason("T2_B64_H256/f32/infer/th255", "threads 255: this process may use only");
}

/* The inputs of the first problems are so large that they are packed for the weight gradients in
 * more than one block of rows, and the gates so many that backward sums them in blocks; in the last
 * with AVX2, a step back begins with a part of a vector. One problem has too little work for two
 * threads, and the rows of one are dealt from 4 on. */
TEST(training_is_right_beyond_the_caches_and_on_two_threads)
{
    static const char *const problems[] = {
        "T40_B14_I420_H40_D2/f32/train",         "T3_B7_I9_H500/f32/train/ragged",
        "T9_B13_I37_H100_L2_D2/f32/train",       "T9_B13_I37_H100_L2_D2/f32/train/ragged",
        "T5_B7_I33_H130_D2/f64/backward/ragged", "T5_B40_I3_H17_L3/f32/train",
        "T10_B256_I32_H128/f32/train",           "T3_B1_I8_H772/f32/train",
    };
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        hash_of(problems[i], "");
        if (has_two_cpus())
            hash_of(problems[i], "/th2");
    }
}

/* These problems have padding in every size, several layers, both directions, ragged rows, more
 * rows than are summed at a time, and so many gates that backward sums them in blocks. */
static const char *const half_problems[] = {
    "T9_B13_I37_H100_L2_D2/%s/infer",    "T9_B13_I37_H100_L2_D2/%s/train/ragged",
    "T5_B33_I5_H48_L3/%s/train",         "T1_B1_I1_H1/%s/backward",
    "T40_B14_I45_H40_D2/%s/train",       "T6_B8_I300_H80_L2/%s/forward/ragged",
    "T4_B70_I33_H31_D2/%s/train/ragged",
};

/* The same of int8, with weights that do and that do not stay in the L2 cache beside the rows. */
static const char *const int8_problems[] = {
    "T9_B13_I37_H100_L2_D2", "T9_B13_I37_H100_D2/ragged", "T1_B1_I1_H1",
    "T40_B14_I64_H48_D2",    "T6_B8_I300_H80_L2/ragged",  "T4_B70_I133_H31_D2/ragged",
    "T3_B20_I700_H500",
};

static void int8_is_right(const char *suffix)
{
    for (size_t i = 0; i < sizeof(int8_problems) / sizeof(int8_problems[0]); i++) {
        char problem[96];
        snprintf(problem, sizeof(problem), "%s/int8/infer", int8_problems[i]);
        hash_of(problem, suffix);
    }
}

static void half_problems_are_right(enum lb_dtype dtype, const char *suffix)
{
    for (size_t i = 0; i < sizeof(half_problems) / sizeof(half_problems[0]); i++) {
        char problem[96];
        snprintf(problem, sizeof(problem), half_problems[i], lb_dtype_name(dtype));
        hash_of(problem, suffix);
    }
}

/* Whether this CPU has a unit for the dtype besides those that cpu_simd does without. */
static bool a_unit_is_left(enum lb_dtype dtype)
{
    const struct lb_simd_kernels *list[LB_CPU_UNIT_COUNT];
    return skipped_units < lb_simd_kernels_all(dtype, list);
}

TEST(bf16_and_f16_are_right_on_every_unit_of_this_cpu)
{
    for (enum lb_dtype dtype = LB_F16; dtype <= LB_BF16; dtype++)
        for (skipped_units = 0; a_unit_is_left(dtype); skipped_units++) {
            half_problems_are_right(dtype, "");
            if (has_two_cpus())
                half_problems_are_right(dtype, "/th2");
        }
    skipped_units = 0;
    hash_of("T3_B7_I9_H800/bf16/train", "");
}

/* More rows and columns than a kernel computes at a time, and weights that are divided into blocks.
 */
TEST(every_cell_is_right_on_every_unit_of_this_cpu)
{
    static const char *const problems[] = {
        CELLS("T3_B9_I37_H100_L2_D2", "f32/train/ragged"),
        CELLS("T3_B9_I37_H100_L2_D2", "f64/train"),
        CELLS("T3_B9_I37_H100_L2_D2", "bf16/train/ragged"),
        CELLS("T3_B9_I37_H100_L2_D2", "f16/train"),
        CELLS("T4_B5_I7_H300_L3", "f32/infer/ragged"),
        CELLS("T4_B5_I7_H300_L3", "bf16/infer"),
        "T3_B5_I7_H900_P700/f32/train",
    };
    for (skipped_units = 0; skipped_units < LB_CPU_UNIT_COUNT; skipped_units++)
        for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
            enum lb_dtype dtype = trial_problem(problems[i]).dtype;
            if (a_unit_is_left(dtype) && !lb_simd_kernels_best(dtype)->tiles)
                hash_of(problems[i], "");
        }
    skipped_units = 0;
}

TEST(int8_is_the_scheme_on_every_unit_of_this_cpu)
{
    for (skipped_units = 0; a_unit_is_left(LB_INT8); skipped_units++) {
        int8_is_right("");
        if (has_two_cpus())
            int8_is_right("/th2");
    }
    skipped_units = 0;
}

TEST(bf16_f16_and_int8_are_right_on_modelled_tiles)
{
    tiles_are_modelled = true;
    for (enum lb_dtype dtype = LB_F16; dtype <= LB_BF16; dtype++) {
        half_problems_are_right(dtype, "");
        if (has_two_cpus())
            half_problems_are_right(dtype, "/th2");
    }
    int8_is_right("");
    expect_reason("T3_B9_I37_H100/bf16/train/cell-peephole", "tiles have");
    tiles_are_modelled = false;
    assert_true(amx_model_dot_count() > 1000);
}

TEST_GROUP(NULL, trial_close_cache)
