/* The text form of a case: reading and printing every field, and which texts are refused. */
#include "model/case.h"
#include "tests/helpers/test.h"

static struct lb_case parse(const char *text, unsigned *given)
{
    struct lb_case c;
    struct lb_error err = {""};
    int column = 0;
    if (lb_case_parse(text, &c, given, &column, &err) != LB_OK)
        fail_msg("%s: column %d: %s", text, column, err.text);
    return c;
}

TEST(canonical_texts_print_as_they_were)
{
    static const char *const texts[] = {
        "T25_B16_I512_H512/f32/infer",
        "cpu_ref/T25_B16_I512_H512/f32/infer",
        "cudnn:persist_static/T1024_B16_I768_H768/f16/infer",
        "cpu_simd/T25_B16_I512_H512_L2_D2/f32/train/th2",
        "a/T1_B1_I1_H1/f64/forward",
        "a/T1_B1_I1_H1/bf16/backward",
        "a/T1_B1_I1_H1/f32/infer/tf32",
        "a/T1_B1_I1_H1/f32/infer/half",
        "a/T1_B1_I1_H1/f32/infer/ragged",
        "a/T1_B1_I1_H1/f32/infer/act-relu",
        "a/T1_B1_I1_H1/f32/infer/cell-layernorm",
        "a/T1_B1_I1_H1/f32/infer/cell-recurrent-dropout",
        "a/T1_B1_I1_H1/f32/infer/cell-peephole",
        "a/T1_B1_I1_H1_L2/f32/infer/cell-residual",
        "a/T1_B1_I1_H2_P1/f32/infer",
        "a/T1_B1_I1_H2147483649_P2147483647_L2_D2/f32/infer/ragged",
        "a/T1_B1_I1_H1/f32/infer/graph",
        "a/T1_B1_I1_H1/f32/infer/cold",
        "a/T1_B1_I1_H1/f32/infer/batched",
        "a/T1_B1_I1_H1/f32/infer/th4096",
        "a/T1_B1_I1_H1/f32/infer/stream/x4096/th4096",
        "a/T1_B1_I1_H1_D2/f32/train/tf32/ragged/act-relu/graph/cold/th3",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char text[LB_CASE_ID_SIZE];
        struct lb_case c = parse(texts[i], NULL);
        assert_int_equal(lb_case_print(&c, text), strlen(texts[i]));
        assert_string_equal(text, texts[i]);
    }
}

