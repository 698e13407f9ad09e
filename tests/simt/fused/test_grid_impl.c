/* The whole implementation `fused` with its variant grid: its own source on a fake device, GEMMs as
 * plain loops, the kernels on the emulator, and results compared with the oracle as in any run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "impls/fused/fused.h"
#include "tests/fake_gpu/gpu_case.h"

extern const struct lb_impl lb_impl_fused;
extern int lb_grid_host_resident, lb_grid_host_missing;

static void run_case(const char *text, struct lb_row *row)
{
    gpu_case_run(&lb_impl_fused, text, FAKE_NONE, 1, row);
}

static void every_pass_agrees_with_the_oracle(void **state)
{
    static const char *const cases[] = {
        "fused:grid/T1_B1_I1_H1/f16/train",
        "fused:grid/T3_B3_I5_H6/f16/infer",
        "fused:grid/T4_B9_I4_H33/bf16/forward",
        "fused:grid/T5_B4_I3_H7/f16/backward",
        "fused:grid/T4_B5_I3_H5_D2/f16/train/ragged",
        "fused:grid/T4_B3_I4_H5_L3/bf16/infer",
        "fused:grid/T4_B3_I4_H5_L3/bf16/train/ragged",
        "fused:grid/T5_B6_I4_H5_L2_D2/f16/train/ragged",
        "fused:grid/T4_B5_I3_H11/f32/train",
        "fused:grid/T4_B5_I3_H5_L2_D2/f32/train/ragged",
        "fused:grid/T4_B5_I3_H11/f32/train/tf32",
        "fused:grid/T4_B18_I3_H20/f32/infer/half",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_row row;
        gpu_case_run_ok(&lb_impl_fused, cases[i], &row);
        lb_row_free(&row);
    }
}

/* When a block never runs, the case ends with an error that names the block. */
static void a_wait_that_does_not_end_is_the_cases_error(void **state)
{
    static const char *const cases[] = {"fused:grid/T5_B4_I3_H29/f16/infer",
                                        "fused:grid/T5_B4_I3_H29/f32/infer"};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_row row;
        lb_grid_host_missing = 1;
        run_case(cases[i], &row);
        lb_grid_host_missing = -1;
        if (row.verdict == LB_VERDICT_OK || !strstr(row.reason, "for block 1") ||
            !strstr(row.reason, "step 1"))
            fail_msg("%s: %s: %s", cases[i], lb_verdict_name(row.verdict), row.reason);
        lb_row_free(&row);
    }
}

/* Where the device has no room for all blocks of a tile, that is not launched, because blocks would
 * wait for ever. A tile of 8 units needs 4 blocks here, one of 16 units needs 2. */
static void blocks_that_cannot_all_run_are_refused(void **state)
{
    static const struct {
        int room;
        enum lb_verdict verdict;
        const char *says;
    } cases[] = {{1, LB_VERDICT_UNSUPPORTED, "room for 1"},
                 {3, LB_VERDICT_OK, "grid was refused: "}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_row row;
        lb_grid_host_resident = cases[i].room;
        run_case("fused:grid/T5_B4_I3_H29/f16/infer", &row);
        lb_grid_host_resident = 132;
        assert_int_equal(row.verdict, cases[i].verdict);
        assert_non_null(strstr(i == 0 ? row.reason : row.description, cases[i].says));
        lb_row_free(&row);
    }
}

/* ---- Choice -----------------------------------------------------------------------------------
 */

static enum lb_status choose(const char *model, const char *text, struct lb_fused_choice *choice,
                             struct lb_error *err)
{
    struct lb_case c = trial_case(text);
    struct lb_device_info device;
    assert_int_equal(lb_device_model(model, &device, err), LB_OK);
    return lb_fused_choose(&c.problem, &device, c.variant[0] ? c.variant : "auto", choice, err);
}

struct grid_tile {
    int blocks, units, groups, rows, chunks, columns;
    double forward_us, backward_us;
    bool apart;
};

