/* The implementation `fused`, whole: its own source on a fake device, products as plain loops, the
 * cluster kernels on the emulator, results against the oracle as in any run. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../impls/fused_impl.h"
#include "../../fake_gpu/fake_device.h"
#include "case_run.h"

extern const struct lb_impl lb_impl_fused;
static struct lb_reference_cache *cache;

static void ignore_phase(void *user, const char *phase)
{
    (void)user, (void)phase;
}

static void ignore_row(void *user, const struct lb_row *row)
{
    (void)user, (void)row;
}

static struct lb_case parse(const char *text)
{
    struct lb_case c;
    struct lb_error err;
    if (lb_case_parse(text, &c, NULL, NULL, &err) != LB_OK)
        fail_msg("%s: %s", text, err.text);
    return c;
}

static void expect_ok(const char *text)
{
    const struct lb_run_observer observer = {NULL, ignore_phase, ignore_row};
    struct lb_run_options options = {
        .seed = 7, .sampler = lb_sampler_defaults(), .cache = cache, .loss_scale = 1};
    struct lb_case c = parse(text);
    struct lb_row row;
    options.sampler.min_samples = options.sampler.max_samples = 1;
    fake_device_install(FAKE_NONE);
    assert_int_equal(lb_device_open(0, NULL), LB_OK);
    lb_case_run(&lb_impl_fused, &c, &options, &observer, &row);
    if (row.verdict != LB_VERDICT_OK)
        fail_msg("%s: %s: %s", text, lb_verdict_name(row.verdict), row.reason);
    assert_int_equal(fake_device_counts()->allocations, 0);
    lb_row_free(&row);
}

static void every_pass_agrees_with_the_oracle(void **state)
{
    static const char *const cases[] = {
        "fused:cluster/T1_B1_I1_H1/f16/train",
        "fused:cluster/T3_B3_I5_H6/f16/infer",
        "fused:cluster/T4_B9_I4_H33/bf16/forward",
        "fused:cluster/T5_B4_I3_H7/f16/backward",
        "fused:cluster/T4_B5_I3_H5_D2/f16/train/ragged",
        "fused:cluster/T4_B3_I4_H5_L3/bf16/infer",
        "fused:cluster/T4_B3_I4_H5_L3/bf16/train/ragged",
        "fused:cluster/T3_B4_I4_H6_L2_D2/f16/train",
        "fused:cluster/T5_B6_I4_H5_L2_D2/f16/train/ragged",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_ok(cases[i]);
}

static struct lb_fused_choice chosen(const char *model, const char *text)
{
    struct lb_case c = parse(text);
    struct lb_device_info device;
    struct lb_fused_choice choice;
    struct lb_error err;
    assert_int_equal(lb_device_model(model, &device, &err), LB_OK);
    if (lb_fused_choose(&c.problem, &device, c.variant[0] ? c.variant : "auto", &choice, &err) !=
        LB_OK)
        fail_msg("%s: %s", text, err.text);
    assert_true(choice.forward.step_ns > 0);
    return choice;
}

struct cluster_tile {
    int blocks, warps, columns;
};

static struct cluster_tile cluster_tile(const char *model, const char *text)
{
    struct lb_fused_choice choice = chosen(model, text);
    struct lb_case c = parse(text);
    struct cluster_tile t;
    char says[200];
    int needed, resident;
    choice.forward.family->describe(&c.problem, &choice.forward, says, sizeof(says));
    if (sscanf(says, "%d clusters of %d at a time, %d blocks x %d warps x %d rows", &needed,
               &resident, &t.blocks, &t.warps, &t.columns) != 5)
        fail_msg("%s: %s", text, says);
    assert_true(4 * t.blocks * t.warps >= c.problem.hidden);
    assert_true(needed == choice.forward.needed && resident == choice.forward.resident);
    return t;
}

static void the_choice_follows_size_and_batch(void **state)
{
    (void)state;
    assert_int_equal(cluster_tile("h100", "fused:cluster/T9_B8_H128/f16/infer").blocks, 4);
    assert_int_equal(cluster_tile("h100", "fused:cluster/T9_B8_H512/f16/infer").blocks, 16);
    assert_int_equal(cluster_tile("h100", "fused:cluster/T9_B8_H768/f16/infer").warps, 12);
    /* 128 rows are 16 clusters of 8 rows, where 8 run at a time: 16 rows each are one wave. */
    struct lb_fused_choice wide = chosen("h100", "fused:cluster/T9_B128_H512/f16/infer");
    assert_int_equal(cluster_tile("h100", "fused:cluster/T9_B128_H512/f16/infer").columns, 16);
    assert_true(wide.forward.needed <= wide.forward.resident);
    assert_int_equal(cluster_tile("h100", "fused:cluster/T9_B8_H512/f16/infer").columns, 8);
}

