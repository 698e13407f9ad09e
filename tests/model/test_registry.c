/* A plug-in of this interface loads; one of another number or another size is refused. */
#include "model/registry.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

/* The plug-in calls it in this program. */
extern const struct lb_impl lb_impl_cpu_ref;

static enum lb_status load(const char *name, const struct lb_impl **impl, struct lb_error *err)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/tests/plugins/%s.so", LB_BINARY_DIR, name);
    return lb_plugin_load(path, impl, err);
}

TEST(a_plugin_of_another_interface_is_refused)
{
    static const struct {
        const char *name, *reason;
    } plugins[] = {
        {"misbehave_no_abi", "it does not offer interface 1"},
        {"misbehave_other_abi", "built for interface 2, this program has 1"},
        {"misbehave_other_size", "built with a struct lb_impl of "},
    };
    const struct lb_impl *impl;
    struct lb_error err = {""};
    assert_int_equal(load("misbehave_none", &impl, NULL), LB_OK);
    for (size_t i = 0; i < sizeof(plugins) / sizeof(plugins[0]); i++) {
        assert_int_equal(load(plugins[i].name, &impl, &err), LB_INVALID);
        assert_non_null(strstr(err.text, plugins[i].reason));
    }
}

/* An implementation that names no cells is never asked about others, whatever it would answer. */
TEST(cells_that_are_not_named_are_unsupported)
{
    struct lb_exec_config config = {.threads = 1};
    struct lb_error why = {""};
    struct lb_impl impl = lb_impl_cpu_ref;
    struct lb_problem p = trial_problem("T2_B2_H4_P2");
    impl.cells = 0;
    assert_int_equal(lb_impl_supports(&impl, &p, &config, &why), LB_UNSUPPORTED);
    assert_string_equal(why.text, "cell projection: cpu_ref needs the standard cell");
    assert_int_equal(lb_impl_supports(&lb_impl_cpu_ref, &p, &config, NULL), LB_OK);
}

/* cpu_ref without a slot, with too many variants, or under a name that is none. */
TEST(what_is_missing_is_named)
{
    static const char *variants[LB_VARIANTS_MAX + 2] = {"auto"};
    static char names[LB_VARIANTS_MAX + 1][8];
    struct lb_error err = {""};
    struct lb_impl impl = lb_impl_cpu_ref;
    impl.forward = NULL;
    assert_int_equal(lb_impl_check(&impl, &err), LB_INVALID);
    assert_string_equal(err.text, "cpu_ref: it does not set forward, which is required");
    impl = lb_impl_cpu_ref;
    impl.state_size = 0;
    assert_int_equal(lb_impl_check(&impl, &err), LB_INVALID);
    assert_string_equal(err.text, "cpu_ref: it does not set state_size, which is required");
    impl = lb_impl_cpu_ref;
    impl.name = "Bad Name";
    assert_int_equal(lb_impl_check(&impl, &err), LB_INVALID);
    assert_memory_equal(err.text, "name 'Bad Name'", 15);
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
