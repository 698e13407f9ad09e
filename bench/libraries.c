/* The versions of the libraries in this program, as loaded. */
#include "libraries.h"

#include <cblas.h>
#include <jansson.h>

const struct lb_library *lb_libraries(void)
{
    static struct lb_library libraries[] = {
        {"OpenBLAS", NULL},
        {"Google Benchmark", LB_BENCHMARK_VERSION},
        {"Jansson", NULL},
        {NULL, NULL},
    };
    libraries[0].version = openblas_get_config();
    libraries[2].version = jansson_version_str();
    return libraries;
}
