/* How often each variant of an implementation has hung in a sweep. */
#include "run/hang_count.h"

#include <stdio.h>
#include <string.h>

/* The index of the case's implementation and variant; counts->count when they are not listed yet.
 */
static size_t index_of(const struct lb_hang_counts *counts, const struct lb_case *c)
{
    size_t i = 0;
    while (i < counts->count && (strcmp(counts->items[i].impl, c->impl) != 0 ||
                                 strcmp(counts->items[i].variant, c->variant) != 0))
        i++;
    return i;
}

int lb_hang_counts_of(const struct lb_hang_counts *counts, const struct lb_case *c)
{
    size_t i = index_of(counts, c);
    return i < counts->count ? counts->items[i].count : 0;
}

void lb_hang_counts_add(struct lb_hang_counts *counts, const struct lb_case *c)
{
    size_t i = index_of(counts, c);
    if (i == LB_HANG_COUNTS_MAX)
        return;
    struct lb_hang_count *item = &counts->items[i];
    if (i == counts->count) {
        counts->count++;
        snprintf(item->impl, sizeof(item->impl), "%s", c->impl);
        snprintf(item->variant, sizeof(item->variant), "%s", c->variant);
    }
    item->count++;
}
