/* The model of the lower bound: its values for known sizes, and how it grows with them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/lower_bound.h"
#include "measure/case_lower_bound.h"
#include "model/case.h"
#include "tests/helpers/scratch_folder.h"

/* row_steps: of ragged rows, the sum of their lengths; 0: not known. */
static struct lb_lower_bound lower_bound_of_rows(const char *model, const char *text,
                                                 double row_steps)
{
    struct lb_device_info device;
    struct lb_machine machine;
    struct lb_case c;
    struct lb_error err;
    struct lb_lower_bound bound;
    assert_int_equal(lb_device_model(model, &device, &err), LB_OK);
    assert_int_equal(lb_machine_of(&device, &machine, &err), LB_OK);
    assert_string_equal(machine.name, model);
    if (lb_case_parse(text, &c, NULL, NULL, &err) != LB_OK)
        fail_msg("%s: %s", text, err.text);
    const struct lb_lower_bound_run run = {.cold = c.cache == LB_COLD, .row_steps = row_steps};
    lb_lower_bound_of(&machine, &device, &c.problem, &run, &bound);
    assert_true(bound.total_ns >= bound.memory_ns && isfinite(bound.total_ns));
    assert_true(bound.step_ns > 0 && bound.input_ns >= 0);
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

static void known_sizes_have_the_bound_that_was_computed_by_hand(void **state)
{
    (void)state;
    /* 8 clusters of 16 SMs with one row each: 233 clocks to a peer, a tile of 8 rows at 4096 flops
     * per clock (longer than the 960 bytes of the row's h take), 120 for the cell; 1.98 GHz. */
    close_to(lower_bound_on("h100", "x/T1024_B8_H512/f16/infer").step_ns,
             (233 + 8.0 * 512 * 512 * 8 / 16 / 4096 + 120) / 1.98);
    /* 66 SMs for 8 rows, or 132 for 16; cuDNN takes 1960 ns per step here. */
    double step = lower_bound_on("h100", "x/T1024_B16_I768_H768/f16/infer").step_ns;
    assert_true(step > 730 / 1.98 && step < 700);
    /* f32 without tensor cores: 1 row is an eighth of the work of 8. */
    struct lb_lower_bound one = lower_bound_on("h100", "x/T9_B1_H512/f32/infer");
    close_to(one.gemm_ns, 8.0 * 512 * 512 / one.sms / 256 / 1.98);
}

/* Three copies on 44 SMs, each for 22 rows, take 1.5 us if nothing overlaps. */
static void copies_of_the_weights_share_out_the_rows(void **state)
{
    (void)state;
    struct lb_lower_bound f = lower_bound_on("h100", "x/T1024_B64_H1024/f16/infer");
    assert_int_equal(f.residency, LB_RESIDENCY_DEVICE);
    assert_true(f.sms <= 66);
    assert_true(f.step_ns < 1500);
    assert_true(f.step_ns >= f.gemm_ns && f.step_ns >= f.exchange_ns);
}

static void weights_stay_where_they_fit(void **state)
{
    (void)state;
    assert_int_equal(lower_bound_on("h100", "x/T9_B8_H256/f16/infer").residency,
                     LB_RESIDENCY_CLUSTER);
    assert_int_equal(lower_bound_on("h100", "x/T9_B8_H2048/f16/infer").residency,
                     LB_RESIDENCY_DEVICE);
    assert_int_equal(lower_bound_on("a100", "x/T9_B8_H256/f16/infer").residency,
                     LB_RESIDENCY_DEVICE);
    assert_int_equal(lower_bound_on("h100", "x/T9_B8_H3072/f16/infer").residency,
                     LB_RESIDENCY_CACHE);
    assert_int_equal(lower_bound_on("h100", "x/T9_B8_H4096/f64/infer").residency,
                     LB_RESIDENCY_MEMORY);
}

static void the_bound_is_its_longest_part(void **state)
{
    (void)state;
    struct lb_lower_bound f = lower_bound_on("h100", "x/T100_B16_I64_H512/f16/infer");
    assert_true(f.total_ns == 100 * f.step_ns);
    assert_true(f.step_ns <= f.wait_ns + f.exchange_ns + f.weights_ns + f.gemm_ns + f.cell_ns);
    /* 2 T B 4H I flops at 132 SMs x 4096 flops x 1.98 GHz; w_hh has H columns more. */
    close_to(f.input_ns, 2.0 * 100 * 16 * 2048 * 64 / (132 * 4096 * 1.98));
    close_to(f.all_gemms_ns, 2.0 * 100 * 16 * 2048 * (64 + 512) / (132 * 4096 * 1.98));
    f = lower_bound_on("h100", "x/T100_B4096_H512/f16/infer");
    assert_true(f.total_ns == f.all_gemms_ns);
}

static void hot_caches_are_read_at_their_own_rate(void **state)
{
    (void)state;
    /* x, y and four states of 1024 rows, w_ih, w_hh and two biases, 2 bytes each. */
    double bytes = 2.0 * (2 * 1024 * 256 + 4 * 1024 * 256 + 4 * 256 * (256 + 256 + 2.0));
    close_to(lower_bound_on("h100", "x/T1_B1024_H256/f16/infer").memory_ns, bytes / 5.5e12 * 1e9);
    /* With cold caches everything that is read comes from memory: x, two states, the weights. */
    bytes = 2.0 * (3 * 1024 * 256 + 4 * 256 * (256 + 256 + 2.0));
    close_to(lower_bound_on("h100", "x/T1_B1024_H256/f16/infer/cold").memory_ns,
             bytes / 3.35e12 * 1e9);
    /* All but the 50 MiB that stay in the cache goes through memory. */
    bytes = 2.0 * (2 * 1024 * 65536 + 4 * 65536 * 1024 + 4 * 1024 * (1024 + 1024 + 2.0));
    close_to(lower_bound_on("h100", "x/T1_B65536_H1024/f16/infer").memory_ns,
             (bytes - (50 << 20)) / 3.35e12 * 1e9);
}

static void ragged_rows_count_with_their_lengths(void **state)
{
    static const char *const ragged = "x/T100_B4096_H512/f16/train/ragged";
    (void)state;
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

static void more_work_never_takes_less(void **state)
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
    (void)state;
    for (size_t i = 0; i < sizeof(growing) / sizeof(growing[0]); i++) {
        double less = lower_bound_on("h100", growing[i][0]).total_ns;
        double more = lower_bound_on("h100", growing[i][1]).total_ns;
        if (!(more >= less))
            fail_msg("%s: %g ns, %s: %g ns", growing[i][0], less, growing[i][1], more);
    }
}

/* A T4's tensor cores do not know bf16: a row is then an eighth of the work of 8 rows, where f16
 * takes as long for one as for 8. */
static void types_that_tensor_cores_do_not_know_have_no_tiles(void **state)
{
    (void)state;
    struct lb_lower_bound one = lower_bound_on("t4", "x/T9_B1_H512/bf16/infer");
    close_to(one.gemm_ns, 8.0 * 512 * 512 / one.sms / 128 / 1.59);
    one = lower_bound_on("t4", "x/T9_B1_H512/f16/infer");
    close_to(one.gemm_ns, 8 * 8.0 * 512 * 512 / one.sms / 1024 / 1.59);
}

static void short_wide_problems_are_bound_by_bandwidth(void **state)
{
    (void)state;
    struct lb_lower_bound f = lower_bound_on("h100", "x/T1_B1_I16384_H4096/f32/infer");
    assert_true(f.total_ns == f.memory_ns || f.memory_ns > 0.5 * f.total_ns);
}

static struct lb_row row_on(const char *text)
{
    struct lb_case c;
    assert_int_equal(lb_case_parse(text, &c, NULL, NULL, NULL), LB_OK);
    struct lb_row row = lb_row_make(&c);
    lb_case_lower_bound(&row, NULL);
    return row;
}

static void rows_record_the_bound_of_their_device(void **state)
{
    struct lb_device_info device;
    struct lb_lower_bound f = lower_bound_on("h100", "x/T100_B16_H512_L3/f16/train");
    (void)state;
    lb_device_use(NULL);
    assert_true(isnan(row_on("x/T100_B16_H512_L3/f16/train").floor_ns)); /* no device */
    assert_int_equal(lb_device_model("h100", &device, NULL), LB_OK);
    lb_device_assume(&device, NULL);
    struct lb_row row = row_on("x/T100_B16_H512_L3/f16/train");
    assert_true(row.floor_ns == f.total_ns);
    assert_true(row.chain_steps == 2 * 102);
    assert_true(row.chain_ns == row.chain_steps * f.step_ns && row.chain_ns <= row.floor_ns);
}

static void lengths_and_cold_caches_change_the_bound_of_a_row(void **state)
{
    static const int32_t lengths[] = {1000, 800, 600, 1};
    struct lb_device_info device;
    struct lb_case c;
    (void)state;
    lb_device_use(NULL);
    assert_int_equal(lb_device_model("h100", &device, NULL), LB_OK);
    lb_device_assume(&device, NULL);
    assert_int_equal(lb_case_parse("x/T1000_B4_H2048/f32/infer/ragged", &c, NULL, NULL, NULL),
                     LB_OK);
    struct lb_row row = lb_row_make(&c);
    lb_case_lower_bound(&row, lengths);
    assert_true(row.floor_ns ==
                lower_bound_of_rows("h100", "x/T1000_B4_H2048/f32/infer/ragged", 2401).total_ns);
    assert_true(row.floor_ns >
                lower_bound_on("h100", "x/T1000_B4_H2048/f32/infer/ragged").total_ns);
    assert_true(row_on("x/T1_B1_H2048/f16/infer/cold").floor_ns >
                row_on("x/T1_B1_H2048/f16/infer").floor_ns);
}

/* NVML's stub reports 1980 MHz for GPU-0, more than an A100's 1410. */
static void the_clock_is_the_highest_that_the_driver_allows(void **state)
{
    struct lb_device_info device;
    struct lb_machine machine;
    (void)state;
    assert_int_equal(lb_device_model("a100", &device, NULL), LB_OK);
    assert_int_equal(lb_case_machine(&device, &machine, NULL), LB_OK);
    assert_true(machine.clock_max_hz == 1.41e9);
    strcpy(device.uuid, "GPU-0");
    assert_int_equal(lb_case_machine(&device, &machine, NULL), LB_OK);
    assert_true(machine.clock_max_hz == 1.98e9);
}

/* A measurement better than the published figure lowers the bound; a worse one changes nothing. */
static void a_measurement_can_only_lower_the_bound(void **state)
{
    static const char *const problem = "x/T100_B16_H512/f16/infer";
    struct lb_device_info device;
    struct lb_ceilings ceilings;
    (void)state;
    scratch_setenv("XDG_CACHE_HOME", scratch_folder());
    assert_int_equal(lb_device_model("h100", &device, NULL), LB_OK);
    strcpy(device.uuid, "GPU-measured");
    lb_device_assume(&device, NULL);
    double published = row_on(problem).floor_ns;
    lb_ceilings_from_json(NULL, &ceilings);
    strcpy(ceilings.uuid, device.uuid);
    ceilings.gemm_flops_s[LB_F16][LB_IEEE] = 7e14;
    ceilings.peer_ns = ceilings.l2_ns = 900;
    assert_int_equal(lb_ceilings_save(&ceilings, NULL), LB_OK);
    assert_true(row_on(problem).floor_ns == published);
    ceilings.peer_ns = ceilings.l2_ns = 50;
    assert_int_equal(lb_ceilings_save(&ceilings, NULL), LB_OK);
    assert_true(row_on(problem).floor_ns < published);

    /* For a device that the model does not know, measured rates alone give the bound. */
    strcpy(device.name, "NVIDIA A40");
    lb_device_assume(&device, NULL);
    ceilings.copy_bytes_s = 1e11;
    assert_int_equal(lb_ceilings_save(&ceilings, NULL), LB_OK);
    struct lb_row row = row_on(problem);
    double all_gemms_ns = lb_problem_flops(&row.c.problem) / 7e14 * 1e9;
    assert_true(row.floor_ns == all_gemms_ns); /* its bytes stay in the cache */
    assert_true(isnan(row.chain_steps));
    row = row_on("x/T100_B16_H512/f16/infer/cold");
    assert_true(row.floor_ns == lb_ceilings_lower_bound_ns(&ceilings, &row.c.problem));
    assert_true(row.floor_ns > all_gemms_ns);
    assert_true(isnan(row_on("x/T100_B16_H512/f16/infer/ragged").floor_ns));
}

static void an_unknown_device_has_no_bound(void **state)
{
    (void)state;
    struct lb_device_info device = {.name = "Fake GPU"};
    struct lb_machine machine;
    struct lb_error err;
    assert_int_equal(lb_machine_of(&device, &machine, &err), LB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "Fake GPU"));
    assert_non_null(strstr(err.text, "A100, H100, H200"));
}

