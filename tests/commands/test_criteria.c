/* The criteria of the frameworks: layers are held to them, and wrong settings are named. */
#include "commands/explain_layer.h"
#include "tests/helpers/test.h"

static const char *const all[] = {"keras", "keras2", "tensorflow1", "pytorch", "pytorch_cpu"};

/* Whether the fast kernel runs for a layer. */
static bool met(const char *name, const char *layer)
{
    struct lb_criteria criteria;
    struct lb_error err = {""};
    enum lb_status st = lb_criteria_read(name, &criteria, &err);
    if (st == LB_OK)
        st = lb_criteria_set(&criteria, layer, &err);
    if (st != LB_OK)
        fail_msg("%s", err.text);
    bool fast = lb_criteria_met(&criteria);
    lb_criteria_free(&criteria);
    return fast;
}

TEST(defaults_run_the_fast_kernel)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        assert_true(met(all[i], ""));
}

TEST(each_criterion_can_fail)
{
    static const char *const keras[] = {
        "device=cpu",     "use_cudnn=false", "activation=relu",       "recurrent_activation=relu",
        "use_bias=False", "unroll=true",     "recurrent_dropout=0.1", "mask=left"};
    for (size_t i = 0; i < sizeof(keras) / sizeof(keras[0]); i++)
        assert_false(met("keras", keras[i]));
    assert_false(met("keras", " units = 512 , activation = 'relu' "));
    assert_true(met("keras", "units=512, dtype=mixed_float16, dropout=0.5, mask=right"));
}

TEST(conditions_on_numbers_and_other_settings_hold)
{
    assert_true(met("pytorch", "proj_size=64, hidden_size=128"));
    assert_false(met("pytorch", "proj_size=128, hidden_size=128"));
    assert_false(met("pytorch", "dtype=bfloat16, compute=7.5"));
    assert_true(met("pytorch", "dtype=float16, compute=7.5"));
    assert_false(met("pytorch_cpu", "dtype=bfloat16, bf16_cpu=false"));
    assert_true(met("pytorch_cpu", "dtype=float32, bf16_cpu=false"));
}

TEST(algorithms_are_picked_in_order)
{
    static const struct {
        const char *layer, *algorithm;
    } cases[] = {
        {"hidden_size=1100, dtype=float16", "standard"},
        {"hidden_size=192, dtype=float32", "persist_static_small_h"},
        {"hidden_size=192, dtype=float32, pass=train", "standard"},
        {"hidden_size=512, input_size=512, batch=16, dtype=float16", "persist_static"},
        {"hidden_size=512, input_size=512, batch=12, dtype=float16", "standard"},
        {"hidden_size=512, input_size=512, batch=16, dtype=float16, compute=8.6", "standard"},
        {"hidden_size=64, packed=true", "standard"},
        {"hidden_size=128", "persist_static_small_h"},
        {"hidden_size=128, proj_size=64", "standard"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_criteria criteria;
        assert_int_equal(lb_criteria_read("pytorch", &criteria, NULL), LB_OK);
        assert_int_equal(lb_criteria_set(&criteria, cases[i].layer, NULL), LB_OK);
        assert_string_equal(lb_criteria_algorithm(&criteria), cases[i].algorithm);
        lb_criteria_free(&criteria);
    }
}

TEST(the_price_names_the_layers_sizes)
{
    struct lb_criteria criteria;
    char text[1000];
    assert_int_equal(lb_criteria_read("keras", &criteria, NULL), LB_OK);
    assert_int_equal(lb_criteria_set(&criteria, "units=77, dtype=mixed_float16", NULL), LB_OK);
    lb_criteria_price(&criteria, text, sizeof(text));
    assert_non_null(strstr(text, "-H 77 --dtype f16 "));
    assert_null(strchr(text, '{'));
    lb_criteria_free(&criteria);

    assert_int_equal(lb_criteria_read("pytorch", &criteria, NULL), LB_OK);
    lb_criteria_price(&criteria, text, sizeof(text));
    assert_null(strstr(text, "projection"));
    assert_int_equal(lb_criteria_set(&criteria, "proj_size=32", NULL), LB_OK);
    lb_criteria_price(&criteria, text, sizeof(text));
    assert_non_null(strstr(text, " --cell projection -P 32"));
    lb_criteria_free(&criteria);
}

TEST(wrong_settings_are_named)
{
    static const struct {
        const char *layer, *said;
    } cases[] = {
        {"unit=5", "did you mean units?"},       {"units=many", "a number was expected"},
        {"activation=tahn", "allowed are tanh"}, {"relu", "name=value was expected"},
        {"units=nan", "a number was expected"},  {"zzzzzz=1", "there are backend, units"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_criteria criteria;
        struct lb_error err = {""};
        assert_int_equal(lb_criteria_read("keras", &criteria, &err), LB_OK);
        assert_int_equal(lb_criteria_set(&criteria, cases[i].layer, &err), LB_INVALID);
        if (!strstr(err.text, cases[i].said))
            fail_msg("%s: %s", cases[i].layer, err.text);
        lb_criteria_free(&criteria);
    }
}

TEST(unknown_names_tell_which_there_are)
{
    struct lb_criteria criteria;
    struct lb_error err = {""};
    assert_int_equal(lb_criteria_read("caffe", &criteria, &err), LB_INVALID);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        assert_non_null(strstr(err.text, all[i]));
    assert_int_equal(lb_criteria_read("../cases/cpu", &criteria, &err), LB_INVALID);
}
