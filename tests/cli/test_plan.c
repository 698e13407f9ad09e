/* Plans: which cases a selection stands for, in which order, and how long that takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cli/plan.h"

static char cpu_ref[] = "cpu_ref", cpu_simd[] = "cpu_simd", cudnn[] = "cudnn", first[] = "auto",
            second[] = "standard", third[] = "persist_static";
static char *cudnn_variants[] = {first, second, third, NULL};

static struct lb_impl_entry impl_entries[] = {
    {.name = cpu_ref}, {.name = cpu_simd}, {.name = cudnn, .variants = cudnn_variants}};

static const struct lb_registry registry = {.impl_entries = impl_entries, .count = 3};

static const char *const simd[] = {"--impl", "cpu_simd", NULL};

/* Takes options and their values up to a NULL. */
static void take(struct lb_selection *selection, const char *const *arguments)
{
    for (; *arguments; arguments += 2) {
        struct lb_error err = {""};
        if (lb_selection_take(selection, arguments[0], arguments[1], &err) != LB_OK)
            fail_msg("%s", err.text);
    }
}

static enum lb_status build(const char *const *arguments, struct lb_plan *plan,
                            struct lb_error *err)
{
    struct lb_selection selection = {0};
    take(&selection, arguments);
    enum lb_status st = lb_plan_build(&selection, &registry, plan, err);
    lb_selection_free(&selection);
    return st;
}

/* Expects the plan of the arguments to be exactly the cases, in order. */
static void expect_plan(const char *const *arguments, const char *const *cases)
{
    struct lb_plan plan;
    struct lb_error err = {""};
    if (build(arguments, &plan, &err) != LB_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < plan.count; i++) {
        char text[LB_CASE_ID_SIZE];
        lb_case_print(&plan.cases[i], text);
        if (!cases[i])
            fail_msg("unexpected: %s", text);
        assert_string_equal(text, cases[i]);
    }
    if (cases[plan.count])
        fail_msg("missing: %s", cases[plan.count]);
    lb_plan_free(&plan);
}

#define ARGS(...)  ((const char *const[]){__VA_ARGS__, NULL})
#define CASES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void expect_failure(const char *const *arguments, const char *message)
{
    struct lb_plan plan;
    struct lb_error err = {""};
    assert_int_equal(build(arguments, &plan, &err), LB_INVALID);
    assert_string_equal(err.text, message);
    assert_null(plan.cases);
    assert_int_equal(plan.count, 0);
}

static void grids_default_to_f32_infer_and_square_input(void **state)
{
    (void)state;
    expect_plan(ARGS("-T", "2", "-B", "3", "-H", "4,5", "--impl", "cpu_simd"),
                CASES("cpu_simd/T2_B3_I4_H4/f32/infer", "cpu_simd/T2_B3_I5_H5/f32/infer"));
    expect_plan(ARGS("-T", "2", "-B", "3", "-H", "4", "-I", "4,7", "--impl", "cpu_simd"),
                CASES("cpu_simd/T2_B3_I4_H4/f32/infer", "cpu_simd/T2_B3_I7_H4/f32/infer"));
}

static void every_axis_reaches_its_field(void **state)
{
    (void)state;
    expect_plan(ARGS("-T", "2", "-B", "3", "-I", "4", "-H", "5", "-L", "6", "-D", "2", "--dtype",
                     "f32", "--pass", "train", "--math", "tf32", "--ragged", "ragged", "--act",
                     "relu", "--launch", "graph", "--cache", "cold", "--timing", "isolated",
                     "--threads", "7", "--impl", "cpu_ref"),
                CASES("cpu_ref/T2_B3_I4_H5_L6_D2/f32/train/tf32/ragged/act-relu/graph/cold/th7"));
    expect_plan(ARGS("-T", "2", "-B", "3", "-H", "5", "--timing", "batched", "--dtype", "bf16",
                     "--impl", "cpu_ref"),
                CASES("cpu_ref/T2_B3_I5_H5/bf16/infer/batched"));
}

