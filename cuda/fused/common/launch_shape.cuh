/* What the launchers of the fused kernels share. Each family has one table of its kernels, which is
 * searched once, when a kernel is readied. */
#ifndef LB_FUSED_LAUNCH_SHAPE_CUH
#define LB_FUSED_LAUNCH_SHAPE_CUH

#include <stddef.h>
#include <string.h>

#include "api/status.h"

namespace lb_fused_launch
{

using any_kernel = void (*)(); /* a kernel whose parameters its launcher knows */

/* A row of a family's table. Key is a struct of integers that says what the kernel was compiled
 * for. */
template <class Key> struct row {
    Key key;
    any_kernel kernel;

    template <class... Parameters>
    row(const Key &of, void (*function)(Parameters...))
        : key(of), kernel(reinterpret_cast<any_kernel>(function))
    {
    }
};

/* Returns the kernel with that key, or NULL, with a message, where none was compiled for it. */
template <class Key, size_t count>
any_kernel find(const row<Key> (&rows)[count], const Key &key, const char *family,
                struct lb_error *err)
{
    for (const row<Key> &r : rows)
        if (!memcmp(&r.key, &key, sizeof(key)))
            return r.kernel;
    lb_fail(err, LB_UNSUPPORTED, "no %s kernel was built for this tile", family);
    return nullptr;
}

/* What a launch asks of the device. */
struct shape {
    const char *family; /* for messages */
    int grid[3], threads;
    size_t shared;            /* bytes of dynamic shared memory per block */
    int cluster = 0;          /* blocks per cluster, along x; 0: no clusters */
    bool cooperative = false; /* all blocks must be resident at once */
    /* The launch may begin while the one before it on the stream still runs, for which its kernel
     * waits itself (programmatic dependent launch). */
    bool follows = false;
};

} // namespace lb_fused_launch

#endif
