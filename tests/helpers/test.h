/* What every test program needs: cmocka with the headers that it asks for, and tests that register
 * themselves. test_main.c has the main function. */
#ifndef LB_TEST_H
#define LB_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Adds a test of the program, which runs its tests in the order of their lines. */
void test_add(int line, const char *name, CMUnitTestFunction test, CMFixtureFunction setup,
              CMFixtureFunction teardown);

/* Sets what runs before the first and after the last test of the program. */
void test_group(CMFixtureFunction setup, CMFixtureFunction teardown);

#define TEST_WITH(name, setup, teardown)                      \
    static void name(void **state);                           \
    __attribute__((constructor)) static void add_##name(void) \
    {                                                         \
        test_add(__LINE__, #name, name, setup, teardown);     \
    }                                                         \
    static void name(void **state)

/* Begins the definition of a test: TEST(sums_are_exact) { ... } */
#define TEST(name) TEST_WITH(name, NULL, NULL)

#define TEST_GROUP(setup, teardown)                               \
    __attribute__((constructor)) static void set_test_group(void) \
    {                                                             \
        test_group(setup, teardown);                              \
    }

#endif
