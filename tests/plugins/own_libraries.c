/* A plug-in with libraries of its own, as a framework's has: some of their symbols have the names
 * of OpenBLAS's and oneDNN's. `describe` says whose symbols it reaches. Everything else is
 * cpu_ref's. */
#include "faulty.h"

int openblas_get_num_threads(void);
const void *dnnl_version(void);
static const char *describe(const void *self)
{
    (void)self;
    if (openblas_get_num_threads() >= 0)
        return "OpenBLAS of somebody else";
    return dnnl_version() ? "oneDNN of somebody else" : "its own libraries";
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    static struct lb_impl impl;
    (void)abi;
    impl = cpu_ref_as("own_libraries", "cpu_ref beside libraries of its own");
    impl.describe = describe;
    return &impl;
}
