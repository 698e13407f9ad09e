/* Axes of numbers and of words, and suggestions of names. */
#include "base/suggest.h"
#include "model/axes.h"
#include "tests/helpers/test.h"

static const struct lb_axis_info batch = {.flag = "-B", .what = "batch", .max = INT64_MAX};
static const struct lb_axis_info directions = {.flag = "-D", .what = "directions", .max = 2};
static const struct lb_axis_info dtypes = {
    .flag = "--dtype", .words = (const char *const[]){"f64", "f32", "f16", "bf16", NULL}};

static void expect_numbers(const char *text, const int64_t *values, size_t count)
{
    struct lb_axis axis = {0};
    struct lb_error err = {""};
    assert_int_equal(lb_axis_add(&axis, &batch, text, &err), LB_OK);
    assert_int_equal(axis.count, count);
    assert_memory_equal(axis.values, values, count * sizeof(*values));
    lb_axis_free(&axis);
}

#define EXPECT_NUMBERS(text, ...)                        \
    expect_numbers(text, (const int64_t[]){__VA_ARGS__}, \
                   sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

TEST(lists_and_ranges_hold_what_they_say)
{
    EXPECT_NUMBERS("1", 1);
    EXPECT_NUMBERS("1,8,64", 1, 8, 64);
    EXPECT_NUMBERS("64:1024:x2", 64, 128, 256, 512, 1024);
    EXPECT_NUMBERS("64:512:+64", 64, 128, 192, 256, 320, 384, 448, 512);
    EXPECT_NUMBERS("1,64:192:+64,7", 1, 64, 128, 192, 7);
    EXPECT_NUMBERS("5,5", 5, 5); /* repetitions are the plan's to drop */
}

TEST(ranges_end_below_a_last_number_that_steps_miss)
{
    EXPECT_NUMBERS("64:1000:x2", 64, 128, 256, 512);
    EXPECT_NUMBERS("1:10:+4", 1, 5, 9);
    EXPECT_NUMBERS("8:8:+1", 8);
    EXPECT_NUMBERS("8:8:x2", 8);
    EXPECT_NUMBERS("3:100:x3", 3, 9, 27, 81);
}

TEST(ranges_stop_at_the_end_of_64_bits)
{
    EXPECT_NUMBERS("9223372036854775807", INT64_MAX);
    EXPECT_NUMBERS("4611686018427387904:9223372036854775807:x2", INT64_C(1) << 62);
    EXPECT_NUMBERS("9223372036854775806:9223372036854775807:+1", INT64_MAX - 1, INT64_MAX);
    EXPECT_NUMBERS("1:9223372036854775807:+9223372036854775807", 1);
    EXPECT_NUMBERS("2:9223372036854775807:x9223372036854775807", 2);
}

static void expect_refusal(const struct lb_axis_info *info, const char *text, const char *message)
{
    struct lb_axis axis = {0};
    struct lb_error err = {""};
    assert_int_equal(lb_axis_add(&axis, info, text, &err), LB_INVALID);
    assert_string_equal(err.text, message);
    assert_int_equal(axis.count, 0);
    lb_axis_free(&axis);
}

TEST(malformed_numbers_say_where_and_what_is_allowed)
{
    static const struct {
        const char *text, *message;
    } table[] = {
        {"0", "-B 0: batch must be 1 or more"},
        {"8,0", "-B 8,0: column 3: batch must be 1 or more"},
        {"1.5", "-B 1.5: '1.5' is not a whole number: batch must be 1 or more"},
        {"8x", "-B 8x: '8x' is not a whole number: batch must be 1 or more"},
        {"", "-B '': a number is missing: batch must be 1 or more"},
        {"1,,2", "-B 1,,2: column 3: a number is missing: batch must be 1 or more"},
        {"9223372036854775808", "-B 9223372036854775808: batch must be below 2^63"},
        {"1,512:64:+64", "-B 1,512:64:+64: column 3: empty range: 512 is above 64"},
        {"64:512", "-B 64:512: column 7: a range needs a step: 64:512:+64 adds, "
                   "64:512:x2 multiplies"},
        {"64:512:+0", "-B 64:512:+0: column 9: step must be 1 or more"},
        {"64:512:x1", "-B 64:512:x1: column 9: factor must be 2 or more"},
        {"64:512:+-1",
         "-B 64:512:+-1: column 9: '-1' is not a whole number: step must be 1 or more"},
        {"1:2:+1:3", "-B 1:2:+1:3: column 7: ':' after a range: write 64:512:+64 or 64:1024:x2, "
                     "commas between"},
        {"0:8:+1", "-B 0:8:+1: batch must be 1 or more"},
        {"1:10000001:+1", "-B 1:10000001:+1: more than 10000000 values"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        expect_refusal(&batch, table[i].text, table[i].message);
}

TEST(upper_limits_are_named)
{
    struct lb_axis axis = {0};
    assert_int_equal(lb_axis_add(&axis, &directions, "1,2", NULL), LB_OK);
    lb_axis_free(&axis);
    expect_refusal(&directions, "3", "-D 3: directions must be 1 or 2");
}

TEST(words_are_their_place_in_the_list)
{
    struct lb_axis axis = {0};
    assert_int_equal(lb_axis_add(&axis, &dtypes, "bf16,f64", NULL), LB_OK);
    assert_int_equal(axis.count, 2);
    assert_int_equal(axis.values[0], 3);
    assert_int_equal(axis.values[1], 0);
    lb_axis_free(&axis);
}

TEST(unknown_words_get_the_list_and_a_suggestion)
{
    static const struct {
        const char *text, *message;
    } table[] = {
        {"fp16", "--dtype fp16: there is no 'fp16'; did you mean f16?"},
        {"f32,F32", "--dtype f32,F32: column 5: there is no 'F32'; did you mean f32?"},
        {"double", "--dtype double: there is no 'double'; there are f64, f32, f16, bf16"},
        {"f32,", "--dtype f32,: column 5: there is no ''; there are f64, f32, f16, bf16"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        expect_refusal(&dtypes, table[i].text, table[i].message);
}

TEST(suggestion_forgives_small_slips_only)
{
    static const char *const names[] = {"cpu_ref", "cpu_simd", "onednn", "cudnn", NULL};
    static const struct {
        const char *word, *suggestion;
    } table[] = {
        {"cpu_smid", "cpu_simd"},
        {"cudn", "cudnn"},
        {"CUDNN", "cudnn"},
        {"onednnn", "onednn"},
        {"cpu-ref", "cpu_ref"},
        {"one", "onednn"},
        {"cpu", "cpu_ref"},
        {"tensorflow", NULL},
        {"x", NULL},
        {"", NULL},
        {"cpusimd", "cpu_simd"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct lb_hint hint = {0};
        for (int k = 0; names[k]; k++)
            lb_hint_add(&hint, table[i].word, names[k]);
        if (!table[i].suggestion)
            assert_int_equal(hint.distance, 0);
        else if (hint.distance == 0 || !strstr(hint.text, table[i].suggestion))
            fail_msg("%s: %s", table[i].word, hint.text);
    }
}
