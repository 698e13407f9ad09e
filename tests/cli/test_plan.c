/* Plans: which cases a selection stands for, and in which order. */
#include "base/text.h"
#include "cli/plan.h"
#include "tests/helpers/test.h"

static char cpu_ref[] = "cpu_ref", cpu_simd[] = "cpu_simd", cudnn[] = "cudnn", first[] = "auto",
            second[] = "standard", third[] = "persist_static";
static char *cudnn_variants[] = {first, second, third, NULL};

static struct lb_impl_entry impl_entries[] = {
    {.name = cpu_ref}, {.name = cpu_simd}, {.name = cudnn, .variants = cudnn_variants}};

static const struct lb_registry registry = {.impl_entries = impl_entries, .count = 3};

/* Plans what options and their values stand for, with one space between. */
static enum lb_status build(const char *arguments, struct lb_plan *plan, struct lb_error *err)
{
    struct lb_selection selection = {0};
    char *words = strdup(arguments), *at = words;
    assert_non_null(words);
    while (at) {
        struct lb_error why = {""};
        const char *option = strsep(&at, " "), *value = strsep(&at, " ");
        if (lb_selection_take(&selection, option, value, &why) != LB_OK)
            fail_msg("%s", why.text);
    }
    enum lb_status st = lb_plan_build(&selection, &registry, plan, err);
    lb_selection_free(&selection);
    free(words);
    return st;
}

