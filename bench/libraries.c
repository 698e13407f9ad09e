/* The versions of the libraries in this program, as loaded. */
#include "libraries.h"

#include <cblas.h>
#include <jansson.h>
#ifdef LB_HAVE_ONEDNN
#include <dnnl.h>
#include <stdio.h>
#endif

/* NULL where it is not built in. */
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
    static struct lb_library libraries[] = {
        {"OpenBLAS", NULL}, {"Google Benchmark", LB_BENCHMARK_VERSION},
        {"Jansson", NULL},  {"oneDNN", NULL},
        {NULL, NULL},
    };
    libraries[0].version = openblas_get_config();
    libraries[2].version = jansson_version_str();
    libraries[3].version = onednn_version();
    return libraries;
}