TEST(short_and_shuffled_texts_print_canonically)
{
    static const struct {
        const char *text, *canonical;
    } table[] = {
        {"T25_B16_H512", "T25_B16_I512_H512/f32/infer"},
        {"H512_I3_B16_T25", "T25_B16_I3_H512/f32/infer"},
        {"T25_B16_H512_L1_D1", "T25_B16_I512_H512/f32/infer"},
        {"T025_B16_H512", "T25_B16_I512_H512/f32/infer"},
        {"cudnn:auto/T1_B2_H3", "cudnn/T1_B2_I3_H3/f32/infer"},
        {"a/T1_B2_H3/th2/cold/train/f16", "a/T1_B2_I3_H3/f16/train/cold/th2"},
        {"a/T1_B2_H3/f32/infer/ieee/full/act-tanh/hot/isolated/th1", "a/T1_B2_I3_H3/f32/infer"},
        {"a/T1_B2_H3/rate100/th2/stream", "a/T1_B2_I3_H3/f32/infer/stream/rate100/th2"},
        {"a/T1_B2_H3/th2/x2/rate100/stream", "a/T1_B2_I3_H3/f32/infer/stream/rate100/x2/th2"},
        {"a/T1_B2_H3/x1", "a/T1_B2_I3_H3/f32/infer"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char text[LB_CASE_ID_SIZE];
        struct lb_case c = parse(table[i].text, NULL);
        lb_case_print(&c, text);
        assert_string_equal(text, table[i].canonical);
    }
}

TEST(every_field_lands_where_it_belongs)
{
    unsigned given;
    struct lb_case c =
        parse("fused:c16/T2_B3_I4_H5_L6_D2/f32/train/half/ragged/act-relu/graph/cold/th7", &given);
    assert_string_equal(c.impl, "fused");
    assert_string_equal(c.variant, "c16");
    assert_int_equal(c.problem.seq_len, 2);
    assert_int_equal(c.problem.batch, 3);
    assert_int_equal(c.problem.input, 4);
    assert_int_equal(c.problem.hidden, 5);
    assert_int_equal(c.problem.layers, 6);
    assert_int_equal(c.problem.directions, 2);
    assert_int_equal(c.problem.dtype, LB_F32);
    assert_int_equal(c.problem.pass, LB_TRAIN);
    assert_int_equal(c.problem.math, LB_HALF);
    assert_int_equal(c.problem.act, LB_ACT_RELU);
    assert_true(c.problem.ragged);
    assert_int_equal(c.launch, LB_GRAPH);
    assert_int_equal(c.cache, LB_COLD);
    assert_int_equal(c.timing, LB_ISOLATED);
    assert_int_equal(c.threads, 7);
    assert_int_equal(c.instances, 1);
    unsigned all = (LB_GIVEN_VARIANT << 1) - 1;
    assert_int_equal(given, all & ~(LB_GIVEN(TIMING) | LB_GIVEN(RATE) | LB_GIVEN(INSTANCES) |
                                    LB_GIVEN(CELL) | LB_GIVEN(PROJECTION)));
}

TEST(given_tells_what_a_text_said_by_itself)
{
    static const struct {
        const char *text;
        unsigned given;
    } table[] = {
        {"T1_B1_H1", 0},
        {"T1_B1_I1_H1", LB_GIVEN(INPUT)},
        {"T1_B1_H1_L1", LB_GIVEN(LAYERS)},
        {"T1_B1_H1_D1", LB_GIVEN(DIRECTIONS)},
        {"a/T1_B1_H1", LB_GIVEN_IMPL},
        {"a:auto/T1_B1_H1", LB_GIVEN_IMPL | LB_GIVEN_VARIANT},
        {"T1_B1_H1/f32", LB_GIVEN(DTYPE)},
        {"T1_B1_H1/infer", LB_GIVEN(PASS)},
        {"T1_B1_H1/ieee", LB_GIVEN(MATH)},
        {"T1_B1_H1/full", LB_GIVEN(RAGGED)},
        {"T1_B1_H1/act-tanh", LB_GIVEN(ACT)},
        {"T1_B1_H1/cell-standard", LB_GIVEN(CELL) | LB_GIVEN(PROJECTION)},
        {"T1_B1_H2_P1", LB_GIVEN(CELL) | LB_GIVEN(PROJECTION)},
        {"T1_B1_H1/graph", LB_GIVEN(LAUNCH)},
        {"T1_B1_H1/stream/rate5", LB_GIVEN(TIMING) | LB_GIVEN(RATE)},
        {"T1_B1_H1/x1", LB_GIVEN(INSTANCES)},
        {"T1_B1_H1/hot", LB_GIVEN(CACHE)},
        {"T1_B1_H1/isolated", LB_GIVEN(TIMING)},
        {"T1_B1_H1/th1", LB_GIVEN(THREADS)},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        unsigned given;
        parse(table[i].text, &given);
        assert_int_equal(given & ~(LB_GIVEN(SEQ_LEN) | LB_GIVEN(BATCH) | LB_GIVEN(HIDDEN)),
                         table[i].given);
    }
}

TEST(malformed_texts_name_the_column_and_what_is_allowed)
{
    static const struct {
        const char *text;
        int column;
        const char *says; /* a part of the message */
    } table[] = {
        {"", 1, "neither an implementation's name"},
        {"cpu_ref", 8, "sizes such as T25_B16_I512_H512 must follow"},
        {"cpu_ref/", 9, "sizes such as T25_B16_I512_H512 must follow"},
        {"t25_b16_h512", 13, "sizes such as"},
        {"cpu-ref/T1_B1_H1", 1, "'cpu-ref' is neither an implementation's name (a-z, 0-9, _)"},
        {"cudnn:/T1_B1_H1", 7, "'' is not a variant's name (a-z, 0-9, _)"},
        {"a23456789012345678901234567890123/T1_B1_H1", 1, "neither an implementation's name"},
        {"T1_B1", 1, "T, B and H must be given"},
        {"T1_B1_H1_", 10, "'': a size is T, B, I, H, P, L or D and a number"},
        {"T1_B1_H1_X2", 10, "'X2': a size is"},
        {"T1_B1_H1_T2", 10, "T is given twice"},
        {"T0_B1_H1", 2, "must be 1 or more"},
        {"T1.5_B1_H1", 2, "'1.5' is not a whole number"},
        {"T1_B9223372036854775808_H1", 5, "a number must be below 2^63"},
        {"T1_B1_H1_D3", 11, "3: directions must be 1 or 2"},
        {"T1_B1_H1/", 10, "'': allowed are a dtype"},
        {"T1_B1_H1/f31", 10, "'f31': allowed are a dtype (f64 f32 f16 bf16 int8)"},
        {"T1_B1_H1/f32/f16", 14, "'f16': its field is given twice"},
        {"T1_B1_H1/th0", 10, "th0: threads must be 1 to 4096"},
        {"T1_B1_H1/th4097", 10, "th4097: threads must be 1 to 4096"},
        {"T1_B1_H1/f16/tf32", 1, "math tf32 goes with dtype f32, not f16"},
        {"T1_B1_H1_P1", 1, "cell projection: P must be from 1 to H - 1, and is 1 for H1"},
        {"T1_B1_H9_P2147483648", 11, "P2147483648: projection must be 1 to 2147483647"},
        {"T1_B1_H9_P2/cell-peephole", 13, "'cell-peephole': its field is given twice"},
        {"T1_B1_H9/cell-projection", 10, "projection is a size, as in H512_P128"},
        {"T1_B1_H9/cell-residual", 1, "it needs L2 or more"},
        {"T1_B1_H9/cell-peephole/act-relu", 1, "cell peephole goes with act tanh, not relu"},
        {"T1_B1_H1/batched/cold", 1, "batched timing keeps caches hot"},
        {"T1_B1_H1/batched/backward", 1, "timed isolated only"},
        {"T1_B1_H1/x0", 10, "x0: instances must be 1 to 4096"},
        {"T1_B1_H1/x2", 1, "several instances go with timing stream and hot caches"},
        {"T1_B1_H1/stream/cold/x2", 1, "not stream and cold"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct lb_case c;
        struct lb_error err = {""};
        int column = 0;
        if (lb_case_parse(table[i].text, &c, NULL, &column, &err) != LB_INVALID)
            fail_msg("'%s' was accepted", table[i].text);
        if (column != table[i].column || !strstr(err.text, table[i].says))
            fail_msg("'%s': column %d: %s", table[i].text, column, err.text);
    }
}

static struct lb_case random_case(void)
{
    static const char *const names[] = {"", "a", "cpu_ref", "a234567890123456789012345678901"};
    struct lb_case c = lb_case_defaults();
    struct lb_problem *p = &c.problem;
    int64_t *const sizes[] = {&p->seq_len, &p->batch, &p->input, &p->hidden, &p->layers};
    snprintf(c.impl, sizeof(c.impl), "%s", names[rand() % 4]);
    if (c.impl[0])
        snprintf(c.variant, sizeof(c.variant), "%s", names[rand() % 4]);
    for (size_t i = 0; i < 5; i++) /* every magnitude alike */
        *sizes[i] = (INT64_MAX >> rand() % 63) - (rand() % 2 && i < 4 ? 1 : 0);
    for (size_t i = 0; i < 5; i++)
        *sizes[i] += *sizes[i] == 0;
    p->directions = 1 + rand() % 2;
    p->dtype = (enum lb_dtype)(rand() % LB_DTYPE_COUNT);
    p->pass = (enum lb_pass)(rand() % LB_PASS_COUNT);
    p->math = (enum lb_math)(rand() % LB_MATH_COUNT);
    p->act = (enum lb_act)(rand() % LB_ACT_COUNT);
    p->ragged = rand() % 2;
    p->cell = (uint8_t)(rand() % LB_CELL_COUNT);
    if (p->cell == LB_CELL_PROJECTION)
        p->projection = 1 + (INT32_MAX >> rand() % 31) / 2;
    c.launch = (enum lb_launch)(rand() % LB_LAUNCH_COUNT);
    c.cache = (enum lb_cache)(rand() % LB_CACHE_COUNT);
    c.timing = (enum lb_timing)(rand() % LB_TIMING_COUNT);
    c.threads = 1 + rand() % LB_MAX_THREADS;
    c.rate = rand() % 2 ? 0 : 1 + rand() % LB_MAX_RATE;
    c.instances = rand() % 2 ? 1 : 1 + rand() % LB_MAX_THREADS;
    return c;
}

TEST(random_cases_come_back_from_their_text)
{
    srand(1);
    for (int i = 0; i < 20000; i++) {
        struct lb_case c = random_case(), back;
        char text[LB_CASE_ID_SIZE];
        size_t length = lb_case_print(&c, text);
        assert_int_equal(length, strlen(text));
        assert_true(length < LB_CASE_ID_SIZE - 1);
        enum lb_status st = lb_case_parse(text, &back, NULL, NULL, NULL);
        assert_int_equal(st, lb_case_check(&c, NULL)); /* only rules between fields may refuse */
        if (st == LB_OK && !lb_case_same(&c, &back))
            fail_msg("%s came back changed", text);
    }
}

TEST(the_same_means_the_same_text)
{
    srand(2);
    for (int i = 0; i < 20000; i++) {
        struct lb_case a = random_case(), b = a, other = random_case();
        switch (rand() % 10) { /* near misses, which random pairs would not give */
        case 0: memcpy(b.variant, other.variant, sizeof(b.variant)); break;
        case 1: b.problem.seq_len = other.problem.seq_len; break;
        case 2: b.problem.layers = other.problem.layers; break;
        case 3: b.problem.directions = other.problem.directions; break;
        case 4: b.problem.math = other.problem.math; break;
        case 5: b.launch = other.launch; break;
        case 6: b.threads = other.threads; break;
        case 8: b.instances = other.instances; break;
        case 7:
            b.problem.cell = other.problem.cell;
            b.problem.projection = other.problem.projection;
            break;
        default: b.problem.ragged = other.problem.ragged; break;
        }
        if (!b.impl[0])
            continue;
        char text_a[LB_CASE_ID_SIZE], text_b[LB_CASE_ID_SIZE];
        lb_case_print(&a, text_a);
        lb_case_print(&b, text_b);
        assert_int_equal(lb_case_same(&a, &b), strcmp(text_a, text_b) == 0);
    }
}
