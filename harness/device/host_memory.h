/* Memory spaces, in which tensors live, and how much memory the host has. */
#ifndef LB_HOST_MEMORY_H
#define LB_HOST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "api/status.h"

/* A kind of memory: the host's or the device's. Addresses of one space are not valid in another. */
struct lb_space {
    const char *name;
    /* *out is 256-byte aligned, or NULL when bytes is 0. LB_OOM. */
    enum lb_status (*allocate)(size_t bytes, void **out, struct lb_error *err);
    void (*release)(void *memory); /* accepts NULL */
    enum lb_status (*upload)(void *to, const void *host, size_t bytes, struct lb_error *err);
    enum lb_status (*download)(void *host, const void *from, size_t bytes, struct lb_error *err);
    enum lb_status (*poison)(void *to, size_t bytes, struct lb_error *err); /* NaN in every dtype */
    /* Adds `bytes` bytes of memory, which allocate returned, to a running hash, after all work on
     * the space's stream. Hashes of different spaces can't be compared. */
    enum lb_status (*hash)(const void *memory, size_t bytes, uint64_t *hash, struct lb_error *err);
    /* Waits until all work on the space's stream is done. */
    enum lb_status (*synchronize)(struct lb_error *err);
    double (*available)(void); /* bytes that can still be allocated */
    /* (optional) Tells where something was written outside a block that allocate returned: "before
     * its start" or "past its end"; NULL when nothing was. Accepts NULL. */
    const char *(*overrun)(const void *memory);
};

/* The host's memory. Each block lies between guard bands of a known pattern, which overrun checks.
 * Under the address sanitizer, whose red zones find more, there are no bands and overrun is NULL.
 * Blocks of 4 MiB and more are in huge pages where the system has them. */
extern const struct lb_space lb_host_space;

/* Sizes of the bands before and behind a block, in bytes. */
enum { LB_GUARD_BEFORE = 256, LB_GUARD_BEHIND = 4096 };

/* A space's upload or download. */
typedef enum lb_status lb_copy(void *to, const void *from, size_t bytes, struct lb_error *err);

/* The first writes the bands around a block; the second answers as lb_space.overrun does. A band
 * that can't be read counts as intact: the device is lost then, and that is reported elsewhere. */
enum lb_status lb_guard_write(lb_copy *upload, void *memory, size_t bytes, struct lb_error *err);
const char *lb_guard_overrun(lb_copy *download, const void *memory);

/* Fills bytes of host memory with a poison that is NaN in every dtype. */
void lb_poison(void *memory, size_t bytes);

/* Bytes that this process can still allocate on the host: free and reclaimable memory, within the
 * limits of its control groups and of lb_host_limit. 0 when the system does not say. */
double lb_host_available(void);

/* Limits the bytes that this process is assumed to hold at most in total. 0: no limit. */
void lb_host_limit(double bytes);

/* Physical memory of the host in bytes. */
double lb_host_total(void);

#endif
