/* The comparison finds the fault of each faulty plug-in, and none in those that are correct. */
#include <dlfcn.h>

#include "device/host_memory.h"
#include "model/registry.h"
#include "reference/input_data.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

/* In the small problem every row is distinct. The big one is dealt from a few rows, and has more
 * than 16 batch rows and 100 steps. */
static const char *const small_text = "T7_B5_I6_H9", *const big_text = "T110_B20_I48_H48";

static const enum lb_dtype dtypes[] = {LB_F32, LB_F16, LB_BF16};

extern const struct lb_impl lb_impl_cpu_ref; /* the plug-ins of plugins/cells.c call it */

/* The plug-in of plugins/broken.c, or "cells/FAULT" of plugins/cells.c. */
static const struct lb_impl *plugin(const char *fault)
{
    char path[512];
    const struct lb_impl *impl = NULL;
    struct lb_error err = {""};
    bool cells = strncmp(fault, "cells/", 6) == 0;
    snprintf(path, sizeof(path), "%s/tests/plugins/%s_%s.so", LB_BINARY_DIR,
             cells ? "cells" : "broken", fault + (cells ? 6 : 0));
    if (lb_plugin_load(path, &impl, &err) != LB_OK)
        fail_msg("%s", err.text);
    return impl;
}

/* The outcome of the comparison for a plug-in on a problem in a dtype. */
static struct lb_check judge(const char *fault, const char *text, enum lb_dtype dtype,
                             enum lb_pass pass)
{
    struct lb_problem problem = trial_problem(text);
    struct lb_check check;
    struct lb_error err = {""};
    problem.dtype = dtype;
    problem.pass = pass;
    if (trial_check(plugin(fault), &problem, trial_cache, 1, &check, &err) != LB_OK)
        fail_msg("%s on %s: %s", fault, trial_name(&problem), err.text);
    return check;
}

/* Fails unless the fault is found in each dtype, with a reason that contains `reason`; or, where
 * that is NULL, unless the results are right. */
static void expect(const char *fault, const char *text, enum lb_pass pass, const char *reason)
{
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        struct lb_check check = judge(fault, text, dtypes[i], pass);
        if (check.right != !reason || (reason && !strstr(check.reason, reason)))
            fail_msg("%s on %s/%s: %s", fault, text, lb_dtype_name(dtypes[i]),
                     check.right ? "not found" : check.reason);
    }
}

TEST(the_big_problem_is_dealt_and_the_small_one_is_not)
{
    struct lb_problem big = trial_problem(big_text), small = trial_problem(small_text);
    assert_true(lb_class_count(&big) < (size_t)big.batch);
    assert_int_equal(lb_class_count(&small), small.batch);
}

TEST(an_independent_correct_implementation_passes)
{
    expect("none", small_text, LB_TRAIN, NULL);
    expect("none", big_text, LB_TRAIN, NULL);
}

/* Problems of each cell, of which the last is dealt from a few rows. */
static const char *const cell_problems[] = {
    "T7_B5_I6_H9/cell-layernorm",
    "T7_B5_I6_H9_L2_D2/cell-recurrent-dropout/ragged",
    "T7_B5_I6_H9_P4_L2",
    "T7_B5_I6_H9_L2/cell-peephole/ragged",
    "T7_B5_I6_H9_L2_D2/cell-residual",
    "T110_B20_I48_H48_P16",
};

TEST(the_correct_plugin_of_every_cell_passes)
{
    assert_string_equal(lb_impl_cpu_ref.name, "cpu_ref");
    for (size_t i = 0; i < sizeof(cell_problems) / sizeof(cell_problems[0]); i++)
        expect("cells/none", cell_problems[i], LB_TRAIN, NULL);
}

