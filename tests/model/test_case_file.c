/* Case files: which forms are accepted, what is refused at which position, and every file in
 * bench/cases. */
#include <unistd.h>

#include "model/case_file.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/test.h"

static const char *path;

static int make_path(void **state)
{
    if (scratch_setup(state) != 0)
        return -1;
    path = scratch_path("cases.txt");
    return 0;
}

TEST(comments_blanks_and_line_ends_are_tolerated)
{
    static const char text[] = "# comment\n"
                               "\n"
                               "  \t \r\n"
                               "T1_B2_H3\r\n"
                               "\tcpu_ref/T1_B2_H4/f16/train  # why\n"
                               "#T9_B9_H9\n"
                               "T1_B2_I5_H5#close\n"
                               "T1_B2_H6";
    struct lb_case_list list = {0};
    struct lb_error err = {""};
    scratch_write_bytes("cases.txt", text, sizeof(text) - 1);
    assert_int_equal(lb_case_list_read(&list, path, &err), LB_OK);
    assert_int_equal(list.count, 4);
    static const size_t lines[] = {4, 5, 7, 8}, columns[] = {1, 2, 1, 1};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(list.lines[i].c.problem.hidden, 3 + i);
        assert_int_equal(list.lines[i].line, lines[i]);
        assert_int_equal(list.lines[i].column, columns[i]);
    }
    const unsigned sizes = LB_GIVEN(SEQ_LEN) | LB_GIVEN(BATCH) | LB_GIVEN(HIDDEN);
    assert_int_equal(list.lines[0].given & ~sizes, 0);
    assert_int_equal(list.lines[1].given & ~sizes,
                     LB_GIVEN_IMPL | LB_GIVEN(DTYPE) | LB_GIVEN(PASS));

    char origin[200], expected[200];
    snprintf(expected, sizeof(expected), "%s:5:2", path);
    assert_string_equal(lb_case_line_origin(&list, &list.lines[1], origin, sizeof(origin)),
                        expected);
    lb_case_list_free(&list);
}

TEST(malformed_lines_name_file_line_and_column)
{
    static const struct {
        const char *text;
        const char *says;
    } table[] = {
        {"T1_B1_H1\nT1_B1\n", ":2:1: T, B and H must be given"},
        {"T1_B1_H1\n  T0_B1_H1\n", ":2:4: 0: must be 1 or more"},
        {"\n\nT1_B1_H1/f31 # x\r\n", ":3:10: 'f31': allowed are a dtype"},
        {"T1_B1_H1 f32\n", ":1:8: '1 f32' is not a whole number"},
        {"T1_B1_H1\rT1_B1_H1\n", ":1:8: '1\rT1' is not a whole number"},
        {"T1_B1_H1/f16/tf32\n", ":1:1: math tf32 goes with dtype f32, not f16"},
        {"{\"schema\": 1}\n", ":1:1: '{\"schema\": 1}' is neither an implementation's name"},
        {"", ": the file has no case"},
        {"# only words\n", ": the file has no case"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct lb_case_list list = {0};
        struct lb_error err = {""};
        char expected[300];
        scratch_write("cases.txt", table[i].text);
        snprintf(expected, sizeof(expected), "%s%s", path, table[i].says);
        assert_int_equal(lb_case_list_read(&list, path, &err), LB_INVALID);
        if (strncmp(err.text, expected, strlen(expected)) != 0)
            fail_msg("%s\nexpected: %s", err.text, expected);
        lb_case_list_free(&list);
    }
}

TEST(texts_of_the_command_line_name_their_flag)
{
    struct lb_case_list list = {0};
    struct lb_error err;
    char origin[100];
    assert_int_equal(lb_case_list_add(&list, "--case", "T1_B1", &err), LB_INVALID);
    assert_string_equal(err.text, "--case T1_B1: column 1: T, B and H must be given, "
                                  "as in T25_B16_H512");
    assert_int_equal(lb_case_list_add(&list, "--case", "", &err), LB_INVALID);
    assert_non_null(strstr(err.text, "--case '': column 1: "));
    assert_int_equal(lb_case_list_add(&list, "--case", "T1_B1_H1", &err), LB_OK);
    lb_case_line_origin(&list, &list.lines[0], origin, sizeof(origin));
    assert_string_equal(origin, "--case");
    lb_case_list_free(&list);
}

TEST(a_byte_order_mark_is_tolerated_at_the_start)
{
    static const char first[] = "\xef\xbb\xbfT1_B2_H3\nT1_B2_H4\n",
                      bad[] = "\xef\xbb\xbfT1_B2_Q3\n";
    struct lb_case_list list = {0};
    struct lb_error err = {""};
    scratch_write("cases.txt", first);
    assert_int_equal(lb_case_list_read(&list, path, &err), LB_OK);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.lines[0].column, 1);
    lb_case_list_free(&list);
    scratch_write("cases.txt", bad);
    assert_int_equal(lb_case_list_read(&list, path, &err), LB_INVALID);
    assert_non_null(strstr(err.text, ":1:7: "));
    lb_case_list_free(&list);
}

TEST(a_zero_byte_does_not_end_a_line)
{
    static const char text[] = "T1_B2_H3\nT1_B2_H4\0T1_B2_H5\n";
    struct lb_case_list list = {0};
    struct lb_error err = {""};
    scratch_write_bytes("cases.txt", text, sizeof(text) - 1);
    assert_int_equal(lb_case_list_read(&list, path, &err), LB_INVALID);
    assert_non_null(strstr(err.text, ":2:9: a zero byte"));
    lb_case_list_free(&list);
}

TEST(every_shipped_file_reads_and_repeats_nothing)
{
    static const struct {
        const char *name;
        size_t count;
    } files[] = {
        {"quick", 12}, {"deepbench", 39}, {"frameworks", 5}, {"cliffs", 4},
        {"cpu", 8},    {"criteria", 144}, {"recurrent", 59},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct lb_case_list list = {0};
        struct lb_error err = {""};
        char name[500];
        snprintf(name, sizeof(name), "%s/bench/cases/%s.txt", LB_SOURCE_DIR, files[i].name);
        if (lb_case_list_read(&list, name, &err) != LB_OK)
            fail_msg("%s", err.text);
        assert_int_equal(list.count, files[i].count);
        for (size_t a = 0; a < list.count; a++)
            for (size_t b = 0; b < a; b++)
                if (lb_case_same(&list.lines[a].c, &list.lines[b].c))
                    fail_msg("%s: lines %zu and %zu are the same case", name, list.lines[b].line,
                             list.lines[a].line);
        lb_case_list_free(&list);
    }
}

TEST_GROUP(make_path, scratch_teardown)