static void a_projection_has_sizes_and_other_cells_none(void **state)
{
    (void)state;
    expect_plan(ARGS("-T", "2", "-B", "3", "-H", "8,2", "--cell", "standard,projection,peephole",
                     "--impl", "cpu_ref"), /* P is H/4, and at least 1 */
                CASES("cpu_ref/T2_B3_I8_H8/f32/infer", "cpu_ref/T2_B3_I8_H8_P2/f32/infer",
                      "cpu_ref/T2_B3_I8_H8/f32/infer/cell-peephole",
                      "cpu_ref/T2_B3_I2_H2/f32/infer", "cpu_ref/T2_B3_I2_H2_P1/f32/infer",
                      "cpu_ref/T2_B3_I2_H2/f32/infer/cell-peephole"));
    expect_plan(ARGS("-T", "2", "-B", "3", "-H", "8", "--cell", "projection,standard", "-P",
                     "3,5,8", "--impl", "cpu_ref"), /* P8 is not below H */
                CASES("cpu_ref/T2_B3_I8_H8_P3/f32/infer", "cpu_ref/T2_B3_I8_H8_P5/f32/infer",
                      "cpu_ref/T2_B3_I8_H8/f32/infer"));
    expect_plan(ARGS("-T", "2", "-B", "3", "-H", "8", "-L", "1,2", "--cell", "residual", "--impl",
                     "cpu_ref"),
                CASES("cpu_ref/T2_B3_I8_H8_L2/f32/infer/cell-residual"));
    expect_plan(ARGS("-T", "2", "-B", "3", "-H", "8", "--cell", "projection", "-P", "2,4",
                     "--where", "P < 3", "--impl", "cpu_ref"),
                CASES("cpu_ref/T2_B3_I8_H8_P2/f32/infer"));
    expect_plan(ARGS("--case", "cpu_ref/T2_B3_H8_P2", "--case", "cpu_ref/T2_B3_H8", "-P", "2"),
                CASES("cpu_ref/T2_B3_I8_H8_P2/f32/infer", "cpu_ref/T2_B3_I8_H8/f32/infer"));
    expect_failure(ARGS("-T", "2", "-B", "3", "-H", "8", "-P", "2"),
                   "-P: no case has the cell projection; add --cell projection");
}

static void implementations_of_a_problem_are_adjacent(void **state)
{
    (void)state;
    expect_plan(ARGS("-T", "1", "-B", "1,8", "-H", "4", "--pass", "infer,train", "--impl",
                     "cpu_simd,cpu_ref"),
                CASES("cpu_simd/T1_B1_I4_H4/f32/infer", "cpu_ref/T1_B1_I4_H4/f32/infer",
                      "cpu_simd/T1_B1_I4_H4/f32/train", "cpu_ref/T1_B1_I4_H4/f32/train",
                      "cpu_simd/T1_B8_I4_H4/f32/infer", "cpu_ref/T1_B8_I4_H4/f32/infer",
                      "cpu_simd/T1_B8_I4_H4/f32/train", "cpu_ref/T1_B8_I4_H4/f32/train"));
    expect_plan(ARGS("--case", "cpu_ref/T1_B1_H1", "--case", "cpu_ref/T2_B1_H1", "--case",
                     "cpu_simd/T1_B1_H1", "--case", "cpu_simd/T2_B1_H1/th2"),
                CASES("cpu_ref/T1_B1_I1_H1/f32/infer", "cpu_simd/T1_B1_I1_H1/f32/infer",
                      "cpu_ref/T2_B1_I1_H1/f32/infer", "cpu_simd/T2_B1_I1_H1/f32/infer/th2"));
}

static void batches_of_one_problem_follow_each_other(void **state)
{
    (void)state;
    expect_plan(ARGS("-T", "1", "-B", "1,2", "-H", "4,5", "--impl", "cpu_ref"),
                CASES("cpu_ref/T1_B1_I4_H4/f32/infer", "cpu_ref/T1_B2_I4_H4/f32/infer",
                      "cpu_ref/T1_B1_I5_H5/f32/infer", "cpu_ref/T1_B2_I5_H5/f32/infer"));
}

static void implementations_stand_for_all_their_variants(void **state)
{
    (void)state;
    expect_plan(ARGS("-T", "1", "-B", "1", "-H", "1"),
                CASES("cpu_ref/T1_B1_I1_H1/f32/infer", "cpu_simd/T1_B1_I1_H1/f32/infer",
                      "cudnn/T1_B1_I1_H1/f32/infer", "cudnn:standard/T1_B1_I1_H1/f32/infer",
                      "cudnn:persist_static/T1_B1_I1_H1/f32/infer"));
    expect_plan(ARGS("-T", "1", "-B", "1", "-H", "1", "--impl", "cudnn:auto"),
                CASES("cudnn/T1_B1_I1_H1/f32/infer"));
    expect_plan(
        ARGS("-T", "1", "-B", "1", "-H", "1", "--impl", "cudnn:standard", "--impl", "cudnn"),
        CASES("cudnn:standard/T1_B1_I1_H1/f32/infer", "cudnn/T1_B1_I1_H1/f32/infer",
              "cudnn:persist_static/T1_B1_I1_H1/f32/infer"));
}

