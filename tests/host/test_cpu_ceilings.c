/* The ceilings of CPUs: kept in a file, measured, and the lower bounds that follow from them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/cpu_ceilings.h"
#include "host/cpu_topology.h"
#include "measure/cpu_ceilings_measure.h"
#include "model/case.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/scratch_folder.h"

/* A machine of round figures: 100 GFLOP/s per thread in f32, 1 MB of L2 and 8 MB of L3. */
static struct lb_cpu_ceilings made_up(void)
{
    struct lb_cpu_ceilings c;
    lb_cpu_ceilings_from_json(NULL, &c);
    lb_cpu_key(c.cpu);
    c.cache_bytes[LB_CPU_L1] = 32e3;
    c.cache_bytes[LB_CPU_L2] = 1e6;
    c.cache_bytes[LB_CPU_L3] = 8e6;
    c.count = 2;
    for (int i = 0; i < 2; i++) {
        double threads = i == 0 ? 1 : 4;
        struct lb_cpu_rates *r = &c.rates[i];
        r->threads = (int)threads;
        for (int d = 0; d < LB_DTYPE_COUNT; d++)
            r->flops_s[d] = (double)NAN;
        r->flops_s[LB_F32] = threads * 100e9;
        r->read_bytes_s[LB_CPU_L1] = threads * 400e9;
        r->read_bytes_s[LB_CPU_L2] = threads * 200e9;
        r->read_bytes_s[LB_CPU_L3] = threads * 50e9;
        r->read_bytes_s[LB_CPU_MEMORY] = 20e9;
        r->barrier_ns = i == 0 ? 0 : 500;
    }
    return c;
}

static struct lb_cpu_lower_bound bound_of(const char *text, int threads)
{
    struct lb_cpu_ceilings ceilings = made_up();
    struct lb_cpu_lower_bound bound;
    struct lb_case c;
    struct lb_error err = {""};
    if (lb_case_parse(text, &c, NULL, NULL, &err) != LB_OK)
        fail_msg("%s", err.text);
    lb_cpu_lower_bound_of(&ceilings, &c.problem, threads, false, 0, &bound);
    return bound;
}

static void near(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-6 * expected))
        fail_msg("%g, expected %g", actual, expected);
}

static void ceilings_survive_a_file(void **state)
{
    struct lb_cpu_ceilings kept = made_up(), back;
    (void)state;
    scratch_setenv("XDG_CACHE_HOME", scratch_folder());
    assert_false(lb_cpu_ceilings_load(&back));
    kept.units[LB_BF16] = LB_CPU_AMX;
    assert_int_equal(lb_cpu_ceilings_save(&kept, NULL), LB_OK);
    assert_true(lb_cpu_ceilings_load(&back));
    assert_string_equal(back.cpu, kept.cpu);
    assert_int_equal(back.count, 2);
    assert_int_equal(back.units[LB_BF16], LB_CPU_AMX);
    assert_int_equal(back.rates[1].threads, 4);
    assert_true(back.rates[1].flops_s[LB_F32] == 400e9);
    assert_true(isnan(back.rates[1].flops_s[LB_F16]));
    assert_true(back.rates[0].read_bytes_s[LB_CPU_L3] == 50e9);
    assert_true(back.cache_bytes[LB_CPU_L2] == 1e6 && back.rates[1].barrier_ns == 500);
}

static void large_batches_are_bound_by_their_gemms(void **state)
{
    (void)state;
    struct lb_cpu_lower_bound b = bound_of("T50_B64_I64_H64/f32/infer", 1);
    double flops = 2.0 * 50 * 64 * 256 * 128;
    near(b.all_gemms_ns, flops / 100e9 * 1e9);
    near(b.total_ns, b.all_gemms_ns);
    near(bound_of("T50_B64_I64_H64/f32/train", 1).total_ns, 3 * b.total_ns);
    near(bound_of("T50_B64_I64_H64/f32/infer", 4).total_ns, b.total_ns / 4);
}

/* One row: 4 * 1024^2 weights of 4 bytes, of which the caches hold 32 kB and 1 MB, then 8 MB. */
static void one_row_is_bound_by_the_level_that_holds_its_weights(void **state)
{
    (void)state;
    struct lb_cpu_lower_bound b = bound_of("T100_B1_I4_H1024/f32/infer", 1);
    double weights = 4.0 * 1024 * 1024 * 4;
    assert_int_equal(b.residency, LB_CPU_MEMORY);
    near(b.weights_ns, (weights - 32e3 - 1e6 - 8e6) / 20e9 * 1e9);
    near(b.total_ns, 100 * b.weights_ns);
    b = bound_of("T100_B1_I4_H512/f32/infer", 1);
    assert_int_equal(b.residency, LB_CPU_L3);
    near(b.weights_ns, (weights / 4 - 32e3 - 1e6) / 50e9 * 1e9);
    b = bound_of("T100_B1_I4_H32/f32/infer", 1);
    assert_int_equal(b.residency, LB_CPU_L1);
    assert_true(b.weights_ns == 0);
}