static void h100_and_h200_differ_by_their_memory_alone(void **state)
{
    struct lb_device_info device;
    struct lb_machine h100, h200;
    (void)state;
    assert_int_equal(lb_device_model("h100", &device, NULL), LB_OK);
    assert_int_equal(lb_machine_of(&device, &h100, NULL), LB_OK);
    assert_int_equal(lb_device_model("h200", &device, NULL), LB_OK);
    assert_int_equal(lb_machine_of(&device, &h200, NULL), LB_OK);
    assert_true(h100.memory_bytes_s == 3.35e12 && h200.memory_bytes_s == 4.8e12);
    assert_true(h100.clock_max_hz == 1.98e9 && h200.clock_max_hz == 1.98e9);
    assert_true(h100.flops_clock[LB_F16] == 4096 && h200.flops_clock[LB_F16] == 4096);
    assert_true(h100.l2_clocks == 730 && h200.l2_clocks == 730);
    assert_true(h100.cluster == 16 && h200.cluster == 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_sizes_have_the_bound_that_was_computed_by_hand),
        cmocka_unit_test(weights_stay_where_they_fit),
        cmocka_unit_test(copies_of_the_weights_share_out_the_rows),
        cmocka_unit_test(the_bound_is_its_longest_part),
        cmocka_unit_test(hot_caches_are_read_at_their_own_rate),
        cmocka_unit_test(ragged_rows_count_with_their_lengths),
        cmocka_unit_test(more_work_never_takes_less),
        cmocka_unit_test(types_that_tensor_cores_do_not_know_have_no_tiles),
        cmocka_unit_test(short_wide_problems_are_bound_by_bandwidth),
        cmocka_unit_test(rows_record_the_bound_of_their_device),
        cmocka_unit_test(lengths_and_cold_caches_change_the_bound_of_a_row),
        cmocka_unit_test(the_clock_is_the_highest_that_the_driver_allows),
        cmocka_unit_test_setup_teardown(a_measurement_can_only_lower_the_bound, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test(an_unknown_device_has_no_bound),
        cmocka_unit_test(h100_and_h200_differ_by_their_memory_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
