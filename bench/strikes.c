/* Which variants have hung in a sweep. */
#include "strikes.h"

#include <stdio.h>
#include <string.h>

/* The place of the case's implementation and variant; count where it has none yet. */
static size_t place_of(const struct lb_strikes *strikes, const struct lb_case *c)
{
    size_t i = 0;
    while (i < strikes->count && (strcmp(strikes->items[i].impl, c->impl) != 0 ||
                                  strcmp(strikes->items[i].variant, c->variant) != 0))
        i++;
    return i;
}

int lb_strikes_of(const struct lb_strikes *strikes, const struct lb_case *c)
{
    size_t i = place_of(strikes, c);
    return i < strikes->count ? strikes->items[i].count : 0;
}

void lb_strikes_add(struct lb_strikes *strikes, const struct lb_case *c)
{
    size_t i = place_of(strikes, c);
    if (i == LB_STRIKES_MAX)
        return;
    struct lb_strike *item = &strikes->items[i];
    if (i == strikes->count) {
        strikes->count++;
        snprintf(item->impl, sizeof(item->impl), "%s", c->impl);
        snprintf(item->variant, sizeof(item->variant), "%s", c->variant);
    }
    item->count++;
}
