/* Filters: their results, the precedence of operators, and which expressions are refused. */
#include "model/filter.h"
#include "tests/helpers/test.h"

static const struct lb_problem problem = {
    .seq_len = 25, .batch = 8, .input = 13, .hidden = 64, .layers = 2, .directions = 1};

static bool holds(const char *text)
{
    struct lb_error err = {""};
    bool result = false;
    if (lb_filter_check(text, &err) != LB_OK ||
        lb_filter_matches(text, &problem, &result, &err) != LB_OK)
        fail_msg("%s", err.text);
    return result;
}

TEST(sizes_stand_for_the_problem)
{
    assert_true(holds("T==25 && B==8 && I==13 && H==64 && L==2 && D==1"));
    assert_true(holds("T*B<=65536"));
    assert_false(holds("I == H"));
    assert_true(holds("H % 64 == 0"));
    assert_true(holds(" \tT "));
    assert_false(holds("T - 25"));
}

/* Each expression is also valid C, so the compiler computes the expected value. */
#define SAME_AS_C(expression)          \
    {                                  \
#expression, (expression) != 0 \
    }

TEST(operators_group_as_in_c)
{
    const int64_t T = 25, B = 8, I = 13, H = 64, L = 2, D = 1;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses"
    const struct {
        const char *text;
        bool expected;
    } table[] = {
        SAME_AS_C(T - B - I == 4),
        SAME_AS_C(T - (B - I) == 30),
        SAME_AS_C(H / B / L == 4),
        SAME_AS_C(H / B * L == 16),
        SAME_AS_C(T % B * L == 2),
        SAME_AS_C(T + B * L == 41),
        SAME_AS_C(T < B == D < L),
        SAME_AS_C(T < B < L),
        SAME_AS_C(D || L - 2 && I - 13),
        SAME_AS_C((D || L - 2) && I - 13),
        SAME_AS_C(!T + 1 == D),
        SAME_AS_C(!!T == D),
        SAME_AS_C(-T % B == -1),
        SAME_AS_C(-T / B == -3),
        SAME_AS_C(- -T == T),
        SAME_AS_C(D == L == 0),
        SAME_AS_C(D != L != 0),
        SAME_AS_C(T >= 25 && T <= 25 && !(T > 25) && !(T < 25)),
        SAME_AS_C(0 && 1 || 1),
        SAME_AS_C(1 || 1 && 0),
        SAME_AS_C((5 || 0) + 1 == L),
        SAME_AS_C((5 && 7) == 1),
    };
#pragma GCC diagnostic pop
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (holds(table[i].text) != table[i].expected)
            fail_msg("%s: expected %d", table[i].text, table[i].expected);
}

TEST(right_sides_that_do_not_matter_are_not_evaluated)
{
    assert_false(holds("L-2 != 0 && T/(L-2) > 1"));
    assert_true(holds("L-2 == 0 || T/(L-2) > 1"));
    assert_true(holds("0 && T/0 || 1"));
    assert_true(holds("1 || T/0 && T/0"));
}

static void expect_refusal(const char *text, const char *message)
{
    struct lb_error err = {""};
    bool result;
    enum lb_status st = lb_filter_check(text, &err);
    if (st == LB_OK)
        st = lb_filter_matches(text, &problem, &result, &err);
    assert_int_equal(st, LB_INVALID);
    assert_string_equal(err.text, message);
}

TEST(malformed_expressions_name_the_column)
{
#define OPERAND  "expected a number, one of T B I H P L D, or ("
#define OPERATOR "expected an operator (+ - * / % < <= > >= == != && ||) or "
    expect_refusal("", "--where '': column 1: " OPERAND);
    expect_refusal("T*", "--where 'T*': column 3: " OPERAND);
    expect_refusal("T * * B", "--where 'T * * B': column 5: " OPERAND);
    expect_refusal("X > 1", "--where 'X > 1': column 1: " OPERAND);
    expect_refusal("TB > 1", "--where 'TB > 1': column 1: " OPERAND);
    expect_refusal("t > 1", "--where 't > 1': column 1: " OPERAND);
    expect_refusal("(T > 1", "--where '(T > 1': column 7: " OPERATOR ")");
    expect_refusal("T > 1)", "--where 'T > 1)': column 6: " OPERATOR "the end");
    expect_refusal("T B", "--where 'T B': column 3: " OPERATOR "the end");
    expect_refusal("10T", "--where '10T': column 3: " OPERATOR "the end");
    expect_refusal("T = 1",
                   "--where 'T = 1': column 3: write == to compare, && for and, || for or");
    expect_refusal("T & 1",
                   "--where 'T & 1': column 3: write == to compare, && for and, || for or");
    expect_refusal("T < 9223372036854775808",
                   "--where 'T < 9223372036854775808': column 5: a number must be below 2^63");
#undef OPERAND
#undef OPERATOR
}

TEST(results_beyond_64_bits_are_refused)
{
#define MAX "9223372036854775807"
#define AT  " at T25_B8_I13_H64_L2_D1"
    assert_true(holds(MAX " + 0 == " MAX));
    expect_refusal("T*" MAX, "--where 'T*" MAX "': column 2: overflow" AT);
    expect_refusal("1+" MAX, "--where '1+" MAX "': column 2: overflow" AT);
    expect_refusal("-2-" MAX, "--where '-2-" MAX "': column 3: overflow" AT);
    expect_refusal("-(-" MAX "-1)", "--where '-(-" MAX "-1)': column 1: overflow" AT);
    expect_refusal("(-" MAX "-1)/-1", "--where '(-" MAX "-1)/-1': column 25: overflow" AT);
    assert_true(holds("(-" MAX "-1)%-1 == 0"));
    expect_refusal("T/(L-2)", "--where 'T/(L-2)': column 2: division by zero" AT);
    expect_refusal("T%0", "--where 'T%0': column 2: division by zero" AT);
#undef MAX
#undef AT
}