static void axes_fill_what_a_line_left_out(void **state)
{
    (void)state;
    expect_plan(ARGS("--case", "T1_B1_H2", "--dtype", "f16,bf16", "--impl", "cpu_ref"),
                CASES("cpu_ref/T1_B1_I2_H2/f16/infer", "cpu_ref/T1_B1_I2_H2/bf16/infer"));
    expect_plan(ARGS("--case", "T1_B1_H2", "-L", "1,3", "-I", "5", "--impl", "cpu_ref"),
                CASES("cpu_ref/T1_B1_I5_H2/f32/infer", "cpu_ref/T1_B1_I5_H2_L3/f32/infer"));
    expect_plan(ARGS("--case", "T1_B1_H2/train/th2", "--impl", "cpu_ref"),
                CASES("cpu_ref/T1_B1_I2_H2/f32/train/th2"));
}

static void axes_filter_what_a_line_gave(void **state)
{
    (void)state;
    expect_plan(ARGS("--case", "T1_B1_H2/f32", "--case", "T1_B1_H3/f16", "--case", "T1_B1_H4",
                     "--dtype", "f16", "--impl", "cpu_ref"),
                CASES("cpu_ref/T1_B1_I3_H3/f16/infer", "cpu_ref/T1_B1_I4_H4/f16/infer"));
    expect_plan(ARGS("--case", "T1_B1_H2", "--case", "T2_B1_H2", "-T", "2,3", "--impl", "cpu_ref"),
                CASES("cpu_ref/T2_B1_I2_H2/f32/infer"));
    expect_plan(
        ARGS("--case", "T1_B1_H2_L2", "--case", "T1_B1_H2_L1", "-L", "1", "--impl", "cpu_ref"),
        CASES("cpu_ref/T1_B1_I2_H2/f32/infer"));

    struct lb_plan plan;
    assert_int_equal(build(ARGS("--case", "T1_B1_H2/f32", "--dtype", "f16"), &plan, NULL), LB_OK);
    assert_int_equal(plan.count, 0);
    assert_int_equal(plan.filtered, 1);
    lb_plan_free(&plan);
}

static void named_implementations_are_filtered_not_filled(void **state)
{
    (void)state;
    const char *const both[] = {"--case", "cpu_ref/T1_B1_H1", "--case", "cudnn/T1_B1_H1", NULL};
    expect_plan(both, CASES("cpu_ref/T1_B1_I1_H1/f32/infer", "cudnn/T1_B1_I1_H1/f32/infer"));
    expect_plan(ARGS("--case", "cpu_ref/T1_B1_H1", "--case", "cudnn/T1_B1_H1", "--impl", "cudnn"),
                CASES("cudnn/T1_B1_I1_H1/f32/infer"));
    struct lb_plan plan;
    assert_int_equal(
        build(ARGS("--case", "cudnn/T1_B1_H1", "--impl", "cudnn:standard"), &plan, NULL), LB_OK);
    assert_int_equal(plan.count, 0);
    lb_plan_free(&plan);
}

static void repeated_cases_are_planned_once(void **state)
{
    (void)state;
    expect_plan(ARGS("-T", "1,1", "-B", "1:2:+1,2", "-H", "4", "-I", "4,4", "--impl",
                     "cpu_ref,cpu_ref:auto"),
                CASES("cpu_ref/T1_B1_I4_H4/f32/infer", "cpu_ref/T1_B2_I4_H4/f32/infer"));
    expect_plan(
        ARGS("--case", "T1_B1_H4", "--case", "T1_B1_I4_H4_L1/f32/infer", "--impl", "cpu_ref"),
        CASES("cpu_ref/T1_B1_I4_H4/f32/infer"));
}