/* One row cannot be divided among threads, hidden units can, with a barrier per step. */
static void threads_that_share_hidden_units_wait_at_barriers(void **state)
{
    (void)state;
    struct lb_cpu_lower_bound b = bound_of("T100_B1_I4_H512/f32/infer", 4);
    near(b.barrier_ns, 500);
    near(b.step_ns, fmax(b.gemm_ns, b.weights_ns) + 500);
    b = bound_of("T100_B64_I4_H64/f32/infer", 4); /* rows are divided: no barrier */
    assert_true(b.barrier_ns == 0);
    b = bound_of("T100_B1_I4_H64_D2/f32/infer", 2); /* each thread has a direction of its own */
    assert_true(b.barrier_ns == 0);
    b = bound_of("T100_B1_I4_H16/f32/infer", 4); /* too little work for a barrier */
    assert_true(b.barrier_ns == 0);
}

/* Threads that share the rows all read the same 4 * 1024^2 weights of 4 bytes. The third level
 * holds 8 MB of them for all threads, and memory delivers the rest once: less than the GEMM takes,
 * so they need no barrier. */
static void threads_that_share_rows_share_the_weights(void **state)
{
    struct lb_cpu_lower_bound b = bound_of("T100_B64_I4_H1024/f32/infer", 4);
    double weights = 4.0 * 1024 * 1024 * 4;
    (void)state;
    assert_true(b.barrier_ns == 0);
    near(b.weights_ns, (weights - 32e3 - 1e6 - 8e6) / 20e9 * 1e9);
    near(b.step_ns, 2.0 * 64 * 4096 * 1024 / 400e9 * 1e9);
}

static void what_was_not_measured_gives_no_bound(void **state)
{
    (void)state;
    assert_true(isnan(bound_of("T5_B4_H64/bf16/infer", 1).total_ns));
}

static void other_numbers_of_threads_have_upper_limits(void **state)
{
    struct lb_cpu_ceilings ceilings = made_up();
    (void)state;
    near(lb_cpu_rates_of(&ceilings, 2).flops_s[LB_F32], 200e9);
    near(lb_cpu_rates_of(&ceilings, 3).read_bytes_s[LB_CPU_MEMORY], 20e9);
    near(lb_cpu_rates_of(&ceilings, 8).flops_s[LB_F32], 800e9);
}

/* The lowest rate that is taken for one of a machine's, in floating point operations per second. */
#ifdef LB_EMULATED
#define LEAST_RATE 1e5
#else
#define LEAST_RATE 1e8
#endif

static void this_machine_is_measured(void **state)
{
    struct lb_cpu_ceilings c;
    struct lb_cpu_topology here;
    struct lb_error err = {""};
    (void)state;
    if (lb_cpu_ceilings_measure(1, 3, &c, &err) != LB_OK)
        fail_msg("%s", err.text);
    assert_int_equal(c.count, 1);
    lb_cpu_topology_here(&here);
    double l3_bytes = lb_cpu_topology_l3_bytes(&here, here.count);
    assert_true(!isfinite(l3_bytes) || c.cache_bytes[LB_CPU_L3] == l3_bytes);
    for (int d = 0; d < LB_DTYPE_COUNT; d++)
        assert_true(c.rates[0].flops_s[d] > LEAST_RATE && c.rates[0].flops_s[d] < 1e14);
    /* Were the accumulators of a loop merged, its rate would pass that of the other by far. */
    double ratio = c.rates[0].flops_s[LB_F32] / c.rates[0].flops_s[LB_F64];
    assert_true(ratio > 0.5 && ratio < 8);
    assert_int_equal(lb_cpu_ceilings_measure(256, 1, &c, &err), LB_UNSUPPORTED);
}

/* A row on the host gets its floor where this machine was measured, and only there. */
static void rows_on_the_host_have_a_floor(void **state)
{
    extern const struct lb_impl lb_impl_cpu_simd;
    static const char text[] = "cpu_simd/T5_B4_I64_H64/f32/infer";
    struct lb_run_options options = {.seed = 1, .sampler = lb_sampler_defaults()};
    struct lb_cpu_ceilings ceilings = made_up();
    struct lb_row row;
    (void)state;
    scratch_setenv("XDG_CACHE_HOME", scratch_folder());
    options.sampler.max_ns = 1e6;
    trial_case_run(&lb_impl_cpu_simd, text, &options, &row);
    assert_true(isnan(row.floor_ns));
    lb_row_free(&row);
    assert_int_equal(lb_cpu_ceilings_save(&ceilings, NULL), LB_OK);
    trial_case_run(&lb_impl_cpu_simd, text, &options, &row);
    near(row.floor_ns, bound_of("T5_B4_I64_H64/f32/infer", 1).total_ns);
    lb_row_free(&row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ceilings_survive_a_file, scratch_setup, scratch_teardown),
        cmocka_unit_test(large_batches_are_bound_by_their_gemms),
        cmocka_unit_test(one_row_is_bound_by_the_level_that_holds_its_weights),
        cmocka_unit_test(threads_that_share_hidden_units_wait_at_barriers),
        cmocka_unit_test(threads_that_share_rows_share_the_weights),
        cmocka_unit_test(what_was_not_measured_gives_no_bound),
        cmocka_unit_test(other_numbers_of_threads_have_upper_limits),
        cmocka_unit_test_setup_teardown(rows_on_the_host_have_a_floor, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test(this_machine_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
