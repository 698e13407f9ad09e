/* The warning about libraries of another version than the program was built against. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/gpu_versions.h"
#include "support/library_versions.h"

static struct lb_device_version versions[4];

/* Replaces the harness's function. */
const struct lb_device_version *lb_device_versions(void)
{
    return versions;
}

static void set_version(int i, const char *library, const char *built, const char *loaded)
{
    versions[i].library = library;
    strcpy(versions[i].built, built);
    strcpy(versions[i].loaded, loaded);
}

static void libraries_as_built_give_no_warning(void **state)
{
    (void)state;
    memset(versions, 0, sizeof(versions));
    assert_string_equal(lb_libraries_mismatch(), "");
    set_version(0, "CUDA runtime", "13.0", "13.0");
    set_version(1, "cuDNN", "9.19.0", ""); /* not loaded: nothing to say */
    assert_string_equal(lb_libraries_mismatch(), "");
}

static void each_other_version_is_warned_of(void **state)
{
    (void)state;
    memset(versions, 0, sizeof(versions));
    set_version(0, "CUDA runtime", "13.0", "13.0");
    set_version(1, "cuBLAS", "13.1.0", "13.2.0");
    set_version(2, "cuDNN", "9.19.0", "9.10.2");
    assert_string_equal(lb_libraries_mismatch(), "cuBLAS 13.2.0 is loaded, but the program was "
                                                 "built against 13.1.0; cuDNN 9.10.2 is loaded, "
                                                 "but the program was built against 9.19.0");
}

static void both_versions_are_recorded(void **state)
{
    bool built = false, loaded = false;
    (void)state;
    memset(versions, 0, sizeof(versions));
    set_version(0, "cuDNN", "9.19.0", "9.10.2");
    for (const struct lb_library *library = lb_libraries(); library->name; library++) {
        loaded |= strcmp(library->name, "cuDNN") == 0 && strcmp(library->version, "9.10.2") == 0;
        built |=
            strcmp(library->name, "cuDNN, built") == 0 && strcmp(library->version, "9.19.0") == 0;
    }
    assert_true(built && loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_as_built_give_no_warning),
        cmocka_unit_test(each_other_version_is_warned_of),
        cmocka_unit_test(both_versions_are_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
