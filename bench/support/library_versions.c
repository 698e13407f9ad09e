/* The versions of libraries, as a run's environment records them. */
#include "support/library_versions.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "host/shared_library.h"

json_t *lb_linked_libraries(void)
{
    json_t *libraries = json_pack("{s:s, s:s}", "Google Benchmark", LB_BENCHMARK_VERSION, "Jansson",
                                  jansson_version_str());
#ifdef LB_CUDA_RUNTIME_VERSION /* linked statically: the loaded version is the one it was built \
                                  with */
    json_object_set_new(libraries, "CUDA runtime", json_string(LB_CUDA_RUNTIME_VERSION));
    json_object_set_new(libraries, "CUDA runtime, built", json_string(LB_CUDA_RUNTIME_VERSION));
#endif
    return libraries;
}

void lb_library_add(json_t *libraries, const struct lb_impl_entry *impl_entry, const char *version)
{
    const struct lb_shared_library *library = impl_entry->library;
    char name[48];
    snprintf(name, sizeof(name), "%s, built", library->name);
    json_object_set_new(libraries, library->name, version ? json_string(version) : json_null());
    if (impl_entry->memory == LB_DEVICE)
        json_object_set_new(libraries, name, json_string(library->built));
}

const char *lb_libraries_mismatch(const json_t *libraries)
{
    static char text[320];
    const char *name;
    json_t *loaded;
    text[0] = '\0';
    json_object_foreach((json_t *)libraries, name, loaded)
    {
        char of_built[64];
        snprintf(of_built, sizeof(of_built), "%.50s, built", name);
        const char *built = json_string_value(json_object_get(libraries, of_built));
        const char *version = json_string_value(loaded);
        if (built && version && strcmp(built, version) != 0)
            lb_append(text, sizeof(text), "%s%s %s is loaded, but the program was built against %s",
                      text[0] ? "; " : "", name, version, built);
    }
    return text;
}

void lb_libraries_print(void)
{
    const char *name;
    json_t *version, *libraries = lb_linked_libraries();
    json_object_foreach(libraries, name, version)
        printf("  %-22s%s\n", name, json_string_value(version));
    json_decref(libraries);
    for (const struct lb_registration *row = lb_impl_table; row->name; row++)
        if (row->library)
            printf("  %-22s%s built against %s; workers load %s\n", row->name, row->library->name,
                   row->library->built, row->library->file);
}
