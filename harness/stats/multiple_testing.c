/* Correction of p-values for the number of comparisons that were made. */
#include "stats/multiple_testing.h"

#include <math.h>
#include <stdlib.h>

struct ranked {
    double p;
    size_t position;
};

static int by_p(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return (x->p > y->p) - (x->p < y->p);
}

enum lb_status lb_adjust(const double *p, size_t n, double *adjusted, struct lb_error *err)
{
    if (n == 0)
        return LB_OK;
    struct ranked *ranked = malloc(n * sizeof(*ranked));
    if (!ranked)
        return lb_fail(err, LB_OOM, "out of memory for %zu p-values", n);
    for (size_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){p[i], i};
    qsort(ranked, n, sizeof(*ranked), by_p);
    double least = 1;
    for (size_t i = n; i-- > 0;) {
        least = fmin(least, ranked[i].p * (double)n / (double)(i + 1));
        adjusted[ranked[i].position] = least;
    }
    free(ranked);
    return LB_OK;
}
