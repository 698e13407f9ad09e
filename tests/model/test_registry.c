/* Plug-ins of older interfaces load, and nothing beyond the end of their struct is used; renamed
 * implementations are refused with a hint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/case.h"
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
    const struct lb_impl *first, *second, *third, *fourth, *current;
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
    assert_null(third->update);
    assert_int_equal(load("older_4", &fourth, NULL), LB_OK);
    assert_null(fourth->update);
    assert_int_equal(fourth->cells, 0);
    assert_int_equal(load("misbehave_none", &current, NULL), LB_OK);
    const struct lb_impl *const all[] = {first, second, third, fourth, current};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        assert_int_equal(all[i]->abi, LB_IMPL_ABI);
        assert_int_equal(lb_impl_check(all[i], NULL), LB_OK);
    }
    assert_string_equal(first->name, "older_1"); /* each has a copy of its own */
}

/* A plug-in of interface 4 does not know of cells, and its supports would accept any of them. */
static void an_older_plugin_is_given_the_standard_cell_only(void **state)
{
    (void)state;
    const struct lb_impl *older;
    struct lb_exec_config config = {.threads = 1};
    struct lb_error why = {""};
    struct lb_case c;
    assert_int_equal(load("older_4", &older, NULL), LB_OK);
    assert_int_equal(lb_case_parse("T2_B2_H4_P2", &c, NULL, NULL, NULL), LB_OK);
    assert_int_equal(older->supports(&c.problem, &config, NULL), LB_OK);
    assert_int_equal(lb_impl_supports(older, &c.problem, &config, &why), LB_UNSUPPORTED);
    assert_string_equal(why.text, "cell projection: older_4 needs the standard cell");
    assert_int_equal(lb_impl_supports(&lb_impl_cpu_ref, &c.problem, &config, NULL), LB_OK);
    assert_int_equal(lb_case_parse("T2_B2_H4", &c, NULL, NULL, NULL), LB_OK);
    assert_int_equal(lb_impl_supports(older, &c.problem, &config, NULL), LB_OK);
}

/* Plug-ins hold copies of struct lb_problem whose size the compiler knew when they were built. */
static void the_cell_lies_in_what_was_padding(void **state)
{
    (void)state;
    assert_int_equal(offsetof(struct lb_problem, cell), offsetof(struct lb_problem, ragged) + 1);
    assert_int_equal(sizeof(struct lb_problem), 6 * sizeof(int64_t) + 4 * sizeof(int) + 8);
}

static void other_numbers_are_refused(void **state)
{
    (void)state;
    const struct lb_impl *impl;
    struct lb_error err = {""};
    assert_int_equal(load("older_0", &impl, &err), LB_INVALID); /* nobody asks for 0 */
    assert_non_null(strstr(err.text, "does not offer interface 5"));
    assert_int_equal(load("misbehave_other_abi", &impl, &err), LB_INVALID);
    assert_non_null(strstr(err.text, "built for interface 6, this program has 5"));
}

/* cpu_ref without a slot, with too many variants, or under a name that is none. */
static void what_is_missing_is_named(void **state)
{
    static const char *variants[LB_VARIANTS_MAX + 2] = {"auto"};
    static char names[LB_VARIANTS_MAX + 1][8];
    struct lb_error err = {""};
    (void)state;
    struct lb_impl impl = lb_impl_cpu_ref;
    impl.forward = NULL;
    assert_int_equal(lb_impl_check(&impl, &err), LB_INVALID);
    assert_string_equal(err.text, "cpu_ref: it does not set forward, which is required");
    impl = lb_impl_cpu_ref;
    impl.state_size = 0;
    assert_int_equal(lb_impl_check(&impl, &err), LB_INVALID);
    assert_string_equal(err.text, "cpu_ref: it does not set state_size, which is required");
    impl = lb_impl_cpu_ref;
    impl.variants = variants;
    for (size_t i = 1; i <= LB_VARIANTS_MAX; i++) {
        assert_int_equal(lb_impl_check(&impl, &err), LB_OK);
        snprintf(names[i], sizeof(names[i]), "v%zu", i);
        variants[i] = names[i];
    }
    assert_int_equal(lb_impl_check(&impl, &err), LB_INVALID);
    assert_string_equal(err.text, "cpu_ref: it has more than 63 variants");
}

/* A sound plug-in whose header says that it is for another processor: the loader would say that
 * there is no such file. */
static void another_architecture_is_said(void **state)
{
    char from[512], to[] = "/tmp/bench-lstm-registry-XXXXXX", word[128];
    unsigned char bytes[64];
    const struct lb_impl *impl;
    struct lb_error err = {""};
    (void)state;
    snprintf(from, sizeof(from), "%s/tests/plugins/misbehave_none.so", LB_BINARY_DIR);
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, sizeof(bytes), 1, file), 1);
    fclose(file);
    unsigned machine = bytes[18] == 0xf3 ? 0x3e : 0xf3; /* RISC-V, or on that x86-64 */
    bytes[18] = (unsigned char)machine;
    int descriptor = mkstemp(to);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, bytes, sizeof(bytes)), sizeof(bytes));
    close(descriptor);
    assert_int_equal(lb_plugin_load(to, &impl, &err), LB_INVALID);
    unlink(to);
    snprintf(word, sizeof(word),
             "it is built for %s processors (ELF machine %u), this program for ",
             machine == 0xf3 ? "RISC-V" : "x86-64", machine);
    assert_non_null(strstr(err.text, word));
}

static void an_old_name_is_refused_with_the_new_one(void **state)
{
    static const struct lb_registration table[] = {{"cpu_ref", NULL, &lb_impl_cpu_ref, NULL, NULL},
                                                   {NULL, NULL, NULL, NULL, NULL}};
    struct lb_registry registry;
    const struct lb_impl_entry *impl_entry;
    struct lb_error err = {""};
    (void)state;
    assert_int_equal(lb_registry_create(table, &registry, NULL), LB_OK);
    assert_int_equal(lb_registry_require(&registry, "cpu_blas", &impl_entry, &err), LB_INVALID);
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
        cmocka_unit_test(an_older_plugin_is_given_the_standard_cell_only),
        cmocka_unit_test(the_cell_lies_in_what_was_padding),
        cmocka_unit_test(other_numbers_are_refused),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(another_architecture_is_said),
        cmocka_unit_test(an_old_name_is_refused_with_the_new_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
