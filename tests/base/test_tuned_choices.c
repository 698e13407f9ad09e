/* The file of tuned choices: which lines are kept and replaced, and which files are left alone. */
#include <unistd.h>

#include "base/given_files.h"
#include "base/tuned_choices.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/test.h"

static char path[512];

static void expect_text(const char *text)
{
    char *got = scratch_read(path, NULL);
    assert_string_equal(got, text);
    free(got);
}

static int name_file(void **state)
{
    if (scratch_setup(state) != 0)
        return -1;
    snprintf(path, sizeof(path), "%s", scratch_path("tuned.txt"));
    lb_give_files(&(struct lb_given_files){.tuned = path});
    return 0;
}

TEST_WITH(a_key_is_kept_and_replaced_beside_others, name_file, scratch_teardown)
{
    char value[32];
    assert_int_equal(lb_tuned_find("a b", value, sizeof(value), NULL), LB_ABSENT);
    assert_int_equal(lb_tuned_store("a b", "1", NULL), LB_OK);
    assert_int_equal(lb_tuned_store("c", "2", NULL), LB_OK);
    assert_int_equal(lb_tuned_store("a b", "3", NULL), LB_OK);
    assert_int_equal(lb_tuned_find("a b", value, sizeof(value), NULL), LB_OK);
    assert_string_equal(value, "3");
    assert_int_equal(lb_tuned_find("a", value, sizeof(value), NULL), LB_ABSENT);
    expect_text("bench-lstm tuned choices 1\nc\t2\na b\t3\n");
}

TEST_WITH(foreign_and_damaged_files_are_named_and_left_alone, name_file, scratch_teardown)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "not a file of tuned choices"},
        {"{\"a\": 1}\n", "not a file of tuned choices"},
        {"bench-lstm tuned choices 2\na\t1\n", "not a file of tuned choices"},
        {"bench-lstm tuned choices 1\na\t1\nb 2\n", ":3: the line is not a key, a tab and a value"},
        {"bench-lstm tuned choices 1\na\t1", ":2: the line is not a key"},
        {"bench-lstm tuned choices 1\n\t1\n", ":2: the line is not a key"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char value[32];
        struct lb_error err;
        scratch_write("tuned.txt", cases[i].text);
        assert_int_equal(lb_tuned_find("a", value, sizeof(value), &err), LB_INVALID);
        assert_non_null(strstr(err.text, cases[i].says));
        assert_non_null(strstr(err.text, path));
        assert_int_equal(lb_tuned_store("a", "9", &err), LB_INVALID);
        expect_text(cases[i].text);
    }
}

TEST_WITH(a_folder_that_does_not_exist_is_an_error_of_its_own, name_file, scratch_teardown)
{
    struct lb_error err;
    lb_give_files(&(struct lb_given_files){.tuned = "/nowhere/tuned.txt"});
    assert_int_equal(lb_tuned_store("a", "1", &err), LB_IO);
    assert_non_null(strstr(err.text, "/nowhere/tuned.txt"));
}

TEST_WITH(the_cache_folder_is_made_where_no_file_is_named, name_file, scratch_teardown)
{
    const char *folder = scratch_path("cache");
    char value[8];
    lb_give_files(&(struct lb_given_files){0});
    scratch_setenv("XDG_CACHE_HOME", folder);
    assert_int_equal(lb_tuned_find("a", value, sizeof(value), NULL), LB_ABSENT);
    assert_int_equal(access(folder, F_OK), -1); /* asking makes nothing */
    assert_int_equal(lb_tuned_store("a", "1", NULL), LB_OK);
    assert_int_equal(access(scratch_path("cache/bench-lstm/tuned.txt"), F_OK), 0);
}

/* The header of a run names the file as it was, so that a later change shows. */
TEST_WITH(a_changed_file_has_another_hash, name_file, scratch_teardown)
{
    char named[4096];
    int64_t changed_s;
    uint64_t first, second;
    assert_false(lb_tuned_file(named, &changed_s, &first));
    assert_int_equal(lb_tuned_store("a", "1", NULL), LB_OK);
    assert_true(lb_tuned_file(named, &changed_s, &first));
    assert_string_equal(named, path);
    assert_true(changed_s > 0);
    assert_int_equal(lb_tuned_store("a", "2", NULL), LB_OK);
    assert_true(lb_tuned_file(named, &changed_s, &second) && second != first);
    assert_int_equal(lb_tuned_store("a", "1", NULL), LB_OK);
    assert_true(lb_tuned_file(named, &changed_s, &second) && second == first);
}
