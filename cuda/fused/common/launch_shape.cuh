/* What the launchers of the fused kernels share. Each family has one table of its kernels. The
 * table is searched once, when a kernel is readied, and launches use the row that was found. */
#ifndef LB_FUSED_LAUNCH_SHAPE_CUH
#define LB_FUSED_LAUNCH_SHAPE_CUH

#include <stddef.h>
#include <string.h>

#include "api/status.h"

namespace lb_fused_launch
{

/* A row of a family's table. Key is a struct without padding that says what the kernel was compiled
 * for. */
template <class Key, class... Parameters> struct row {
    Key key;
    void (*kernel)(Parameters...);
};

/* Returns the row with that key, or NULL, with a message in err, where no kernel was compiled for
 * it.
 */
template <class Row, size_t count, class Key>
const Row *find(const Row (&rows)[count], const Key &key, const char *family, struct lb_error *err)
{
    for (const Row &row : rows)
        if (!memcmp(&row.key, &key, sizeof(key)))
            return &row;
    lb_fail(err, LB_UNSUPPORTED, "no %s kernel was built for this tile", family);
    return nullptr;
}

/* What a launch asks of the device. */
struct shape {
    const char *family; /* for messages */
    unsigned grid[3], threads;
    unsigned cluster; /* blocks per cluster, along x; 0: no clusters */
    bool cooperative; /* all blocks must be resident at once */
    size_t shared;    /* bytes of dynamic shared memory per block */
    /* The launch may begin while the one before it on the stream still runs, for which its kernel
     * waits itself (programmatic dependent launch). */
    bool follows = false;
};

} // namespace lb_fused_launch

#endif