TEST(every_fault_is_found_where_it_shows_and_named)
{
    const struct {
        const char *fault, *text;
        enum lb_pass pass;
        const char *reason; /* NULL: the fault does not show there */
    } cases[] = {
        {"cells/swapped_gains", cell_problems[0], LB_INFER, "y ["},
        {"cells/rotated_mask", cell_problems[1], LB_INFER, "y ["},
        {"cells/unscaled_mask", cell_problems[1], LB_INFER, "y ["},
        {"cells/transposed_w_hr", cell_problems[2], LB_INFER, "y ["},
        {"cells/transposed_w_hr", cell_problems[5], LB_INFER, "y ["},
        {"cells/swapped_peepholes", cell_problems[3], LB_INFER, "y ["},
        {"cells/no_skip", cell_problems[4], LB_INFER, "y ["},
        {"cells/no_cell_gradient", cell_problems[0], LB_TRAIN, "dgain of layer 0"},
        {"cells/no_cell_gradient", cell_problems[2], LB_TRAIN, "dw_hr of layer 0"},
        {"cells/no_cell_gradient", cell_problems[3], LB_TRAIN, "dw_peephole of layer 0"},
        {"cells/no_cell_gradient", cell_problems[5], LB_TRAIN, "dw_hr of layer 0"},
        {"swapped_gates", small_text, LB_INFER, "y ["},
        {"swapped_gates", big_text, LB_INFER, "y ["},
        {"stale_h", small_text, LB_INFER, "y ["},
        {"stale_h", big_text, LB_INFER, "y ["},
        {"unwritten_tail", small_text, LB_INFER, "y [t 6, b 4, column 8] is NaN"},
        {"unwritten_tail", big_text, LB_INFER, "y [t 109, b 19, column 47] is NaN"},
        {"wrong_after_step_100", small_text, LB_INFER, NULL}, /* it has fewer steps */
        {"wrong_after_step_100", big_text, LB_INFER, "y [t 10"},
        {"wrong_middle_row", small_text, LB_INFER, NULL}, /* it has no such row */
        {"wrong_middle_row", big_text, LB_INFER, ", b 10,"},
        {"zero_gate_gradient", big_text, LB_INFER, NULL},
        {"zero_gate_gradient", small_text, LB_TRAIN, "gate f"},
        {"zero_gate_gradient", big_text, LB_TRAIN, "gate f"},
        {"dropped_row_in_dw", big_text, LB_INFER, NULL},
        {"dropped_row_in_dw", small_text, LB_TRAIN, "dw_ih"},
        {"dropped_row_in_dw", big_text, LB_TRAIN, "dw_ih"},
        {"dw_in_first_call", big_text, LB_INFER, NULL},
        {"dw_in_first_call", small_text, LB_TRAIN, "dw_ih of layer 0, direction 0, gate i"},
        {"dw_in_first_call", big_text, LB_TRAIN, "NaN, should be"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(cases[i].fault, cases[i].text, cases[i].pass, cases[i].reason);
}

TEST(a_write_beside_a_buffer_is_found)
{
    struct lb_problem problem = trial_problem("T3_B2_I4_H5/f32/infer");
    struct lb_check check;
    struct lb_error err = {""};
    if (!lb_host_space.overrun)
        skip(); /* the address sanitizer would end this program */
    assert_int_equal(trial_check(plugin("past_workspace"), &problem, trial_cache, 1, &check, &err),
                     LB_FAILED);
    assert_non_null(strstr(err.text, "its workspace: past its end"));
}

TEST(what_a_second_call_or_an_update_leaves_out_is_found)
{
    static const struct {
        const char *fault;
        enum lb_pass pass;
        bool changes; /* two calls give different bits, which is found first */
        const char *reason;
    } cases[] = {
        {"idle_after_first", LB_INFER, true, "is NaN"},
        {"idle_update", LB_TRAIN, false, "is NaN"},
        {"update_keeps_weight", LB_TRAIN, false, "is NaN"},
        {"update_loses_a_gate", LB_TRAIN, true, "dw_ih of layer 0, direction 0, gate o"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_problem problem = trial_problem(small_text);
        struct lb_impl impl = *plugin(cases[i].fault);
        struct lb_check check;
        struct lb_error err = {""};
        problem.pass = cases[i].pass;
        if (cases[i].changes &&
            (trial_check(&impl, &problem, trial_cache, 1, &check, &err) == LB_OK ||
             !strstr(err.text, "deterministic")))
            fail_msg("%s: %s", cases[i].fault, err.text);
        impl.traits = 0; /* also found when it does not promise to be deterministic */
        assert_int_equal(trial_check(&impl, &problem, trial_cache, 1, &check, &err), LB_OK);
        if (check.right || !strstr(check.reason, cases[i].reason))
            fail_msg("%s: %s", cases[i].fault, check.right ? "not found" : check.reason);
    }
    expect("idle_update", small_text, LB_INFER, NULL); /* no gradients, no update */
}

TEST_GROUP(NULL, trial_close_cache)
