/* What an implementation's calls leave behind in this process: memory, file descriptors, threads.
 */
#ifndef LB_LEAKS_H
#define LB_LEAKS_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
