/* Which variants have hung in a sweep. */
#include "run/hang_count.h"

#include <stdio.h>
#include <string.h>

/* The place of the case's implementation and variant; count where it has none yet. */
static size_t place_of(const struct lb_hang_counts *hang_counts, const struct lb_case *c)
{
    size_t i = 0;
    while (i < hang_counts->count && (strcmp(hang_counts->items[i].impl, c->impl) != 0 ||
                                      strcmp(hang_counts->items[i].variant, c->variant) != 0))
        i++;
    return i;
}

int lb_hang_counts_of(const struct lb_hang_counts *hang_counts, const struct lb_case *c)
{
    size_t i = place_of(hang_counts, c);
    return i < hang_counts->count ? hang_counts->items[i].count : 0;
}

void lb_hang_counts_add(struct lb_hang_counts *hang_counts, const struct lb_case *c)
{
    size_t i = place_of(hang_counts, c);
    if (i == LB_HANG_COUNTS_MAX)
        return;
    struct lb_hang_count *item = &hang_counts->items[i];
    if (i == hang_counts->count) {
        hang_counts->count++;
        snprintf(item->impl, sizeof(item->impl), "%s", c->impl);
        snprintf(item->variant, sizeof(item->variant), "%s", c->variant);
    }
    item->count++;
}