/* Options, and the cases that they stand for in the order of the plan, each with a space behind. */
static const struct {
    const char *property, *arguments, *cases;
} selections[] = {
    {"a grid defaults to f32, infer and square input", "-T 2 -B 3 -H 4,5 --impl cpu_simd",
     "cpu_simd/T2_B3_I4_H4/f32/infer cpu_simd/T2_B3_I5_H5/f32/infer "},
    {"input sizes are an axis", "-T 2 -B 3 -H 4 -I 4,7 --impl cpu_simd",
     "cpu_simd/T2_B3_I4_H4/f32/infer cpu_simd/T2_B3_I7_H4/f32/infer "},
    {"every axis reaches its field",
     "-T 2 -B 3 -I 4 -H 5 -L 6 -D 2 --dtype f32 --pass train --math tf32 --ragged ragged --act "
     "relu --launch graph --cache cold --timing isolated --threads 7 --impl cpu_ref",
     "cpu_ref/T2_B3_I4_H5_L6_D2/f32/train/tf32/ragged/act-relu/graph/cold/th7 "},
    {"batched timing has a field", "-T 2 -B 3 -H 5 --timing batched --dtype bf16 --impl cpu_ref",
     "cpu_ref/T2_B3_I5_H5/bf16/infer/batched "},
    {"P is H/4, and at least 1; other cells have none",
     "-T 2 -B 3 -H 8,2 --cell standard,projection,peephole --impl cpu_ref",
     "cpu_ref/T2_B3_I8_H8/f32/infer cpu_ref/T2_B3_I8_H8_P2/f32/infer "
     "cpu_ref/T2_B3_I8_H8/f32/infer/cell-peephole cpu_ref/T2_B3_I2_H2/f32/infer "
     "cpu_ref/T2_B3_I2_H2_P1/f32/infer cpu_ref/T2_B3_I2_H2/f32/infer/cell-peephole "},
    {"P8 is not below H", "-T 2 -B 3 -H 8 --cell projection,standard -P 3,5,8 --impl cpu_ref",
     "cpu_ref/T2_B3_I8_H8_P3/f32/infer cpu_ref/T2_B3_I8_H8_P5/f32/infer "
     "cpu_ref/T2_B3_I8_H8/f32/infer "},
    {"residual cells need layers", "-T 2 -B 3 -H 8 -L 1,2 --cell residual --impl cpu_ref",
     "cpu_ref/T2_B3_I8_H8_L2/f32/infer/cell-residual "},
    {"P can be filtered by", "-T 2 -B 3 -H 8 --cell projection -P 2,4 --where P<3 --impl cpu_ref",
     "cpu_ref/T2_B3_I8_H8_P2/f32/infer "},
    {"-P filters lines with a projection alone",
     "--case cpu_ref/T2_B3_H8_P2 --case cpu_ref/T2_B3_H8 -P 2",
     "cpu_ref/T2_B3_I8_H8_P2/f32/infer cpu_ref/T2_B3_I8_H8/f32/infer "},
    {"implementations of a problem are adjacent in a grid",
     "-T 1 -B 1,8 -H 4 --pass infer,train --impl cpu_simd,cpu_ref",
     "cpu_simd/T1_B1_I4_H4/f32/infer cpu_ref/T1_B1_I4_H4/f32/infer "
     "cpu_simd/T1_B1_I4_H4/f32/train cpu_ref/T1_B1_I4_H4/f32/train "
     "cpu_simd/T1_B8_I4_H4/f32/infer cpu_ref/T1_B8_I4_H4/f32/infer "
     "cpu_simd/T1_B8_I4_H4/f32/train cpu_ref/T1_B8_I4_H4/f32/train "},
    {"implementations of a problem are adjacent when lines name them",
     "--case cpu_ref/T1_B1_H1 --case cpu_ref/T2_B1_H1 --case cpu_simd/T1_B1_H1 --case "
     "cpu_simd/T2_B1_H1/th2",
     "cpu_ref/T1_B1_I1_H1/f32/infer cpu_simd/T1_B1_I1_H1/f32/infer "
     "cpu_ref/T2_B1_I1_H1/f32/infer cpu_simd/T2_B1_I1_H1/f32/infer/th2 "},
    {"batches of one problem follow each other", "-T 1 -B 1,2 -H 4,5 --impl cpu_ref",
     "cpu_ref/T1_B1_I4_H4/f32/infer cpu_ref/T1_B2_I4_H4/f32/infer "
     "cpu_ref/T1_B1_I5_H5/f32/infer cpu_ref/T1_B2_I5_H5/f32/infer "},
    {"without --impl, all implementations with all variants run", "-T 1 -B 1 -H 1",
     "cpu_ref/T1_B1_I1_H1/f32/infer cpu_simd/T1_B1_I1_H1/f32/infer cudnn/T1_B1_I1_H1/f32/infer "
     "cudnn:standard/T1_B1_I1_H1/f32/infer cudnn:persist_static/T1_B1_I1_H1/f32/infer "},
    {"auto is a variant", "-T 1 -B 1 -H 1 --impl cudnn:auto", "cudnn/T1_B1_I1_H1/f32/infer "},
    {"a variant that was named comes once, and first",
     "-T 1 -B 1 -H 1 --impl cudnn:standard --impl cudnn",
     "cudnn:standard/T1_B1_I1_H1/f32/infer cudnn/T1_B1_I1_H1/f32/infer "
     "cudnn:persist_static/T1_B1_I1_H1/f32/infer "},
    {"axes fill in the dtype of a line", "--case T1_B1_H2 --dtype f16,bf16 --impl cpu_ref",
     "cpu_ref/T1_B1_I2_H2/f16/infer cpu_ref/T1_B1_I2_H2/bf16/infer "},
    {"axes fill in sizes of a line", "--case T1_B1_H2 -L 1,3 -I 5 --impl cpu_ref",
     "cpu_ref/T1_B1_I5_H2/f32/infer cpu_ref/T1_B1_I5_H2_L3/f32/infer "},
    {"a line keeps its own words", "--case T1_B1_H2/train/th2 --impl cpu_ref",
     "cpu_ref/T1_B1_I2_H2/f32/train/th2 "},
    {"axes filter the dtype of a line",
     "--case T1_B1_H2/f32 --case T1_B1_H3/f16 --case T1_B1_H4 --dtype f16 --impl cpu_ref",
     "cpu_ref/T1_B1_I3_H3/f16/infer cpu_ref/T1_B1_I4_H4/f16/infer "},
    {"axes filter the sizes of a line", "--case T1_B1_H2 --case T2_B1_H2 -T 2,3 --impl cpu_ref",
     "cpu_ref/T2_B1_I2_H2/f32/infer "},
    {"axes filter the layers of a line",
     "--case T1_B1_H2_L2 --case T1_B1_H2_L1 -L 1 --impl cpu_ref", "cpu_ref/T1_B1_I2_H2/f32/infer "},
    {"all lines can be filtered", "--case T1_B1_H2/f32 --dtype f16", ""},
    {"lines name implementations", "--case cpu_ref/T1_B1_H1 --case cudnn/T1_B1_H1",
     "cpu_ref/T1_B1_I1_H1/f32/infer cudnn/T1_B1_I1_H1/f32/infer "},
    {"--impl filters lines that name one",
     "--case cpu_ref/T1_B1_H1 --case cudnn/T1_B1_H1 --impl cudnn", "cudnn/T1_B1_I1_H1/f32/infer "},
    {"a line without a variant means auto", "--case cudnn/T1_B1_H1 --impl cudnn:standard", ""},
    {"repeated values are planned once",
     "-T 1,1 -B 1:2:+1,2 -H 4 -I 4,4 --impl cpu_ref,cpu_ref:auto",
     "cpu_ref/T1_B1_I4_H4/f32/infer cpu_ref/T1_B2_I4_H4/f32/infer "},
    {"repeated lines are planned once",
     "--case T1_B1_H4 --case T1_B1_I4_H4_L1/f32/infer --impl cpu_ref",
     "cpu_ref/T1_B1_I4_H4/f32/infer "},
    {"all --where hold", "-T 1:4:+1 -B 1:4:+1 -H 8 --where T*B==4 --where T!=B --impl cpu_ref",
     "cpu_ref/T1_B4_I8_H8/f32/infer cpu_ref/T4_B1_I8_H8/f32/infer "},
    {"--where compares two axes", "-T 1 -B 1 -H 8,9 -I 9 --where I==H --impl cpu_ref",
     "cpu_ref/T1_B1_I9_H9/f32/infer "},
    {"--where knows what I is left out for",
     "--case T1_B1_H8 --case T1_B1_H9 --where I>8 --impl cpu_ref",
     "cpu_ref/T1_B1_I9_H9/f32/infer "},
    {"what breaks a rule is left out", "--case T1_B1_H1/tf32 --dtype f16,f32 --impl cpu_ref",
     "cpu_ref/T1_B1_I1_H1/f32/infer/tf32 "},
};

