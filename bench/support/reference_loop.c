/* A fixed amount of work for one CPU. CMake compiles this file with the same flags in every build.
 */
#include "support/reference_loop.h"

#include "base/clock.h"
#include "stats/order_stats.h"

enum { COUNT = 32768 /* of floats: 256 KiB in all */, ROUNDS = 50, TIMES = 3 };

static float sums[COUNT], terms[COUNT];

/* Multiplies and adds over memory that the second-level cache holds. */
static void work(void)
{
    for (int i = 0; i < COUNT; i++)
        terms[i] = (float)(i & 15);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < COUNT; i++)
            sums[i] = sums[i] * 0.5F + terms[i];
}

double lb_reference_loop(void)
{
    double ns[TIMES];
    work(); /* brings the memory into the cache */
    for (int i = 0; i < TIMES; i++) {
        double start = lb_now_ns();
        work();
        ns[i] = lb_now_ns() - start;
    }
    lb_sort(ns, TIMES);
    return lb_median(ns, TIMES);
}