static struct grid_tile chosen(const char *model, const char *text)
{
    struct lb_fused_choice choice;
    struct lb_case c = trial_case(text);
    struct grid_tile t = {0};
    struct lb_error err;
    char says[200];
    int resident;
    if (choose(model, text, &choice, &err) != LB_OK)
        fail_msg("%s: %s", text, err.text);
    choice.forward.family->describe(&c.problem, &choice.forward, says, sizeof(says));
    if (sscanf(says,
               "%d blocks of %d at a time, %d units each; %d groups x %d rows in %d chunks of %d",
               &t.blocks, &resident, &t.units, &t.groups, &t.rows, &t.chunks, &t.columns) != 7)
        fail_msg("%s: %s", text, says);
    t.apart = strstr(says, "one direction after the other") != NULL;
    assert_true(t.blocks <= resident && t.groups * t.rows >= c.problem.batch);
    assert_true(t.blocks * t.units >= c.problem.hidden * t.groups);
    t.forward_us = choice.forward.step_ns / 1e3;
    t.backward_us = choice.backward.step_ns / 1e3;
    return t;
}

static void the_batch_is_split_where_there_is_room(void **state)
{
    (void)state;
    struct grid_tile t = chosen("h100", "fused:grid/T9_B16_H768/f16/infer");
    assert_int_equal(t.units, 16);
    assert_int_equal(t.groups, 2);
    assert_int_equal(t.rows, 8);
    t = chosen("h100", "fused:grid/T9_B16_H1024_D2/f16/infer");
    assert_false(t.apart);
    assert_int_equal(t.groups, 1);
    t = chosen("h100", "fused:grid/T9_B16_H2048_D2/bf16/infer");
    assert_true(t.apart);
    t = chosen("a100", "fused:grid/T9_B16_H1024/f16/infer");
    assert_int_equal(t.blocks, 64);
}

static void what_cannot_run_is_refused_with_its_limit(void **state)
{
    static const struct {
        const char *model, *text, *says;
    } cases[] = {
        {"h100", "fused:grid/T9_B8_H2049/f16/infer", "hidden 2049"},
        {"a100", "fused:grid/T9_B8_H2048/f16/infer", "108 SMs"},
        {"h100", "fused:grid/T9_B8_H1025/f32/infer", "hidden 1025"},
        {"h100", "fused:grid/T9_B8_H64/f64/infer", "f64"},
        {"h100", "fused:grid/T9_B8_H64/f16/infer/act-relu", "relu"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_fused_choice choice;
        struct lb_error err;
        assert_int_equal(choose(cases[i].model, cases[i].text, &choice, &err), LB_UNSUPPORTED);
        if (!strstr(err.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
    /* An old device is refused; with little shared memory, only the smaller tiles fit. */
    struct lb_device_info device;
    struct lb_fused_choice choice;
    struct lb_error err;
    struct lb_case c = trial_case("fused:grid/T9_B8_H2048/f16/infer");
    assert_int_equal(lb_device_model("h100", &device, NULL), LB_OK);
    assert_int_equal(lb_fused_choose(&c.problem, &device, "grid", &choice, NULL), LB_OK);
    device.shared_bytes = 99 << 10;
    assert_int_equal(lb_fused_choose(&c.problem, &device, "grid", &choice, NULL), LB_UNSUPPORTED);
    c = trial_case("fused:grid/T9_B8_H1024/f16/infer");
    assert_int_equal(lb_fused_choose(&c.problem, &device, "grid", &choice, NULL), LB_OK);
    device.major = 7;
    assert_int_equal(lb_fused_choose(&c.problem, &device, "grid", &choice, &err), LB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "needs compute capability 8.0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_agrees_with_the_oracle),
        cmocka_unit_test(a_wait_that_does_not_end_is_the_cases_error),
        cmocka_unit_test(blocks_that_cannot_all_run_are_refused),
        cmocka_unit_test(the_batch_is_split_where_there_is_room),
        cmocka_unit_test(what_cannot_run_is_refused_with_its_limit),
    };
    return cmocka_run_group_tests(tests, gpu_case_open_cache, gpu_case_close_cache);
}