TEST(selections_stand_for_their_cases_in_order)
{
    for (size_t i = 0; i < sizeof(selections) / sizeof(selections[0]); i++) {
        struct lb_plan plan;
        struct lb_error err = {""};
        char texts[1024] = "";
        print_message("%s\n", selections[i].property);
        if (build(selections[i].arguments, &plan, &err) != LB_OK)
            fail_msg("%s", err.text);
        for (size_t k = 0; k < plan.count; k++) {
            char text[LB_CASE_ID_SIZE];
            lb_case_print(&plan.cases[k], text);
            lb_append(texts, sizeof(texts), "%s ", text);
        }
        assert_string_equal(texts, selections[i].cases);
        lb_plan_free(&plan);
    }
}

TEST(what_stands_for_no_plan_is_refused_with_a_reason)
{
    static const char *const refused[][2] = {
        {"-T 2 -B 3 -H 8 -P 2", "-P: no case has the cell projection; add --cell projection"},
        {"-T 1 -B 1 -H 1 --where T/(B-1)",
         "--where 'T/(B-1)': column 2: division by zero at T1_B1_I1_H1_L1_D1"},
        {"-T 1 -B 1 -H 1 --impl cpu_smid",
         "--impl: no implementation 'cpu_smid'; did you mean cpu_simd?"},
        {"-T 1 -B 1 -H 1 --impl tensorflow",
         "--impl: no implementation 'tensorflow'; there are cpu_ref, cpu_simd, cudnn; "
         "--plugin and --framework add others"},
        {"-T 1 -B 1 -H 1 --impl cudnn:standart",
         "--impl: no variant cudnn:standart; did you mean standard?"},
        {"-T 1 -B 1 -H 1 --impl cudnn:fast",
         "--impl: no variant cudnn:fast; there are auto, standard, persist_static"},
        {"-T 1 -B 1 -H 1 --impl cpu_ref:fast", "--impl: cpu_ref:fast: cpu_ref has no variants"},
        {"--case cudn/T1_B1_H1", "--case: no implementation 'cudn'; did you mean cudnn?"},
        {"-T 1 -H 1", "-B is missing: a grid needs -T, -B and -H; or give --cases or --case"},
        {"--dtype f32", "-T is missing: a grid needs -T, -B and -H; or give --cases or --case"},
        {"-T 1:1000000:+1 -B 1:1000000:+1 -H 1:1000000:+1 -I 1:1000000:+1",
         "more than 100000000 combinations of axes, cases and implementations: narrow one"},
        {"-T 1:1000001:+1 -B 1 -H 1 --impl cpu_ref",
         "more than 1000000 cases: narrow an axis, or use --where or --impl"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct lb_plan plan;
        struct lb_error err = {""};
        assert_int_equal(build(refused[i][0], &plan, &err), LB_INVALID);
        assert_string_equal(err.text, refused[i][1]);
        assert_true(plan.cases == NULL && plan.count == 0);
    }
}

TEST(what_a_plan_leaves_out_is_counted)
{
    static const struct {
        const char *arguments;
        size_t count, filtered, left_out;
    } plans[] = {
        {"--case T1_B1_H2/f32 --dtype f16", 0, 1, 0},
        {"-T 1:4:+1 -B 1 -H 1 --pass infer,train --where T>3 --impl cudnn", 6, 18, 0},
        {"-T 1,2 -B 1 -H 1 --dtype f32,f16 --math ieee,tf32 --impl cpu_ref,cpu_simd", 12, 0, 4},
        {"--cases " LB_SOURCE_DIR "/bench/cases/quick.txt --pass infer,train --impl cpu_ref "
         "--impl cpu_simd",
         12 * 2 * 2, 0, 0},
    };
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        struct lb_plan plan;
        assert_int_equal(build(plans[i].arguments, &plan, NULL), LB_OK);
        assert_int_equal(plan.count, plans[i].count);
        assert_int_equal(plan.filtered, plans[i].filtered);
        assert_int_equal(plan.left_out, plans[i].left_out);
        if (plan.left_out > 0)
            assert_string_equal(plan.because.text, "math tf32 goes with dtype f32, not f16");
        lb_plan_free(&plan);
    }
    struct lb_selection selection = {0};
    struct lb_error err;
    assert_int_equal(lb_selection_take(&selection, "--case", "T1_B1_H1/f16/tf32", &err),
                     LB_INVALID);
    assert_string_equal(err.text, "--case T1_B1_H1/f16/tf32: column 1: math tf32 goes with dtype "
                                  "f32, not f16");
    lb_selection_free(&selection);
}

