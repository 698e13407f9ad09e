/* Versions of libraries in a record, and the warning about those of another version than the
 * program was built against. */
#include "host/shared_library.h"
#include "support/library_versions.h"
#include "tests/helpers/test.h"

static struct lb_shared_library cudnn = {.name = "cuDNN", .built = "9.19.0"};
static struct lb_shared_library blas = {.name = "OpenBLAS", .built = "0.3.21"};

static json_t *versions(const char *of_cudnn, const char *of_blas)
{
    json_t *libraries = lb_linked_libraries();
    const struct lb_impl_entry on_device = {.memory = LB_DEVICE, .library = &cudnn};
    const struct lb_impl_entry on_host = {.memory = LB_HOST, .library = &blas};
    assert_non_null(libraries);
    lb_library_add(libraries, &on_device, of_cudnn);
    lb_library_add(libraries, &on_host, of_blas);
    return libraries;
}

static const char *text_of(const json_t *libraries, const char *name)
{
    return json_string_value(json_object_get(libraries, name));
}

TEST(libraries_as_built_give_no_warning)
{
    json_t *libraries = versions("9.19.0", "OpenBLAS 0.3.26 DYNAMIC_ARCH");
    assert_string_equal(lb_libraries_mismatch(libraries), "");
    json_decref(libraries);
    libraries = versions(NULL, NULL); /* not loaded: nothing to say */
    assert_string_equal(lb_libraries_mismatch(libraries), "");
    json_decref(libraries);
}

TEST(each_other_version_is_warned_of)
{
    json_t *libraries = versions("9.10.2", "0.3.26");
    json_object_set_new(libraries, "cuBLAS", json_string("13.2.0"));
    json_object_set_new(libraries, "cuBLAS, built", json_string("13.1.0"));
    assert_string_equal(lb_libraries_mismatch(libraries),
                        "cuDNN 9.10.2 is loaded, but the program was built against 9.19.0; cuBLAS "
                        "13.2.0 is loaded, but the program was built against 13.1.0");
    json_decref(libraries);
}

TEST(both_versions_of_a_gpu_library_are_recorded)
{
    json_t *libraries = versions("9.10.2", "0.3.26");
    assert_string_equal(text_of(libraries, "cuDNN"), "9.10.2");
    assert_string_equal(text_of(libraries, "cuDNN, built"), "9.19.0");
    assert_string_equal(text_of(libraries, "OpenBLAS"), "0.3.26");
    assert_non_null(text_of(libraries, "Jansson"));
    json_decref(libraries);
    libraries = versions(NULL, NULL);
    assert_true(json_is_null(json_object_get(libraries, "cuDNN")));
    json_decref(libraries);
}
