/* The main function of test programs whose tests register themselves. */
#include "test.h"

enum { MOST_TESTS = 128 };

static struct CMUnitTest tests[MOST_TESTS];
static int lines[MOST_TESTS];
static size_t count;
static CMFixtureFunction group_setup, group_teardown;

void test_add(int line, const char *name, CMUnitTestFunction test, CMFixtureFunction setup,
              CMFixtureFunction teardown)
{
    size_t at = count++;
    if (count > MOST_TESTS)
        abort();
    for (; at > 0 && lines[at - 1] > line; at--) {
        tests[at] = tests[at - 1];
        lines[at] = lines[at - 1];
    }
    tests[at] = (struct CMUnitTest){name, test, setup, teardown, NULL};
    lines[at] = line;
}

void test_group(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    group_setup = setup;
    group_teardown = teardown;
}

/* The words "only PATTERN" or "without PATTERN" choose among the tests by their names. */
int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "only") == 0)
        cmocka_set_test_filter(argv[2]);
    if (argc == 3 && strcmp(argv[1], "without") == 0)
        cmocka_set_skip_filter(argv[2]);
    return _cmocka_run_group_tests("tests", tests, count, group_setup, group_teardown);
}