TEST(words_of_axes_are_those_of_case_texts)
{
    for (size_t i = 0; i < LB_AXIS_COUNT; i++) {
        for (size_t k = 0; lb_axis_table[i].words && lb_axis_table[i].words[k]; k++) {
            struct lb_case c;
            unsigned given;
            char text[64];
            if (i == LB_AXIS_LAUNCH && k == LB_STREAM)
                continue; /* the default, which no text names: there "stream" is the timing */
            bool projects = i == LB_AXIS_CELL && k == LB_CELL_PROJECTION; /* has a size instead */
            snprintf(text, sizeof(text), "T1_B1_H2%s%s%s", i == LB_AXIS_CELL ? "_L2" : "",
                     projects            ? "_P1"
                     : i == LB_AXIS_ACT  ? "/act-"
                     : i == LB_AXIS_CELL ? "/cell-"
                                         : "/",
                     projects ? "" : lb_axis_table[i].words[k]);
            assert_int_equal(lb_case_parse(text, &c, &given, NULL, NULL), LB_OK);
            unsigned others = LB_GIVEN(SEQ_LEN) | LB_GIVEN(BATCH) | LB_GIVEN(HIDDEN) |
                              (i == LB_AXIS_CELL ? LB_GIVEN(LAYERS) | LB_GIVEN(PROJECTION) : 0u);
            assert_int_equal(given & ~others, 1u << i);
            assert_int_equal(lb_axis_get(&c, (enum lb_axis_id)i), k);
        }
    }
}

TEST(large_grids_are_planned_whole)
{
    struct lb_plan plan;
    assert_int_equal(build("--impl cpu_ref --dtype f32 --pass infer -T 1:1000:+1 -B 1:128:x2 -H "
                           "32:512:+32",
                           &plan, NULL),
                     LB_OK);
    assert_int_equal(plan.count, 128000); /* when each case is sought among all others: minutes */
    lb_plan_free(&plan);
}
