/* Third-party libraries, each loaded when a case first needs it. */
#include "host/shared_library.h"

#include <dlfcn.h>
#include <string.h>

#include "host/cpu_affinity.h"

static void open_library(void *user)
{
    struct lb_shared_library *library = user;
    library->handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
}

enum lb_status lb_shared_library_load(struct lb_shared_library *library, struct lb_error *err)
{
    if (library->loaded)
        return LB_OK;
    lb_while_unpinned(open_library, library);
    if (!library->handle)
        return lb_fail(err, LB_ABSENT, "%s can't be loaded: %.400s", library->name, dlerror());
    for (size_t i = 0; i < library->count; i++) {
        void *function = dlsym(library->handle, library->names[i]);
        if (!function) {
            dlclose(library->handle);
            library->handle = NULL;
            return lb_fail(err, LB_ABSENT,
                           "%s has no function %s; the program was built against %s %s",
                           library->file, library->names[i], library->name, library->built);
        }
        memcpy((char *)library->functions + i * sizeof(function), &function, sizeof(function));
    }
    library->loaded = true;
    return LB_OK;
}

void *lb_shared_library_find(const struct lb_shared_library *library, const char *name)
{
    return library->handle ? dlsym(library->handle, name) : NULL;
}
