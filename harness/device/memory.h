/* Memory spaces, in which tensors live, and how much memory the host has. */
#ifndef LB_MEMORY_H
#define LB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/status.h"

/* A kind of memory: the host's or the device's. Addresses of one space are not valid in another. */
struct lb_space {
    const char *name;
    /* 256-byte aligned; bytes may be 0, then *out is NULL. LB_OOM. */
    enum lb_status (*allocate)(size_t bytes, void **out, struct lb_error *err);
    void (*release)(void *memory); /* accepts NULL */
    enum lb_status (*upload)(void *to, const void *host, size_t bytes, struct lb_error *err);
    enum lb_status (*download)(void *host, const void *from, size_t bytes, struct lb_error *err);
    enum lb_status (*poison)(void *to, size_t bytes, struct lb_error *err); /* NaN in every dtype */
    /* Takes bytes of memory, which allocate returned, into a running hash, after all work on the
     * space's stream. Hashes of different spaces can't be compared. */
    enum lb_status (*hash)(const void *memory, size_t bytes, uint64_t *hash, struct lb_error *err);
    /* Waits until all work on the space's stream is done. */
    enum lb_status (*synchronize)(struct lb_error *err);
    double (*available)(void); /* bytes that can still be allocated */
    /* (optional) Whether anything was written outside a block that allocate returned: NULL when
     * nothing was, else "before its start" or "past its end". Accepts NULL. */
    const char *(*overrun)(const void *memory);
};

/* The host's memory. Each block lies between guard bands of a known pattern, 256 bytes before it
 * and 4096 bytes after it, which overrun checks. Under the address sanitizer, whose red zones find
 * more, there are no bands and overrun is NULL. Blocks of 4 MiB and more are in huge pages where
 * the system has them. */
extern const struct lb_space lb_host_space;

/* The bands before and behind a block, and what they hold: no plausible numbers, and no constant
 * byte. [LB_GUARD_BEHIND] bytes; a shorter band holds the first of them. */
enum { LB_GUARD_BEFORE = 256, LB_GUARD_BEHIND = 4096 };
const unsigned char *lb_guard_band(void);

/* Fills bytes of host memory with a poison that is NaN in every dtype. */
void lb_poison(void *memory, size_t bytes);

/* Bytes that this process can still allocate on the host: free and reclaimable memory, within the
 * limits of its control groups. 0 when the system does not say. */
double lb_host_available(void);

/* Limits what lb_host_available() reports, as if this process could have at most so many bytes in
 * all. 0: no limit. */
void lb_host_limit(double bytes);

/* Resident bytes of a process; 0 when there is no such process. */
double lb_resident_bytes(long pid);

/* Physical memory of the host in bytes. */
double lb_host_total(void);

/* What this process holds now; 0 where the system does not say. */
struct lb_holdings {
    double memory_bytes; /* resident */
    double descriptors, threads;
};

struct lb_holdings lb_holdings_read(void);

/* Writes what grew by too much over so many calls to be chance, with figures: memory by 16 MiB and
 * 1 KiB per call, descriptors and threads by 8 and one in ten calls. False when nothing did. */
bool lb_leaks_text(const struct lb_holdings *before, const struct lb_holdings *after, size_t calls,
                   char *text, size_t size);

/* Size of the largest CPU cache in bytes; 32 MiB where the system does not say. */
size_t lb_host_cache_bytes(void);

/* "12.3 GiB", "512 KiB", "64 B" into text. */
void lb_format_bytes(double bytes, char text[32]);

#endif