static void what_cannot_run_is_refused_with_its_limit(void **state)
{
    static const struct {
        const char *model, *text, *says;
    } cases[] = {
        {"h100", "fused:cluster/T9_B8_H769/f16/infer", "hidden 769"},
        {"a100", "fused:cluster/T9_B8_H64/f16/infer", "compute capability 8.0"},
        {"h100", "fused:cluster/T9_B8_H64/f32/infer", "f32"},
        {"h100", "fused:cluster/T9_B8_H64/f16/infer/act-relu", "relu"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_case c = parse(cases[i].text);
        struct lb_device_info device;
        struct lb_fused_choice choice;
        struct lb_error err;
        assert_int_equal(lb_device_model(cases[i].model, &device, &err), LB_OK);
        assert_int_equal(
            lb_fused_choose(&c.problem, &device, c.variant[0] ? c.variant : "auto", &choice, &err),
            LB_UNSUPPORTED);
        if (!strstr(err.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
    /* A device with too little shared memory for H = 768 still has the smaller tiles. */
    struct lb_device_info small;
    struct lb_fused_choice choice;
    struct lb_case c = parse("fused/T9_B8_H768/f16/infer");
    assert_int_equal(lb_device_model("h100", &small, NULL), LB_OK);
    small.shared_bytes = 99 << 10;
    assert_int_equal(lb_fused_choose(&c.problem, &small, "cluster", &choice, NULL), LB_UNSUPPORTED);
    c = parse("fused/T9_B8_H512/f16/infer");
    assert_int_equal(lb_fused_choose(&c.problem, &small, "cluster", &choice, NULL), LB_OK);
}

/* README.md's table was written before any run, so that a run can test the model: it must say what
 * the model says. */
static void predictions_on_paper_are_those_of_the_model(void **state)
{
    FILE *file = fopen(LB_SOURCE_DIR "/cuda/README.md", "r");
    char line[512];
    int rows = 0, none = 0;
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        char text[LB_CASE_ID_SIZE];
        int hidden, batch, blocks, warps, columns;
        double forward_us, backward_us;
        if (sscanf(line, "| %d | %d |", &hidden, &batch) != 2)
            continue;
        none += strstr(line, "| none |") != NULL && hidden > 768;
        if (sscanf(line, "| %d | %d | %d x %d, %d | %lf | %lf |", &hidden, &batch, &blocks, &warps,
                   &columns, &forward_us, &backward_us) != 7)
            continue;
        snprintf(text, sizeof(text), "fused:cluster/T1024_B%d_H%d/f16/train", batch, hidden);
        struct lb_fused_choice c = chosen("h100", text);
        struct cluster_tile t = cluster_tile("h100", text);
        assert_int_equal(t.blocks, blocks);
        assert_int_equal(t.warps, warps);
        assert_int_equal(t.columns, columns);
        if (fabs(c.forward.step_ns / 1e3 - forward_us) > 0.006 ||
            fabs(c.backward.step_ns / 1e3 - backward_us) > 0.006)
            fail_msg("%sbut the model says %.2f and %.2f us", line, c.forward.step_ns / 1e3,
                     c.backward.step_ns / 1e3);
        rows++;
    }
    fclose(file);
    assert_int_equal(rows, 20);
    assert_int_equal(none, 5);
}

static int open_cache(void **state)
{
    (void)state;
    return lb_reference_cache_create(64 << 20, &cache, NULL) == LB_OK ? 0 : -1;
}

static int close_cache(void **state)
{
    (void)state;
    lb_reference_cache_destroy(cache);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_agrees_with_the_oracle),
        cmocka_unit_test(the_choice_follows_size_and_batch),
        cmocka_unit_test(what_cannot_run_is_refused_with_its_limit),
        cmocka_unit_test(predictions_on_paper_are_those_of_the_model),
    };
    return cmocka_run_group_tests(tests, open_cache, close_cache);
}
