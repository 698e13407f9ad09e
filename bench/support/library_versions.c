/* The versions of the libraries that this program has loaded. */
#include "support/library_versions.h"

#include <cblas.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#ifdef LB_HAVE_ONEDNN
#include <dnnl.h>
#endif

#include "device/gpu_versions.h"

enum { OWN_COUNT = 4, DEVICE_COUNT = 3 };

/* NULL when the program was built without oneDNN. */
static const char *onednn_version(void)
{
#ifdef LB_HAVE_ONEDNN
    static char text[64];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof(text), "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
#else
    return NULL;
#endif
}

const struct lb_library *lb_libraries(void)
{
    static struct lb_library libraries[OWN_COUNT + 2 * DEVICE_COUNT + 1];
    static char names[DEVICE_COUNT][48];
    size_t count = OWN_COUNT;
    libraries[0] = (struct lb_library){"OpenBLAS", openblas_get_config()};
    libraries[1] = (struct lb_library){"Google Benchmark", LB_BENCHMARK_VERSION};
    libraries[2] = (struct lb_library){"Jansson", jansson_version_str()};
    libraries[3] = (struct lb_library){"oneDNN", onednn_version()};
    const struct lb_device_version *v = lb_device_versions();
    for (size_t i = 0; v[i].library && i < DEVICE_COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), "%s, built", v[i].library);
        libraries[count++] = (struct lb_library){v[i].library, v[i].loaded};
        libraries[count++] = (struct lb_library){names[i], v[i].built};
    }
    libraries[count] = (struct lb_library){NULL, NULL};
    return libraries;
}

const char *lb_libraries_mismatch(void)
{
    static char text[320];
    text[0] = '\0';
    for (const struct lb_device_version *v = lb_device_versions(); v->library; v++) {
        size_t used = strlen(text);
        if (v->loaded[0] && strcmp(v->built, v->loaded) != 0)
            snprintf(text + used, sizeof(text) - used,
                     "%s%s %s is loaded, but the program was built against %s", used ? "; " : "",
                     v->library, v->loaded, v->built);
    }
    return text;
}