static void filter_keeps_what_matches(void **state)
{
    (void)state;
    expect_plan(ARGS("-T", "1:4:+1", "-B", "1:4:+1", "-H", "8", "--where", "T*B == 4", "--where",
                     "T != B", "--impl", "cpu_ref"),
                CASES("cpu_ref/T1_B4_I8_H8/f32/infer", "cpu_ref/T4_B1_I8_H8/f32/infer"));
    expect_plan(ARGS("-T", "1", "-B", "1", "-H", "8,9", "-I", "9", "--where", "I == H", "--impl",
                     "cpu_ref"),
                CASES("cpu_ref/T1_B1_I9_H9/f32/infer"));
    expect_plan(
        ARGS("--case", "T1_B1_H8", "--case", "T1_B1_H9", "--where", "I > 8", "--impl", "cpu_ref"),
        CASES("cpu_ref/T1_B1_I9_H9/f32/infer"));
    expect_failure(ARGS("-T", "1", "-B", "1", "-H", "1", "--where", "T/(B-1)"),
                   "--where 'T/(B-1)': column 2: division by zero at T1_B1_I1_H1_L1_D1");

    struct lb_plan plan;
    assert_int_equal(build(ARGS("-T", "1:4:+1", "-B", "1", "-H", "1", "--pass", "infer,train",
                                "--where", "T>3", "--impl", "cudnn"),
                           &plan, NULL),
                     LB_OK);
    assert_int_equal(plan.count, 6);
    assert_int_equal(plan.filtered, 18);
    lb_plan_free(&plan);
}

static void combinations_that_break_a_rule_are_left_out_and_counted(void **state)
{
    (void)state;
    struct lb_plan plan;
    assert_int_equal(build(ARGS("-T", "1,2", "-B", "1", "-H", "1", "--dtype", "f32,f16", "--math",
                                "ieee,tf32", "--impl", "cpu_ref,cpu_simd"),
                           &plan, NULL),
                     LB_OK);
    assert_int_equal(plan.count, 12);
    assert_int_equal(plan.left_out, 4);
    assert_string_equal(plan.because.text, "math tf32 goes with dtype f32, not f16");
    lb_plan_free(&plan);

    expect_plan(ARGS("--case", "T1_B1_H1/tf32", "--dtype", "f16,f32", "--impl", "cpu_ref"),
                CASES("cpu_ref/T1_B1_I1_H1/f32/infer/tf32"));

    struct lb_selection selection = {0};
    struct lb_error err;
    assert_int_equal(lb_selection_take(&selection, "--case", "T1_B1_H1/f16/tf32", &err),
                     LB_INVALID);
    assert_string_equal(err.text, "--case T1_B1_H1/f16/tf32: column 1: math tf32 goes with dtype "
                                  "f32, not f16");
    lb_selection_free(&selection);
}

static void unknown_names_get_a_suggestion(void **state)
{
    (void)state;
    expect_failure(ARGS("-T", "1", "-B", "1", "-H", "1", "--impl", "cpu_smid"),
                   "--impl: no implementation 'cpu_smid'; did you mean cpu_simd?");
    expect_failure(ARGS("-T", "1", "-B", "1", "-H", "1", "--impl", "tensorflow"),
                   "--impl: no implementation 'tensorflow'; there are cpu_ref, cpu_simd, cudnn; "
                   "--plugin and --framework add others");
    expect_failure(ARGS("-T", "1", "-B", "1", "-H", "1", "--impl", "cudnn:standart"),
                   "--impl: no variant cudnn:standart; did you mean cudnn:standard?");
    expect_failure(ARGS("-T", "1", "-B", "1", "-H", "1", "--impl", "cudnn:fast"),
                   "--impl: no variant cudnn:fast; there are auto, standard, persist_static");
    expect_failure(ARGS("-T", "1", "-B", "1", "-H", "1", "--impl", "cpu_ref:fast"),
                   "--impl: cpu_ref:fast: cpu_ref has no variants");
    expect_failure(ARGS("--case", "cudn/T1_B1_H1"),
                   "--case: no implementation 'cudn'; did you mean cudnn?");
}

static void grids_need_three_sizes(void **state)
{
    (void)state;
    expect_failure(ARGS("-T", "1", "-H", "1"),
                   "-B is missing: a grid needs -T, -B and -H; or give --cases or --case");
    expect_failure(ARGS("--dtype", "f32"),
                   "-T is missing: a grid needs -T, -B and -H; or give --cases or --case");
}

static void hopeless_products_are_refused_at_once(void **state)
{
    (void)state;
    expect_failure(ARGS("-T", "1:1000000:+1", "-B", "1:1000000:+1", "-H", "1:1000000:+1", "-I",
                        "1:1000000:+1"),
                   "more than 100000000 combinations of axes, cases and implementations: "
                   "narrow one");
    expect_failure(ARGS("-T", "1:1000001:+1", "-B", "1", "-H", "1", "--impl", "cpu_ref"),
                   "more than 1000000 cases: narrow an axis, or use --where or --impl");
}

