/* The floor model: what it says of known sizes, and how it must move with them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "case.h"
#include "case_floor.h"
#include "floor.h"
#include "scratch.h"

static struct lb_floor floor_on(const char *model, const char *text)
{
    struct lb_device_info device;
    struct lb_machine machine;
    struct lb_case c;
    struct lb_error err;
    struct lb_floor floor;
    assert_int_equal(lb_device_model(model, &device, &err), LB_OK);
    assert_int_equal(lb_machine_of(&device, &machine, &err), LB_OK);
    assert_string_equal(machine.name, model);
    if (lb_case_parse(text, &c, NULL, NULL, &err) != LB_OK)
        fail_msg("%s: %s", text, err.text);
    lb_floor_of(&machine, &device, &c.problem, &floor);
    assert_true(floor.total_ns >= floor.memory_ns && isfinite(floor.total_ns));
    assert_true(floor.step_ns > 0 && floor.input_ns >= 0);
    return floor;
}

static void between(double value, double low, double high)
{
    if (!(value >= low && value <= high))
        fail_msg("%g is not between %g and %g", value, low, high);
}

static void known_sizes_have_the_floor_that_was_reckoned_by_hand(void **state)
{
    (void)state;
    between(floor_on("h100", "x/T1024_B8_H512/f16/infer").step_ns, 400, 700);
    between(floor_on("h100", "x/T1024_B8_H256/f16/infer").step_ns, 250, 600);
    /* cuDNN takes 1960 ns a step here: there is something to win. */
    between(floor_on("h100", "x/T1024_B16_I768_H768/f16/infer").step_ns, 500, 1200);
    between(floor_on("a100", "x/T1024_B16_H768/f16/infer").step_ns, 400, 1400);
}

static void weights_rest_where_they_fit(void **state)
{
    (void)state;
    assert_int_equal(floor_on("h100", "x/T9_B8_H256/f16/infer").rest, LB_REST_CLUSTER);
    assert_int_equal(floor_on("h100", "x/T9_B8_H2048/f16/infer").rest, LB_REST_DEVICE);
    assert_int_equal(floor_on("a100", "x/T9_B8_H256/f16/infer").rest, LB_REST_DEVICE);
    assert_int_equal(floor_on("h100", "x/T9_B8_H4096/f64/infer").rest, LB_REST_MEMORY);
}

static void a_floor_is_the_sum_of_its_parts(void **state)
{
    (void)state;
    struct lb_floor f = floor_on("h100", "x/T100_B16_I64_H512/f16/infer");
    assert_true(fabs(f.step_ns - f.exchange_ns - f.weights_ns - f.product_ns - f.cell_ns) < 1e-6);
    assert_true(fabs(f.total_ns - f.input_ns - 100 * f.step_ns) < 1e-3);
    /* 2 T B 4H I flops at 132 SMs x 4096 flops x 1.755 GHz */
    assert_true(fabs(f.input_ns - 2.0 * 100 * 16 * 2048 * 64 / (132 * 4096 * 1.755)) < 1e-6);
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
    };
    (void)state;
    for (size_t i = 0; i < sizeof(growing) / sizeof(growing[0]); i++) {
        double less = floor_on("h100", growing[i][0]).total_ns;
        double more = floor_on("h100", growing[i][1]).total_ns;
        if (!(more >= less))
            fail_msg("%s: %g ns, %s: %g ns", growing[i][0], less, growing[i][1], more);
    }
}

static void short_wide_problems_are_bound_by_bandwidth(void **state)
{
    (void)state;
    struct lb_floor f = floor_on("h100", "x/T1_B1_I16384_H4096/f32/infer");
    assert_true(f.total_ns == f.memory_ns || f.memory_ns > 0.5 * f.total_ns);
}

static struct lb_row row_on(const char *text)
{
    struct lb_case c;
    assert_int_equal(lb_case_parse(text, &c, NULL, NULL, NULL), LB_OK);
    struct lb_row row = lb_row_make(&c);
    lb_case_floor(&row);
    return row;
}

static void rows_hold_the_floor_of_their_device(void **state)
{
    struct lb_device_info device;
    struct lb_floor f = floor_on("h100", "x/T100_B16_H512_L3/f16/train");
    (void)state;
    lb_device_use(NULL);
    assert_true(isnan(row_on("x/T100_B16_H512_L3/f16/train").floor_ns)); /* no device */
    assert_int_equal(lb_device_model("h100", &device, NULL), LB_OK);
    lb_device_assume(&device, NULL);
    struct lb_row row = row_on("x/T100_B16_H512_L3/f16/train");
    assert_true(row.floor_ns == f.total_ns);
    assert_true(row.chain_steps == 2 * 102);
    assert_true(row.chain_ns == row.chain_steps * f.step_ns && row.chain_ns < row.floor_ns);
}

/* What a device was seen to do better than published lowers its floor; worse changes nothing. */
static void a_measurement_can_only_lower_the_floor(void **state)
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

    /* A device that the model does not know has its measured rates, and no chain. */
    strcpy(device.name, "NVIDIA L40S");
    lb_device_assume(&device, NULL);
    ceilings.copy_bytes_s = 1e12;
    assert_int_equal(lb_ceilings_save(&ceilings, NULL), LB_OK);
    struct lb_row row = row_on(problem);
    assert_true(row.floor_ns == lb_ceilings_floor_ns(&ceilings, &row.c.problem));
    assert_true(isnan(row.chain_steps));
}

static void an_unknown_device_has_no_floor(void **state)
{
    (void)state;
    struct lb_device_info device = {.name = "Fake GPU"};
    struct lb_machine machine;
    struct lb_error err;
    assert_int_equal(lb_machine_of(&device, &machine, &err), LB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "Fake GPU"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_sizes_have_the_floor_that_was_reckoned_by_hand),
        cmocka_unit_test(weights_rest_where_they_fit),
        cmocka_unit_test(a_floor_is_the_sum_of_its_parts),
        cmocka_unit_test(more_work_never_takes_less),
        cmocka_unit_test(short_wide_problems_are_bound_by_bandwidth),
        cmocka_unit_test(rows_hold_the_floor_of_their_device),
        cmocka_unit_test_setup_teardown(a_measurement_can_only_lower_the_floor, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test(an_unknown_device_has_no_floor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
