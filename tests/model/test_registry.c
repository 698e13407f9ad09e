/* Plug-ins of older interfaces load, and nothing beyond the end of their struct is used; renamed
 * implementations are refused with a hint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/registry.h"

/* The plug-in calls it in this program. */
extern const struct lb_impl lb_impl_cpu_ref;

static enum lb_status load(const char *name, const struct lb_impl **impl, struct lb_error *err)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/tests/plugins/%s.so", LB_BINARY_DIR, name);
    return lb_plugin_load(path, impl, err);
}

static void an_older_plugin_has_the_slots_of_its_number(void **state)
{
    (void)state;
    const struct lb_impl *first, *second, *third, *current;
    struct lb_error text = {""};
    assert_int_equal(load("older_1", &first, NULL), LB_OK);
    assert_string_equal(first->name, "older_1");
    assert_ptr_equal(first->destroy, lb_impl_cpu_ref.destroy);
    assert_null(first->note);
    assert_null(first->check);
    assert_int_equal(load("older_2", &second, NULL), LB_OK);
    assert_null(second->note); /* it has another signature */
    assert_null(second->check);
    assert_int_equal(load("older_3", &third, NULL), LB_OK);
    assert_null(third->note);
    assert_int_equal(third->check(NULL, &text), LB_FAILED);
    assert_string_equal(text.text, "interface 3 has a check");
    assert_int_equal(load("misbehave_none", &current, NULL), LB_OK);
    const struct lb_impl *const all[] = {first, second, third, current};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        assert_int_equal(all[i]->abi, LB_IMPL_ABI);
        assert_int_equal(lb_impl_check(all[i], NULL), LB_OK);
    }
    assert_string_equal(first->name, "older_1"); /* each has a copy of its own */
}

static void other_numbers_are_refused(void **state)
{
    (void)state;
    const struct lb_impl *impl;
    struct lb_error err = {""};
    assert_int_equal(load("older_0", &impl, &err), LB_INVALID); /* nobody asks for 0 */
    assert_non_null(strstr(err.text, "does not offer interface 4"));
    assert_int_equal(load("misbehave_other_abi", &impl, &err), LB_INVALID);
    assert_non_null(strstr(err.text, "built for interface 5, this program has 4"));
}

static void an_old_name_is_refused_with_the_new_one(void **state)
{
    static const struct lb_registration table[] = {{"cpu_ref", NULL, &lb_impl_cpu_ref, NULL},
                                                   {NULL, NULL, NULL, NULL}};
    struct lb_registry registry;
    const struct lb_impl_entry *entry;
    struct lb_error err = {""};
    (void)state;
    assert_int_equal(lb_registry_create(table, &registry, NULL), LB_OK);
    assert_int_equal(lb_registry_require(&registry, "cpu_blas", &entry, &err), LB_INVALID);
    assert_string_equal(
        err.text, "there is no implementation 'cpu_blas': it is called cpu_simd since 2026-11-22");
    struct lb_impl_entry plugin = {.name = (char[]){"cpu_blas"}, .impl = &lb_impl_cpu_ref};
    assert_int_equal(lb_registry_add(&registry, &plugin, &err), LB_INVALID);
    assert_non_null(strstr(err.text, "records of cpu_simd hold that name too"));
    assert_int_equal(registry.count, 1);
    lb_registry_destroy(&registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_plugin_has_the_slots_of_its_number),
        cmocka_unit_test(other_numbers_are_refused),
        cmocka_unit_test(an_old_name_is_refused_with_the_new_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