static void malformed_choices_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", ",", "a,", "a:", ":a", "a,,b", "a23456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct lb_selection selection = {0};
        assert_int_equal(lb_selection_take(&selection, "--impl", texts[i], NULL), LB_INVALID);
        lb_selection_free(&selection);
    }
    struct lb_selection selection = {0};
    assert_int_equal(lb_selection_take(&selection, "--sweep", "", NULL), LB_INVALID);
    lb_selection_free(&selection);
}

static void words_of_axes_are_those_of_case_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < LB_AXIS_COUNT; i++) {
        for (size_t k = 0; lb_axis_table[i].words && lb_axis_table[i].words[k]; k++) {
            struct lb_case c;
            unsigned given;
            char text[64];
            bool projects = i == LB_AXIS_CELL && k == LB_CELL_PROJECTION; /* has a size instead */
            snprintf(text, sizeof(text), "T1_B1_H2%s%s%s", i == LB_AXIS_CELL ? "_L2" : "",
                     projects            ? "_P1"
                     : i == LB_AXIS_ACT  ? "/act-"
                     : i == LB_AXIS_CELL ? "/cell-"
                                         : "/",
                     projects ? "" : lb_axis_table[i].words[k]);
            assert_int_equal(lb_case_parse(text, &c, &given, NULL, NULL), LB_OK);
            assert_int_equal(given & ~(i == LB_AXIS_CELL ? LB_GIVEN_LAYERS : 0u),
                             lb_axis_table[i].given);
            assert_int_equal(lb_axis_get(&c, (enum lb_axis_id)i), k);
        }
    }
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void large_grids_are_planned_fast(void **state)
{
    (void)state;
    const char *const arguments[] = {"--impl", "cpu_ref",    "--dtype",   "f32", "--pass",
                                     "infer",  "-T",         "1:1000:+1", "-B",  "1:128:x2",
                                     "-H",     "32:512:+32", NULL};
    struct lb_plan plan;
    double start = seconds();
    assert_int_equal(build(arguments, &plan, NULL), LB_OK);
    double planned = seconds() - start;
    size_t bytes = 0;
    for (size_t i = 0; i < plan.count; i++) {
        char text[LB_CASE_ID_SIZE];
        bytes += lb_case_print(&plan.cases[i], text);
    }
    print_message("%zu cases: %.0f ms to plan, %.0f ms to print %zu bytes\n", plan.count,
                  1e3 * planned, 1e3 * (seconds() - start - planned), bytes);
    assert_int_equal(plan.count, 128000);
    assert_true(planned < 2); /* 0.03 s; room for sanitizers and busy machines */
    lb_plan_free(&plan);
}

static void builtin_files_plan_for_every_implementation(void **state)
{
    (void)state;
    struct lb_selection selection = {0};
    struct lb_plan plan;
    take(&selection, ARGS("--cases", LB_SOURCE_DIR "/bench/cases/quick.txt", "--pass",
                          "infer,train", "--impl", "cpu_ref"));
    take(&selection, simd);
    assert_int_equal(lb_plan_build(&selection, &registry, &plan, NULL), LB_OK);
    assert_int_equal(plan.count, 12 * 2 * 2);
    lb_plan_free(&plan);
    lb_selection_free(&selection);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grids_default_to_f32_infer_and_square_input),
        cmocka_unit_test(every_axis_reaches_its_field),
        cmocka_unit_test(a_projection_has_sizes_and_other_cells_none),
        cmocka_unit_test(implementations_of_a_problem_are_adjacent),
        cmocka_unit_test(batches_of_one_problem_follow_each_other),
        cmocka_unit_test(implementations_stand_for_all_their_variants),
        cmocka_unit_test(axes_fill_what_a_line_left_out),
        cmocka_unit_test(axes_filter_what_a_line_gave),
        cmocka_unit_test(named_implementations_are_filtered_not_filled),
        cmocka_unit_test(repeated_cases_are_planned_once),
        cmocka_unit_test(filter_keeps_what_matches),
        cmocka_unit_test(combinations_that_break_a_rule_are_left_out_and_counted),
        cmocka_unit_test(unknown_names_get_a_suggestion),
        cmocka_unit_test(grids_need_three_sizes),
        cmocka_unit_test(hopeless_products_are_refused_at_once),
        cmocka_unit_test(malformed_choices_are_refused),
        cmocka_unit_test(words_of_axes_are_those_of_case_texts),
        cmocka_unit_test(large_grids_are_planned_fast),
        cmocka_unit_test(builtin_files_plan_for_every_implementation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
